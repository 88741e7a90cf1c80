package texts

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs"
)

// alone judges a text, which states one failure.
func alone(t *testing.T, text string, known Options) finding.Finding {
	t.Helper()
	scanned, err := logs.Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s := Statement{Text: &scanned, File: "job.log"}
	found := s.Judge(known)
	if len(found) != 1 || found[0].Kind != finding.OutOfMemory {
		t.Fatalf("%s: %d findings", text, len(found))
	}
	return found[0]
}

const (
	messageOfW20 = "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 2.00 GiB of which 782.00 MiB is free. Of the allocated memory 64.00 MiB is allocated by PyTorch, and 2.00 MiB is reserved by PyTorch but unallocated."
	nvidiaSMI    = "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"
	messageAsync = "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 9.43 GiB\nRequested               : 640.00 MiB\nDevice limit            : 11.59 GiB\nFree (according to CUDA): 7.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB\n"
	messageMPS   = "MPS backend out of memory (MPS allocated: 14.29 GiB, other allocations: 3.65 GiB, max allowed: 20.13 GiB). Tried to allocate 2.67 GiB on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0"
)

// TestRequestThatNothingCanMeet judges a request of more bytes than any machine has.
func TestRequestThatNothingCanMeet(t *testing.T) {
	f := alone(t, "bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 4611686018427387904", Options{})
	if f.Title != "memory ran out: a request of 4611686018427387904 bytes failed: its size was computed wrongly" || len(f.Remedies) != 1 || f.Remedies[0] != wronglyComputed {
		t.Errorf("%s: %+v", f.Title, f.Remedies)
	}
}

// TestCutBeforeTheDevice judges a message of cudaMallocAsync without the device's size.
func TestCutBeforeTheDevice(t *testing.T) {
	f := alone(t, "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 9.43 GiB\nRequested               : 640.00 MiB\nFree (according to CUDA): 7.12 MiB\n", Options{})
	if f.Title != "memory ran out: a request of 640 MiB did not fit: the driver had 7.12 MiB free" {
		t.Error(f.Title)
	}
}

func TestMessageAlone(t *testing.T) {
	const tooFew = "Of the allocated memory 10.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated."
	for _, c := range []struct {
		text, cause, setting string // of the first remedy that has one
		confidence           float64
		title, detail        string // parts
	}{
		{messageOfW20, shortage.OthersHold, nvidiaSMI, 0.71875, "", ""},
		{messageOfW20[:60], "", dumpAtFailure, 0.95, "a request of 1 GiB failed", "the message is cut off: the size of the device, what was free, what was allocated, what was reserved are missing"},
		{"HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.00 GiB is free. " + tooFew,
			shortage.Fragmented, "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128", 0.9, "", "Freed memory that waits for another stream"},
		{"HIP out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 32.00 GiB of which 1.00 GiB is free. " + tooFew,
			shortage.OthersHold, "rocm-smi --showpids", 0.95, "", ""},
		{"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.00 GiB is free. Of the allocated memory 14.20 GiB is allocated by PyTorch, with 3.00 GiB allocated in private pools (e.g., CUDA Graphs), and 512.00 MiB is reserved by PyTorch but unallocated.",
			shortage.Fragmented, dumpAtFailure, 0.9, "4.5 GiB was free: 1 GiB at the driver and 3.5 GiB in segments", "11.2 GiB of it allocated, 3 GiB free in private pools"},
		{"CUDA out of memory. Tried to allocate 2.37 GiB. GPU 3 has a total capacity of 79.10 GiB of which 130.88 MiB is free. Including non-PyTorch memory, this process has 78.96 GiB memory in use. Of the allocated memory 75.45 GiB is allocated by PyTorch, and 2.10 GiB is reserved by PyTorch but unallocated.",
			shortage.TooBig, dumpAtFailure, 1, "75.5 GiB was allocated, and 2.23 GiB was available", "1.41 GiB by this process (its context, other libraries), 12.5 MiB by others"},
		{"XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB. " + tooFew,
			"", strings.ReplaceAll(dumpWhere, "MODULE", "torch.xpu.memory"), 0.95, "a request of 2 GiB failed", "the message does not report the free memory"},
		{"XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.00 GiB is free. " + tooFew,
			shortage.Fragmented, strings.ReplaceAll(dumpWhere, "MODULE", "torch.xpu.memory"), 0.9, "", ""},
		{"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 16.00 GiB total capacity; 10.00 GiB already allocated; 1.00 GiB free; 14.00 GiB reserved in total by PyTorch)",
			shortage.Fragmented, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", 0.9, "", ""},
		{"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.0\nINFO step\n0 GiB is free. INFO\n" + strings.Replace(tooFew, "10.00 GiB is", "lost", 1),
			"", dumpAtFailure, 0.95, "", "lines of other messages are mixed in: what was allocated, what was reserved are missing"},

		{messageAsync, shortage.TooBig, "PYTORCH_CUDA_ALLOC_CONF=backend:native", 0.7, "", "2.15 GiB of the device is cached there or held by others"},
		{strings.Replace(messageAsync, "640.00 MiB", "3.00 GiB", 1), shortage.TooBig, "PYTORCH_CUDA_ALLOC_CONF=backend:native", 1, "", ""},
		{strings.Replace(messageAsync, "17179869184.00", "10.00", 1), shortage.Limit, "torch.cuda.set_per_process_memory_fraction(1.0)", 1, "9.43 GiB of the 10 GiB allowed was held", ""},
		{messageMPS, shortage.Limit, "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0", 1, "17.9 GiB of the 20.1 GiB allowed was held", "3.65 GiB held by the other process"},
		{strings.Replace(messageMPS, ", max allowed: 20.13 GiB", "", 1), "", "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0", 0.95, "a request of 2.67 GiB failed", ""},
		{"RuntimeError: CUDA error: out of memory", "", nvidiaSMI, 0.95, "outside PyTorch's cache", "outside PyTorch's cache: the context"},
		{"host:1:2 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes", "", nvidiaSMI, 0.95, "the driver refused it 6 MiB", ""},
		{"RuntimeError: XPU out of memory, please use `empty_cache` to release all unoccupied cached memory.", "", strings.ReplaceAll(dumpWhere, "MODULE", "torch.xpu.memory"), 0.95,
			"memory ran out on an XPU device", "says nothing else"},
		{"CUDA out of memory. Tried to allocate more than 1EB memory.", "", "", 0.95, "computed wrongly", ""},

		{"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 8.00 GiB of which 5.19 MiB is free. Of the allocated memory 14.91 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
			shortage.TooBig, dumpAtFailure, 1, "PyTorch had 14.9 GiB already, more than the device's 8 GiB", "on Windows and WSL the driver lends host memory"},
		{"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 8.00 GiB of which 5.19 GiB is free. Of the allocated memory 4.91 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
			"", dumpAtFailure, 0.95, "contradict each other", "10.1 GiB free or held by PyTorch on a device of 8 GiB"},
		{"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 16.00 GiB total capacity; 10.00 GiB already allocated; 1.00 GiB free; 4.00 GiB reserved in total by PyTorch)",
			"", dumpAtFailure, 0.95, "contradict each other", "10 GiB allocated, of 4 GiB reserved"},
		{"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 17.00 GiB is free. Including non-PyTorch memory, this process has 18.00 GiB memory in use.",
			"", dumpAtFailure, 0.95, "contradict each other", "17 GiB free on a device of 16 GiB; 18 GiB held by one process on a device of 16 GiB"},
	} {
		f := alone(t, c.text, Options{})
		e := f.Evidence.(*finding.OOMEvidence)
		setting := ""
		for _, r := range f.Remedies {
			if setting == "" {
				setting = r.Setting
			}
		}
		if e.Cause != c.cause || setting != c.setting || f.Confidence != c.confidence {
			t.Errorf("%s: %q, to do: %q, confidence %v", c.text, e.Cause, setting, f.Confidence)
		}
		if text := strings.Join(f.Detail, "\n"); strings.Contains(text, "that is impossible") && strings.Contains(text, "without which") {
			t.Errorf("%s: two explanations\n%s", c.text, text)
		}
		if text := strings.Join(f.Detail, "\n"); !strings.Contains(f.Title, c.title) || !strings.Contains(text, c.detail) {
			t.Errorf("%s: %s\n%s", c.text, f.Title, text)
		}
		if wrong := strings.Contains(f.Title, "contradict"); wrong != e.Contradictory {
			t.Errorf("%s: %+v", c.text, e)
		}
	}
}

// TestMessagesOfSeveralRanks judges the last that is whole, and mentions the others.
func TestMessagesOfSeveralRanks(t *testing.T) {
	rank := func(n, device string) string {
		return "[rank" + n + "]: " + strings.Replace(messageOfW20, "GPU 0", "GPU "+device, 1) + "\n"
	}
	f := alone(t, rank("0", "0")+rank("1", "1")+rank("0", "0")+rank("2", "2")[:66], Options{})
	text := strings.Join(f.Detail, "\n")
	for _, want := range []string{
		"the message of rank0 on line 3 says",
		"it is one of 4 such messages in this text, the last complete one, of 3 ranks or devices:",
		"rank0, device 0: 2 messages, the last on line 3: a request of 1 GiB would have fitted",
		"rank1, device 1: a message on line 2: a request",
		"rank2, an unnamed device: a message on line 4: a request of 1 GiB failed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s\n%s", want, text)
		}
	}
	e := f.Evidence.(*finding.OOMEvidence)
	if len(e.Failures) != 3 || e.Failures[1].Cause != shortage.OthersHold || *e.Failures[1].Rank != "rank1" || e.Failures[2].Cause != "" || e.Messages != 4 {
		t.Errorf("%+v", e)
	}
}

// TestOwnOutside states who holds what is outside, and does not send people to look
// for other processes where the message states that there is nothing of theirs.
func TestOwnOutside(t *testing.T) {
	const text = "CUDA out of memory. Tried to allocate 2.37 GiB. GPU 3 has a total capacity of 79.10 GiB of which 130.88 MiB is free. Including non-PyTorch memory, this process has 78.96 GiB memory in use. Of the allocated memory 75.45 GiB is allocated by PyTorch, and 2.10 GiB is reserved by PyTorch but unallocated."
	for in, others := range map[string]bool{text: false, strings.Replace(text, "78.96", "77.60", 1): true} {
		looks := false
		for _, r := range alone(t, in, Options{}).Remedies {
			looks = looks || r.Setting == nvidiaSMI
		}
		if looks != others {
			t.Errorf("%s: look for other processes: %v", in, looks)
		}
	}
}

// TestMaterial takes 6 GiB of a large device for material where the request is well
// below that.
func TestMaterial(t *testing.T) {
	const wording = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of 160.00 GiB of which 512.00 MiB is free. " +
		"Of the allocated memory 152.70 GiB is allocated by PyTorch, and %s is reserved by PyTorch but unallocated."
	for _, c := range []struct{ ask, unused, want string }{
		{"3.50 GiB", "6.00 GiB", shortage.Fragmented},
		{"5.00 GiB", "6.00 GiB", shortage.TooBig},
		{"1.00 GiB", "3.00 GiB", shortage.TooBig},
	} {
		text := fmt.Sprintf(wording, c.ask, c.unused)
		scanned, err := logs.Scan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := accountOf(scanned.OOM.Last(), Options{}).cause(); got != c.want {
			t.Errorf("%s: %s, want %s", text, got, c.want)
		}
	}
}
