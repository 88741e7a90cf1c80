package glibc_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"strandline/glibc"
	"strandline/internal/live"
	"strandline/procfs"
)

// The program prints what malloc says of itself.
const program = `
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 40000 };
static void *churn(void *none) {
	char **p = malloc(COUNT * sizeof *p);
	for (int i = 0; i < COUNT; i++) { p[i] = malloc(1000); memset(p[i], 1, 1000); }
	for (int i = 0; i < COUNT; i++) if (i % 64) free(p[i]);
	char *small[500];
	for (int i = 0; i < 500; i++) small[i] = malloc(40);
	for (int i = 0; i < 500; i++) free(small[i]);
	if (none) return 0;
	for (;;) pause();
}
int main(int argc, char **argv) {
	pthread_t t[3];
	if (argc > 1) churn(argv);
	else for (int i = 0; i < 3; i++) { pthread_create(&t[i], 0, churn, 0); usleep(200000); }
	sleep(1);
	struct mallinfo2 m = mallinfo2();
	printf("%zu %zu\n", m.arena, m.fordblks);
	fflush(stdout);
	for (;;) pause();
}
`

// What is read from outside is what malloc counts itself.
func TestAgreesWithMallinfo(t *testing.T) {
	exe := live.Build(t, program, nil, "-pthread")
	for name, args := range map[string][]string{"threads": nil, "main": {"main"}} {
		t.Run(name, func(t *testing.T) {
			pid, line := live.Start(t, exe, args...)
			var system, free uint64
			for i, field := range strings.Fields(line) {
				n, err := strconv.ParseUint(field, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				*[]*uint64{&system, &free}[i] = n
			}
			p := procfs.Process(pid)
			mappings, err := p.Maps()
			if err != nil {
				t.Fatal(err)
			}
			memory, err := p.Memory()
			if errors.Is(err, os.ErrPermission) {
				t.Skip("the memory of another process may not be read here")
			} else if err != nil {
				t.Fatal(err)
			}
			defer memory.Close()
			arenas, err := glibc.Read(memory, mappings)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d arenas, %d of %d bytes free; malloc says %d of %d", len(arenas), arenas.Free(), arenas.System(), free, system)
			if arenas.System() != system {
				t.Errorf("arenas hold %d bytes, malloc says %d", arenas.System(), system)
			}
			if got := arenas.Free(); got < free-free/100 || got > free+free/100 {
				t.Errorf("%d bytes are free, malloc says %d", got, free)
			}
		})
	}
}

// Memory that is full of links to itself ends the walk.
func TestHostileMemory(t *testing.T) {
	for _, fill := range []byte{0, 0x41, 0xff} {
		m := filled(fill)
		mappings := []procfs.Mapping{{Start: 64 << 20, End: 65 << 20, Read: true, Write: true}, {Start: 0x4141414141414000, End: 0x4141414141415000, Read: true, Write: true}}
		if got, err := glibc.Read(m, mappings); err == nil {
			t.Errorf("found %v in memory full of %#x", got, fill)
		}
	}
}

type filled byte

func (f filled) ReadAt(b []byte, _ int64) (int, error) {
	for i := range b {
		b[i] = byte(f)
	}
	return len(b), nil
}
