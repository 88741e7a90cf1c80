package leaks

import (
	"testing"
	"time"

	"strandline/glibc"
	"strandline/image"
	"strandline/procfs"
)

// look is what can be seen of a process.
type look struct {
	procfs.Status
	private, shared, huge uint64 // dirty and huge pages
	mappings              int
	taken, free           uint64 // of malloc's arenas
	sockets, threads      int
	held                  uint64 // of files in memory
}

func lookAt(t *testing.T, pid int) (l look) {
	t.Helper()
	p := procfs.Process(pid)
	var err error
	if l.Status, err = p.Status(); err != nil {
		t.Fatal(err)
	}
	uses, err := p.Smaps()
	if err != nil {
		t.Skipf("a child's memory cannot be seen here: %v", err)
	}
	l.mappings = len(uses)
	for _, u := range uses {
		l.private += u.PrivateDirty
		l.shared += u.SharedDirty
		l.huge += u.AnonymousHuge
	}
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(p, files)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	arenas, _ := glibc.Arenas(im) // none where malloc is another's
	for _, a := range arenas {
		l.taken += a.System
		l.free += a.Free
	}
	d, err := p.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	l.sockets, l.threads = d.Sockets, l.Threads
	for _, m := range d.Memory {
		l.held += m.Bytes
	}
	return l
}

// TestSignatures holds the programs against what they are for.
func TestSignatures(t *testing.T) {
	const (
		much   = 8 << 20 // of the 12 MiB and more that they grow by
		little = 2 << 20
	)
	grew := func(after, before uint64) int { return int(after) - int(before) }
	signatures := map[string]func(a, b look) bool{
		"mmap-leak": func(a, b look) bool { return grew(b.Anon, a.Anon) > much && grew(b.taken, a.taken) < little },
		"heap-leak": func(a, b look) bool {
			return grew(b.Anon, a.Anon) > much && grew(b.taken, a.taken) > much && grew(b.free, a.free) < little
		},
		"python-objects": func(a, b look) bool {
			return grew(b.Anon, a.Anon) > much/2 && grew(b.taken, a.taken) < grew(b.Anon, a.Anon)/2
		},
		"arena-retention": func(a, b look) bool {
			return grew(b.Anon, a.Anon) > much && grew(b.free, a.free) > grew(b.taken, a.taken)/2 && grew(b.taken, a.taken) > much
		},
		"allocator-retention": func(a, b look) bool { return grew(b.Anon, a.Anon) > little && b.taken == 0 },
		"thp":                 func(a, b look) bool { return grew(b.huge, a.huge) > much },
		"mremap":              func(a, b look) bool { return grew(b.Anon, a.Anon) > much && b.mappings <= a.mappings+1 },
		"pinned":              func(a, b look) bool { return grew(b.Locked, a.Locked) > much },
		"shm":                 func(a, b look) bool { return grew(b.Shared, a.Shared) > much && grew(b.Anon, a.Anon) < little },
		"memfd":               func(a, b look) bool { return grew(b.held, a.held) > much && grew(b.RSS, a.RSS) < little },
		"page-cache":          func(a, b look) bool { return grew(b.RSS, a.RSS) < little },
		"file-mapping":        func(a, b look) bool { return grew(b.File, a.File) > much && grew(b.Anon, a.Anon) < little },
		"copy-on-write": func(a, b look) bool {
			return grew(b.private, a.private) > much && grew(a.shared, b.shared) > much && grew(b.RSS, a.RSS) < little
		},
		"thread-stacks": func(a, b look) bool { return b.threads > a.threads+10 && grew(b.VMSize, a.VMSize) > much },
		"kernel":        func(a, b look) bool { return b.sockets > a.sockets+20 && grew(b.RSS, a.RSS) < little },
		"quiet":         func(a, b look) bool { return grew(b.RSS, a.RSS) < little && grew(b.VMSize, a.VMSize) < little },
	}
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			right := signatures[p.Name]
			if right == nil {
				t.Fatal("nothing is known of it")
			}
			pid := p.Start(t)
			before := lookAt(t, pid)
			var after look
			for range 10 { // a machine that is busy needs longer
				time.Sleep(800 * time.Millisecond)
				if after = lookAt(t, pid); right(before, after) {
					break
				}
			}
			if !right(before, after) {
				t.Errorf("before %+v\nafter  %+v", before, after)
			}
		})
	}
}
