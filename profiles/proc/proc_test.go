package proc

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
	"strandline/profiles"
)

const smapsText = `00400000-0041f000 r-xp 00000000 fe:00 247702 /usr/bin/python3.11
Rss:                 124 kB
Anonymous:             0 kB
Swap:                  0 kB
NewKeyOfAKernel:       9 kB
VmFlags: rd mr mw me
01000000-02000000 rw-p 00000000 00:00 0 [heap]
Rss:                1000 kB
Anonymous:          1000 kB
AnonHugePages:         0 kB
7f0000000000-7f0010000000 rw-p 00000000 00:00 0
Rss:                4096 kB
Anonymous:          4096 kB
AnonHugePages:      2048 kB
7f1000000000-7f1010000000 rw-s 00000000 00:01 9 /dev/shm/torch_1
Rss:                2048 kB
Anonymous:             0 kB
7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0 [stack]
Rss:                  16 kB
Anonymous:            16 kB
`

const statusText = "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nVmSize:\t  906560 kB\nVmHWM:\t    2000 kB\nVmRSS:\t    1700 kB\nRssAnon:\t    1000 kB\nRssFile:\t     600 kB\nRssShmem:\t     100 kB\n"

const pmapText = `13061:   /usr/bin/python3 wl.py
Address           Kbytes     RSS   Dirty Mode  Mapping
0000000000400000     124     124       0 r---- python3.11
---------------- ------- ------- -------
total kB          906564  384356  375228
`

const pmapLong = `13061:   python3 wl.py
         Address Perm   Offset Device  Inode    Size   Rss   Pss Referenced Anonymous LazyFree Swap Mapping
        00400000 r--p 00000000  fe:00 247702     124   124    17        124         0        0    0 python3.11
                                             ======= ===== ===== ========== ========= ======== ====
                                              906564 384356 370000    380000    276924        0    0 KB
`

const freeText = `               total        used        free      shared  buff/cache   available
Mem:        24684092     1649348    21818616       60072     1606660    23034744
Swap:              0           0           0
`

// figures returns what a text states, in KiB.
func figures(h *profiles.Host) string {
	var out []string
	for _, x := range []struct {
		name string
		n    *int64
	}{
		{"rss", h.RSS}, {"peak", h.Peak}, {"anon", h.Anonymous}, {"heap", h.Heap}, {"file", h.File}, {"shared", h.Shared}, {"huge", h.HugePages},
		{"kernel", h.Kernel}, {"stacks", h.Stacks}, {"total", h.Total}, {"available", h.Available},
		{"memfd", h.Memfd}, {"pinned", h.Pinned}, {"cache", h.Cache},
	} {
		if x.n != nil {
			out = append(out, fmt.Sprintf("%s %d", x.name, *x.n>>10))
		}
	}
	return strings.Join(out, ", ")
}

// TestPID checks that the texts which state a process say which.
func TestPID(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{
		{"Name:\ta\nPid:\t42\nPPid:\t1\nVmRSS:\t1700 kB\nName:\ta\nPid:\t43\nVmRSS:\t1800 kB\n", []int{42, 43}},
		{pmapText + pmapText, []int{13061, 13061}},
		{pmapShort + "8:   ./a\n" + strings.SplitN(pmapShort, "\n", 2)[1], []int{7, 8}},
		{smapsText, []int{0}},
	} {
		f, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var got []int
		for _, h := range append(f.Earlier, *f.Host) {
			got = append(got, h.PID)
		}
		if !slices.Equal(got, c.want) || f.Partial != nil {
			t.Errorf("%q: %v, want %v (%v)", c.text, got, c.want, f.Partial)
		}
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, form, want string }{
		{smapsText, "smaps", "rss 7284, anon 5112, heap 1000, file 124, shared 2048, huge 2048, stacks 16, memfd 0, pinned 0"},
		{"00400000-7fff0000 ---p 00000000 00:00 0 [rollup]\nRss: 500 kB\nAnonymous: 400 kB\n", "smaps_rollup", "rss 500, anon 400, huge 0, pinned 0"},
		{statusText, "status", "rss 1700, peak 2000, anon 1000, file 600, shared 100"},
		{strings.ReplaceAll(statusText, "\n", "\r\n"), "status", "rss 1700, peak 2000, anon 1000, file 600, shared 100"},
		{pmapText, "pmap", "rss 384356"},
		{pmapLong, "pmap", "rss 384356, anon 276924"},
		{freeText, "free", "shared 60072, total 24684092, available 23034744"},
		{"$ free -m\n              total        used        free      shared  buff/cache   available\nMem:          24105        1610       21307          58        1569       22494\n", "free", "shared 59392, total 24683520, available 23033856"},
		{"               total        used        free      shared  buff/cache   available\nMem:            23Gi       1.5Gi        20Gi        58Mi       1.5Gi        22Gi\n", "free", "shared 59392, total 24117248, available 23068672"},
		{"MemTotal:       24684092 kB\nMemFree: 100 kB\nMemAvailable:   23034744 kB\n", "meminfo", "total 24684092, available 23034744"},
		{"anon 1048576\nfile 3145728\nkernel_stack 1024\nslab 2048\nshmem 1048576\n", "memory.stat", "anon 1024, file 2048, shared 1024, kernel 2, cache 2048"},
		{"cache 3145728\nrss 1048576\nmapped_file 0\ntotal_cache 4194304\ntotal_rss 2097152\n", "memory.stat", "anon 2048, file 4096, cache 4096"},
	} {
		if !Is([]byte(c.text)) {
			t.Errorf("%s: not taken for one", c.form)
			continue
		}
		f, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.form, err)
			continue
		}
		if got := figures(f.Host); f.Format != c.form || got != c.want || len(f.Earlier) > 0 || f.Partial != nil {
			t.Errorf("%s: %s: %s, want %s (%d earlier, %v)", c.form, f.Format, got, c.want, len(f.Earlier), f.Partial)
		}
	}
}

// mapped is a process with what has a kind of its own: an arena of malloc, the stack of
// a thread, a file in memory, and a mapping that grew and is listed twice.
const mapped = `7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Rss:                1000 kB
Anonymous:          1000 kB
7f0000100000-7f0004000000 ---p 00000000 00:00 0
Rss:                   0 kB
7f0005000000-7f0005001000 ---p 00000000 00:00 0
Rss:                   0 kB
7f0005001000-7f0005801000 rw-p 00000000 00:00 0
Rss:                 200 kB
Anonymous:           200 kB
7f0006000000-7f0006100000 rw-s 00000000 00:01 9 /memfd:x (deleted)
Rss:                 500 kB
Anonymous:             0 kB
7f0007000000-7f0007100000 rw-p 00000000 00:00 0
Rss:                  60 kB
Anonymous:            60 kB
7f0007000000-7f0007200000 rw-p 00000000 00:00 0
Rss:                  70 kB
Anonymous:            70 kB
Locked:               70 kB
7f0008000000-7f0008100000 r-xp 00000000 fe:00 5 /usr/lib/libjemalloc.so.2
Rss:                  10 kB
Anonymous:             0 kB
`

const pmapShort = `7:   ./a
Address           Kbytes     RSS   Dirty Mode  Mapping
0000558b4912a000       4       4       4 r-x-- a
00007f7ceda06000   10668   10664   10664 rw---   [ anon ]
00007f7ceda06000   20000   20000   20000 rw---   [ anon ]
00007f7cf0000000    1024    1024    1024 rw-s- torch_7_123 (deleted)
00007f7cf1000000    1024    1024    1024 rw-s- memfd:x (deleted)
00007ffd9c4f8000     132      12      12 rw---   [ stack ]
---------------- ------- ------- -------
total kB           32852   32728   32724
`

func TestMappings(t *testing.T) {
	for _, c := range []struct {
		text, want string
		threads    int64
		allocator  string
	}{
		{mapped, "rss 1780, anon 1270, heap 1000, file 10, shared 500, huge 0, stacks 200, memfd 500, pinned 70", 2, "libjemalloc.so.2"},
		{pmapShort, "rss 22064, anon 20012, file 4, shared 2048, stacks 12, memfd 1024", 1, ""},
	} {
		f, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := figures(f.Host); got != c.want || *f.Host.Threads != c.threads || f.Host.Allocator != c.allocator || len(f.Earlier) > 0 {
			t.Errorf("%s, %d threads, %q; want %s, %d, %q", got, *f.Host.Threads, f.Host.Allocator, c.want, c.threads, c.allocator)
		}
	}
}

func TestSeveral(t *testing.T) {
	for _, text := range []string{smapsText, statusText, pmapText, freeText, "anon 4096\nfile 4096\nslab 1\n"} {
		f, err := Read(strings.NewReader(text + "\n" + text + text))
		if err != nil || len(f.Earlier) != 2 || figures(&f.Earlier[0]) != figures(f.Host) {
			t.Errorf("%.20q three times: %+v, %v", text, f, err)
		}
	}
}

func TestBroken(t *testing.T) {
	for name, text := range map[string]string{
		"header": "16ec0000000-16efa600000\nSize:             956416 kB\nRss:                   0 kB\n",
		"size":   strings.Replace(smapsText, "124 kB", "124 MB", 1),
		"kernel": "Name:\tkthreadd\nUmask:\t0000\nState:\tS\n",
		"cut":    pmapText[:strings.Index(pmapText, "total")],
	} {
		if f, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	f, err := Read(strings.NewReader(statusText + "Name:\tpython3\nState:\tZ\n"))
	if err != nil || f.Partial == nil || figures(f.Host) == "" {
		t.Errorf("a process that ended: %+v, %v", f, err)
	}
	for _, text := range []string{"", "total 0\n", "Name: a\nState of the art", "abcd-ef01 starts\n", "cache 3\nis cold"} {
		if Is([]byte(text)) {
			t.Errorf("%q is taken for one", text)
		}
	}
}

func TestOwnProcess(t *testing.T) {
	live.Linux(t)
	for _, name := range []string{"smaps", "smaps_rollup", "status"} {
		file, err := os.Open("/proc/self/" + name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(file)
		file.Close()
		if err != nil || f.Format != name || *f.Host.RSS < 1<<20 || *f.Host.Anonymous > *f.Host.RSS {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{smapsText, mapped, pmapShort, statusText, pmapText, pmapLong, freeText, "MemTotal: 1 kB\n", "anon 4096\nfile 4096\nslab 1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		h := file.Host
		for _, n := range []*int64{h.RSS, h.Anonymous, h.Heap, h.File, h.Shared, h.Kernel, h.Swap} {
			if n != nil && *n < 0 {
				t.Errorf("%d bytes", *n)
			}
		}
	})
}
