package export_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"strandline/face/export"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

const both = export.Paths | export.Names

// What is measured stays, and the written pickle can be read.
func TestRedactKeepsFigures(t *testing.T) {
	facts := func(s *snapshot.Snapshot) string {
		f := timeline.FactsOf(s)
		return fmt.Sprintf("%+v %s", f.Version, figures(f.Devices))
	}
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		r := export.Redact(s, both)
		if got, want := facts(r), facts(s); got != want {
			t.Errorf("facts %s, want %s", got, want)
		}
		out := write(t, s, func(w *bytes.Buffer) error { return r.Write(w) })
		if bytes.Contains(out.Bytes(), []byte("/rig/workloads")) || bytes.Contains(out.Bytes(), []byte("/usr/lib")) {
			t.Error("paths are left")
		}
		again, err := snapshot.Read(out, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := facts(again), facts(s); got != want {
			t.Errorf("facts of what was written: %s, want %s", got, want)
		}
		for id := range s.Stacks.Len() {
			a, b := s.Stacks.Stack(stack.ID(id)), r.Stacks.Stack(stack.ID(id))
			for i := range a {
				if stack.OriginOf(a[i]) != stack.OriginOf(b[i]) || a[i].Line != b[i].Line {
					t.Fatalf("%v becomes %v", a[i], b[i])
				}
			}
			if stack.InForward(a) != stack.InForward(b) || stack.InBackward(a) != stack.InBackward(b) ||
				stack.WithoutGradients(a) != stack.WithoutGradients(b) {
				t.Errorf("the phase of %v is lost", a)
			}
		}
	})
}

// figures are the facts of devices, pointers followed.
func figures(devices []timeline.DeviceFacts) string {
	var out strings.Builder
	for _, d := range devices {
		events := -1
		if d.Events != nil {
			events = *d.Events
		}
		fmt.Fprintln(&out, d.Device, events, d.Segments, d.Blocks, d.ReservedBytes, d.AllocatedBytes, d.RequestedBytes,
			d.InactiveSplitBytes, d.Stacks)
	}
	return out.String()
}

// TestRedactFrames is long because it is one table of frames and what becomes of them.
//
// long: one row a frame
func TestRedactFrames(t *testing.T) {
	frames := []struct{ before, paths, names stack.Frame }{
		{stack.Frame{File: "/home/ada/secret/train.py", Line: 5, Function: "pretrain"}, stack.Frame{File: "file-1.py", Line: 5, Function: "pretrain"},
			stack.Frame{File: "/home/ada/secret/train.py", Line: 5, Function: "func-1"}},
		{stack.Frame{File: "/home/ada/secret/model.py", Function: "forward"}, stack.Frame{File: "file-2.py", Function: "forward"},
			stack.Frame{File: "/home/ada/secret/model.py", Function: "forward"}},
		{stack.Frame{File: "/home/ada/venv/lib/python3.11/site-packages/torch/nn/functional.py", Function: "linear"},
			stack.Frame{File: "torch/nn/functional.py", Function: "linear"},
			stack.Frame{File: "/home/ada/venv/lib/python3.11/site-packages/torch/nn/functional.py", Function: "linear"}},
		{stack.Frame{File: "/home/ada/venv/lib/python3.11/copy.py", Function: "deepcopy"},
			stack.Frame{File: "lib/python3/copy.py", Function: "deepcopy"},
			stack.Frame{File: "/home/ada/venv/lib/python3.11/copy.py", Function: "deepcopy"}},
		{stack.Frame{File: "/home/ada/venv/lib/python3.11/site-packages/acme/x.py", Function: "pretrain"},
			stack.Frame{File: "file-3.py", Function: "pretrain"},
			stack.Frame{File: "/home/ada/venv/lib/python3.11/site-packages/acme/x.py", Function: "func-1"}},
		{stack.Frame{File: "/tmp/torchinductor_ada/ab/cabqwertyuiopasdfghjklzxcvbnm234567qwertyuiopasdfghj.py", Function: "call"}, stack.Frame{File: "torchinductor_/file-4.py", Function: "call"},
			stack.Frame{File: "/tmp/torchinductor_ada/ab/cabqwertyuiopasdfghjklzxcvbnm234567qwertyuiopasdfghj.py", Function: "call"}},
		{stack.Frame{File: "<attrs generated init acme.Secret>", Function: "__init__"}, stack.Frame{File: "<file-5>", Function: "__init__"},
			stack.Frame{File: "<attrs generated init acme.Secret>", Function: "__init__"}},
		{stack.Frame{File: "<ipython-input-3-ada>", Function: "<module>"}, stack.Frame{File: "file-6.py", Function: "<module>"},
			stack.Frame{File: "<ipython-input-3-ada>", Function: "<module>"}},
		{stack.Frame{File: "/opt/acme/lib/libacme.so", Function: "acme::Kernel::run()"}, stack.Frame{File: "file-7.so", Function: "acme::Kernel::run()"},
			stack.Frame{File: "/opt/acme/lib/libacme.so", Function: "func-2"}},
		{stack.Frame{File: "/home/ada/venv/lib/libtorch_cpu.so", Function: "at::empty(int)"}, stack.Frame{File: "libtorch_cpu.so", Function: "at::empty(int)"},
			stack.Frame{File: "/home/ada/venv/lib/libtorch_cpu.so", Function: "at::empty(int)"}},
		{stack.Frame{File: "??", Function: "at::(anonymous namespace)::wrap<c10::guts::typelist<at::Tensor const&>, std::optional<bool>>::call(long)"},
			stack.Frame{File: "??", Function: "at::(anonymous namespace)::wrap<c10::guts::typelist<at::Tensor const&>, std::optional<bool>>::call(long)"},
			stack.Frame{File: "??", Function: "at::(anonymous namespace)::wrap<c10::guts::typelist<at::Tensor const&>, std::optional<bool>>::call(long)"}},
		{stack.Frame{File: "??", Function: "at::wrap<acme::Kernel>()"}, stack.Frame{File: "??", Function: "at::wrap<acme::Kernel>()"},
			stack.Frame{File: "??", Function: "func-3"}},
		{stack.Frame{File: "??", Function: "acme::other()"}, stack.Frame{File: "??", Function: "acme::other()"},
			stack.Frame{File: "??", Function: "func-4"}},
		{stack.Frame{File: "/x/torch/nn/functional.py", Function: "linear"}, stack.Frame{File: "torch/nn/functional.py", Function: "linear"},
			stack.Frame{File: "/x/torch/nn/functional.py", Function: "linear"}},
		{stack.Frame{File: "/home/ada/torch/nn/acme.py", Function: "pretrain"}, stack.Frame{File: "torch/nn/file-8.py", Function: "pretrain"},
			stack.Frame{File: "/home/ada/torch/nn/acme.py", Function: "func-1"}},
		{stack.Frame{File: "/home/ada/my-packages/torch/nn/acme.py", Function: "acme"}, stack.Frame{File: "torch/nn/file-9.py", Function: "acme"},
			stack.Frame{File: "/home/ada/my-packages/torch/nn/acme.py", Function: "func-5"}},
		{stack.Frame{File: "/home/ada/lib/python3.11/acme/json/decoder.py", Function: "acme"}, stack.Frame{File: "lib/python3/file-10.py", Function: "acme"},
			stack.Frame{File: "/home/ada/lib/python3.11/acme/json/decoder.py", Function: "func-5"}},
		{stack.Frame{File: "<string>", Function: "acme"}, stack.Frame{File: "<string>", Function: "acme"},
			stack.Frame{File: "<string>", Function: "func-5"}},
		{stack.Frame{File: "/tmp/torchinductor_ada/acme/c.py", Function: "acme"}, stack.Frame{File: "torchinductor_/file-11.py", Function: "acme"},
			stack.Frame{File: "/tmp/torchinductor_ada/acme/c.py", Function: "func-5"}},
		{stack.Frame{File: "/home/ada/Modules/acme.c", Function: "PyInit_acme"}, stack.Frame{File: "file-12.c", Function: "PyInit_acme"},
			stack.Frame{File: "/home/ada/Modules/acme.c", Function: "func-6"}},
		{stack.Frame{File: "??", Function: "at::native::acme(at::Tensor const&)"}, stack.Frame{File: "??", Function: "at::native::acme(at::Tensor const&)"},
			stack.Frame{File: "??", Function: "func-7"}},
		{stack.Frame{File: "/home/ada/libtorch_acme.so", Function: "??"}, stack.Frame{File: "file-13.so", Function: "??"},
			stack.Frame{File: "/home/ada/libtorch_acme.so", Function: "??"}},
		{stack.Frame{File: "/v/lib/python3.11/site-packages/torch/nn/acme.py", Function: "linear"}, stack.Frame{File: "torch/nn/file-14.py", Function: "linear"},
			stack.Frame{File: "/v/lib/python3.11/site-packages/torch/nn/acme.py", Function: "func-8"}},
		{stack.Frame{File: "/v/lib/python3.11/site-packages/torch/nn/functional.py", Function: "acme"}, stack.Frame{File: "torch/nn/functional.py", Function: "acme"},
			stack.Frame{File: "/v/lib/python3.11/site-packages/torch/nn/functional.py", Function: "func-5"}},
		{stack.Frame{File: "/home/ada/aten/src/ATen/native/acme.cpp", Function: "__acme__"}, stack.Frame{File: "file-15.cpp", Function: "__acme__"},
			stack.Frame{File: "/home/ada/aten/src/ATen/native/acme.cpp", Function: "func-9"}},
	}
	s := snapshot.New()
	var ids []stack.FrameID
	for i, f := range frames {
		var extra any
		if i == 0 {
			extra = "fx_original_trace"
		}
		ids = append(ids, s.Stacks.Frame(f.before, extra))
	}
	id := s.Stacks.Intern(ids)
	for what, want := range map[export.Redaction]func(i int) stack.Frame{
		export.Paths: func(i int) stack.Frame { return frames[i].paths },
		export.Names: func(i int) stack.Frame { return frames[i].names },
		both: func(i int) stack.Frame {
			return stack.Frame{File: frames[i].paths.File, Line: frames[i].paths.Line, Function: frames[i].names.Function}
		},
	} {
		for i, got := range export.Redact(s, what).Stacks.Stack(id) {
			if got != want(i) {
				t.Errorf("%d: %v becomes %v, want %v", what, frames[i].before, got, want(i))
			}
			if stack.OriginOf(got) != stack.OriginOf(frames[i].before) {
				t.Errorf("the origin of %v is lost in %v", frames[i].before, got)
			}
		}
	}
	if s.Stacks.Stack(id)[0] != frames[0].before {
		t.Error("the snapshot itself has changed")
	}
}

func TestRedactTexts(t *testing.T) {
	s := hostile()
	e := &s.Traces[0].Events
	for _, text := range []string{"0/1", "acme.block", "acme.block"} {
		e.CompileContext = append(e.CompileContext, s.StringID(text))
		e.UserMetadata = append(e.UserMetadata, s.StringID("size"))
		e.Category = append(e.Category, s.StringID("parameter"))
	}
	for _, name := range []string{
		"ProfilerStep#7", "Optimizer.step#AdamW.step", "Optimizer.step#Acme.step", "FSDP::pre_forward (acme.0)", "acme train step 12",
		"step 3", "acme",
	} {
		s.Annotations = append(s.Annotations, snapshot.Annotation{Name: name, Extra: []snapshot.Field{{Key: "note", Value: "acme"}}})
	}
	s.Extra = []snapshot.Field{{Key: "rank", Value: int64(3)}, {Key: "step", Value: "acme"}, {Key: "host", Value: "acme"}, {Key: int64(1), Value: int64(2)}}
	s.Segments[0].Extra = []snapshot.Field{{Key: "note", Value: "acme"}}
	r := export.Redact(s, both)
	var got []string
	for _, a := range r.Annotations {
		got = append(got, a.Name)
	}
	for k := range e.Action {
		got = append(got, r.String(r.Traces[0].CompileContext[k]), r.String(r.Traces[0].UserMetadata[k]), r.String(r.Traces[0].Category[k]))
	}
	want := "ProfilerStep#7,Optimizer.step#AdamW.step,Optimizer.step#scope-1,FSDP::pre_forward scope-2,scope-3 step 12,step 3,scope-4," +
		"0/1,metadata-1,parameter,context-1,metadata-1,parameter,context-1,metadata-1,parameter"
	if strings.Join(got, ",") != want {
		t.Errorf("texts %q", got)
	}
	if len(r.Extra) != 1 || r.Extra[0].Key != "rank" {
		t.Errorf("extra %v", r.Extra)
	}
	if out := write(t, s, func(w *bytes.Buffer) error { return r.Write(w) }).String(); regexp.MustCompile(`acme|note`).MatchString(out) {
		t.Error("a text is left")
	}
	if s.Annotations[6].Name != "acme" || s.String(e.UserMetadata[0]) != "size" {
		t.Error("the snapshot itself has changed")
	}
}

// Of the settings stays what PyTorch writes, and of their text what it reads.
func TestRedactSettings(t *testing.T) {
	s := snapshot.New()
	s.Settings = snapshot.NewSettings([]snapshot.Field{
		{Key: "PYTORCH_CUDA_ALLOC_CONF", Value: "expandable_segments:True, acme:True,roundup_power2_divisions:[256:1,>:4],/home/acme"},
		{Key: "last_allocator_settings", Value: "/home/acme"},
		{Key: "max_split_size", Value: int64(1 << 20)},
		{Key: "expandable_segments", Value: "acme"},
		{Key: "roundup_power2_divisions", Value: []snapshot.Field{{Key: "1", Value: int64(4)}}},
		{Key: "trace_alloc_overflowed", Value: []any{true, "acme"}},
	})
	r := export.Redact(s, both)
	got := fmt.Sprint(r.Settings.Fields())
	want := "[{PYTORCH_CUDA_ALLOC_CONF expandable_segments:True,roundup_power2_divisions:[256:1,>:4]} {max_split_size 1048576} " +
		"{roundup_power2_divisions [{1 4}]}]"
	if got != want {
		t.Errorf("settings %s, want %s", got, want)
	}
	if r.Settings.MaxSplitSize != 1<<20 {
		t.Errorf("the limit of splits is %d", r.Settings.MaxSplitSize)
	}
}
