package glibcheap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// keeper allocates in THREADS threads, frees all but each 64th block, and says
// what malloc itself knows: taken from the system and free.
const keeper = `
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *x) {
  enum { N = 20000 };
  static __thread void *kept[N];
  for (int i = 0; i < N; i++) kept[i] = malloc(i % 3 ? 1024 : 40);
  for (int i = 0; i < N; i++) if (i % 64) free(kept[i]);
  return 0;
}
int main() {
  pthread_t t[THREADS + 1];
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], 0, work, 0), pthread_join(t[i], 0);
  if (!THREADS) work(0);
  struct mallinfo2 m = mallinfo2();
  char line[100];
  snprintf(line, 100, "%zu %zu\n", m.arena, m.fordblks);
  write(1, line, __builtin_strlen(line));
  pause();
}
`

func TestArenas(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"one thread", []string{"-DTHREADS=0"}},
		{"threads", []string{"-DTHREADS=3", "-lpthread"}},
		{"static program", []string{"-DTHREADS=0", "-static", "-no-pie"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid, line := live.Start(t, live.Build(t, keeper, nil, c.flags...))
			var system, free uint64
			if _, err := fmt.Sscan(line, &system, &free); err != nil {
				t.Fatal(err)
			}
			arenas, err := Arenas(imageOf(t, pid))
			if err != nil {
				t.Fatal(err)
			}
			var gotSystem, gotFree uint64
			mains := 0
			for _, a := range arenas {
				gotSystem += a.System
				gotFree += a.Free
				if a.main {
					mains++
				}
				if a.partial {
					t.Errorf("an arena is known in part: %+v", a)
				}
			}
			if mains != 1 {
				t.Errorf("%d main arenas", mains)
			}
			if gotSystem != system || gotFree != free || free < system/2 {
				t.Errorf("got %d bytes free of %d, malloc says %d of %d: %+v", gotFree, gotSystem, free, system, arenas)
			}
		})
	}
}

// A program that has no malloc of glibc has no arenas: this test is one.
func TestNoArena(t *testing.T) {
	im := imageOf(t, os.Getpid())
	for _, m := range im.Map.Mappings {
		if strings.HasPrefix(filepath.Base(m.Path), "libc.so") {
			live.Missing(t, "a test without the C library", "the race detector links it")
		}
	}
	if a, err := Arenas(im); !errors.Is(err, ErrNone) {
		t.Errorf("got %+v, %v", a, err)
	}
}

// Memory that only resembles an arena is not taken for one.
func TestIsArena(t *testing.T) {
	const at = 0x7f0000000000
	whole := make([]byte, size)
	put := func(b []byte, i int, v uint64) { binary.LittleEndian.PutUint64(b[i:], v) }
	put(whole, atTop, 0x1000)
	put(whole, atSystem, 1<<20)
	put(whole, atNext, at)
	for i := range bins {
		put(whole, atBins+16*i, head(at, i))
		put(whole, atBins+16*i+8, head(at, i))
	}
	if !isArena(whole, at) {
		t.Error("an arena is not known for one")
	}
	if isArena(whole, at+8) {
		t.Error("an arena is found at an address that it is not at")
	}
	for _, broken := range []struct {
		at    int
		value uint64
	}{{atTop, 0}, {atTop, 8}, {atSystem, 0}, {atNext, 0}, {atNext, 3}, {atBins, 0}, {atBins + 8, 7}, {atBins, 0x1000}} {
		b := append([]byte(nil), whole...)
		put(b, broken.at, broken.value)
		if isArena(b, at) {
			t.Errorf("with %d at %d it is taken for an arena", broken.value, broken.at)
		}
	}
}

func imageOf(t *testing.T, pid int) *image.Image {
	t.Helper()
	files := image.NewFiles()
	t.Cleanup(files.Close)
	im, err := image.Open(procfs.Process(pid), files)
	live.Need(t, "reading the memory of another process", err)
	t.Cleanup(im.Close)
	return im
}

// noise is memory that repeats some bytes without end.
type noise []byte

func (n noise) Read(b []byte, addr uint64) error {
	for at := addr % uint64(len(n)); len(b) > 0; at = 0 {
		b = b[copy(b, n[at:]):]
	}
	return nil
}

// FuzzRing follows lists that lead anywhere, such as to themselves.
func FuzzRing(f *testing.F) {
	arena := make([]byte, size)
	put := func(i int, v uint64) { binary.LittleEndian.PutUint64(arena[i:], v) }
	for i := range bins {
		put(atBins+16*i, head(0, i))
		put(atBins+16*i+8, head(0, i))
	}
	put(atTop, 16)
	put(atSystem, 1<<40)
	put(atNext, size)
	f.Add(slices.Clone(arena), uint64(0))
	put(atBins, 0x800)
	put(atBins+8, 0x800)
	put(atFast, 0x20)
	f.Add(slices.Clone(arena), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint64) {
		if len(data) == 0 {
			return
		}
		const few = 1 << 6
		w := &walk{memory: noise(data), writable: func(at uint64) bool { return at%3 == 0 }, left: few}
		chunks := 0
		for _, a := range w.ring(at) {
			if chunks += a.chunks; a.Free > a.System {
				t.Errorf("%+v", a)
			}
		}
		if chunks > few {
			t.Errorf("%d chunks", chunks)
		}
	})
}
