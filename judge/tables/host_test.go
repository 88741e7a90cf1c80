package tables

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

func TestGrown(t *testing.T) {
	const mib = 1 << 20
	size := func(n int64) *int64 { n *= mib; return &n }
	var s Series
	for i := range int64(8) {
		s.Files = append(s.Files, &profiles.File{Name: fmt.Sprintf("smaps-%d", i), Format: "smaps", Host: &profiles.Host{
			RSS: size(1000 + 12*i), Anonymous: size(500 + 10*i), Heap: size(100 + 10*i), // all growth is the heap's
			Shared: size(50 + 8*(i%2)), File: size(200 + 2*i), Kernel: size(1),
		}})
	}
	a := Judge([]Series{s})
	if a.Verdict != finding.Leaking {
		t.Errorf("verdict %s", a.Verdict)
	}
	var got []string
	for _, f := range a.Findings {
		got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Severity))
	}
	if text := fmt.Sprint(got); text != "[heap-leak problem file-mapping info usage info]" {
		t.Errorf("findings %s", text)
	}
	if f := a.Findings[0]; *f.Bytes != 70*mib || *f.BytesPerStep != 10*mib {
		t.Errorf("the heap: %d, %d a text", *f.Bytes, *f.BytesPerStep)
	}
	for _, f := range s.Files { // nothing grows
		f.Host = s.Files[0].Host
	}
	if a := Judge([]Series{s}); a.Verdict != finding.OK {
		t.Errorf("without growth: %s, %v", a.Verdict, a.Findings)
	}
}

// TestEarlier judges one text that states its figures several times.
func TestEarlier(t *testing.T) {
	f := &profiles.File{Name: "rss.txt", Format: "pmap"}
	for i := range int64(8) {
		n := (100 + 10*i) << 20
		f.Earlier = append(f.Earlier, profiles.Host{RSS: &n})
	}
	f.Host = &f.Earlier[7]
	f.Earlier = f.Earlier[:7]
	a := Judge([]Series{{Files: []*profiles.File{f}}})
	if len(a.Findings) == 0 || a.Findings[0].Kind != finding.Unexplained || *a.Findings[0].Bytes != 70<<20 {
		t.Errorf("%s: %+v", a.Verdict, a.Findings)
	}
}

// TestAddressed checks that commands have the process ID if all texts are of one process.
func TestAddressed(t *testing.T) {
	for _, c := range []struct {
		texts, second int
		want          string
	}{{8, 42, "--pid 42"}, {20, 42, "--pid 42"}, {8, 43, "--pid PID"}, {20, 0, "--pid PID"}} {
		f := &profiles.File{Name: "status.txt", Format: "status"}
		for i := range int64(c.texts) {
			n := (100 + 10*i) << 20
			f.Earlier = append(f.Earlier, profiles.Host{PID: 42, RSS: &n, Anonymous: &n})
		}
		f.Earlier[1].PID = c.second
		f.Host = &f.Earlier[c.texts-1]
		f.Earlier = f.Earlier[:c.texts-1]
		a := Judge([]Series{{Files: []*profiles.File{f}}})
		if len(a.Findings) == 0 || len(a.Findings[0].Remedies) != 1 || !strings.Contains(a.Findings[0].Remedies[0].Text, c.want) {
			t.Errorf("%+v: %+v", c, a.Findings)
		}
	}
}

// TestClasses grows one figure of a text at a time.
func TestClasses(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		grow func(h *profiles.Host, n int64)
		want string
	}{
		{"heap", func(h *profiles.Host, n int64) { *h.Anonymous += n; *h.Heap += n }, "heap-leak problem"},
		{"mappings", func(h *profiles.Host, n int64) { *h.Anonymous += n }, "mmap-leak problem"},
		{"heap not stated", func(h *profiles.Host, n int64) { *h.Anonymous += n; h.Heap = nil }, "unexplained problem"},
		{"another malloc", func(h *profiles.Host, n int64) { *h.Anonymous += n; h.Allocator = "libjemalloc.so.2" }, "allocator-retention problem"},
		{"locked", func(h *profiles.Host, n int64) { *h.Anonymous += n; *h.Pinned += n }, "pinned problem"},
		{"memfd", func(h *profiles.Host, n int64) { *h.Shared += n; *h.Memfd += n }, "memfd problem"},
		{"shared", func(h *profiles.Host, n int64) { *h.Shared += n }, "shm problem"},
		{"cache", func(h *profiles.Host, n int64) { h.Cache = &n }, "page-cache info"},
		{"threads", func(h *profiles.Host, n int64) { *h.Threads += n / mib; *h.Writable += n; *h.RSS -= n }, "thread-stacks problem"},
		{"pages parted", func(h *profiles.Host, n int64) { *h.PrivateDirty += n; *h.SharedDirty -= n; *h.RSS -= n }, "copy-on-write warning"},
		{"tables of pages", func(h *profiles.Host, n int64) { *h.Anonymous += n; *h.Kernel += n / 500 }, "mmap-leak problem"},
		{"resident alone", func(h *profiles.Host, n int64) { *h = profiles.Host{RSS: h.RSS} }, "unexplained warning"},
		{"the machine", func(h *profiles.Host, n int64) {
			total, free := int64(4000*mib), 3000*mib-n
			*h = profiles.Host{Total: &total, Available: &free}
		}, "unexplained warning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Series
			for i := range int64(8) {
				size := func(n int64) *int64 { n *= mib; return &n }
				h := &profiles.Host{
					RSS: size(2000 + 10*i), Anonymous: size(1000), Heap: size(100), Stacks: size(1), Shared: size(200), Memfd: size(50), File: size(100),
					Pinned: size(1), Kernel: size(1), PrivateDirty: size(500), SharedDirty: size(500), Writable: size(1500), Threads: new(int64),
				}
				c.grow(h, 10*i*mib)
				s.Files = append(s.Files, &profiles.File{Name: fmt.Sprint(i), Format: "smaps", Host: h})
			}
			var got []string
			for _, f := range Judge([]Series{s}).Findings {
				if f.Kind != finding.Usage {
					got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Severity))
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}
