package sites

import (
	"fmt"
	"strings"
	"testing"
)

// TestStacks reads the stacks of bpftrace and of gdb, and counts those that come again.
func TestStacks(t *testing.T) {
	gdb := func(n int) string {
		return strings.Repeat(`mmap returned: 0x7f12000
#0  0x00007f1122334455 in syscall () from /lib/libc.so.6
#1  0x00007f1011aa5307 in ucm_mmap () from /opt/libucm.so.0
#2  0x00005577331988b in decode (img=0x1, n=4) at /home/u/a.c:88

`, n)
	}
	for name, c := range map[string]struct {
		text, want string
	}{
		"gdb":           {gdb(3), "3×1 syscall/libc.so.6 ucm_mmap/libucm.so.0 decode/a.c:88 | decode"},
		"gdb, no space": {strings.ReplaceAll(gdb(2), "\n\n", "\n"), "2×1 syscall/libc.so.6 ucm_mmap/libucm.so.0 decode/a.c:88 | decode"},
		"bpftrace":      {strings.Repeat("Thread 5 called mmap(addr=(nil), length=8192)\n\n        syscall+29\n\n", 4), "4×8192 syscall | syscall, cut off"},
		"sums":          {"@[\n    mmap+71\n    arena_new+19\n]: 8192\n@[\n    mmap+71\n    arena_new+19\n]: 4096\n", "2×6144 mmap arena_new | arena_new"},
		"counts":        {"@[\n    mmap+71\n    arena_new+19\n]: 7\n", "7×1 mmap arena_new | arena_new"},
		"munmap":        {"Thread 5 called munmap(addr=0x1000, length=8192)\n        munmap+11\n        free_all+3\nThread 5 called mmap(addr=0x1000, length=4096)\n        mmap+11\n        take+3\n", "1×4096 mmap take | take"},
	} {
		t.Run(name, func(t *testing.T) {
			if !Is([]byte(c.text)) {
				t.Fatal("it is not recognized")
			}
			f, err := Read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, u := range f.Uses {
				fmt.Fprintf(&got, "%d×%d", u.Count, u.Size)
				for _, x := range u.Stack {
					got.WriteString(" " + x.Function)
					if x.File != "" {
						got.WriteString(x.File[strings.LastIndex(x.File, "/"):])
					}
					if x.Line > 0 {
						fmt.Fprintf(&got, ":%d", x.Line)
					}
				}
				at, ok := Caller(u.Stack)
				got.WriteString(" | " + at.Function)
				if !ok {
					got.WriteString(", cut off")
				}
			}
			if got.String() != c.want {
				t.Errorf("%s, want %s", got.String(), c.want)
			}
		})
	}
	for _, other := range []string{"#0  foo () from libx.so\n", "Thread 1 called fork()\n", "Traceback:\n  File \"a.py\", line 3, in mmap\n", "@[\n    kfree+7\n]: 3\n"} {
		if Is([]byte(other)) {
			t.Errorf("%q is taken for stacks of mmap", other)
		}
	}
}
