package tables

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
	"strandline/profiles/proc"
	"strandline/profiles/sites"
)

// TestGrowingMapping follows a mapping that grows, whether it stays or moves, through a loop of
// `pmap -x PID | sort | head` without its heading.
func TestGrowingMapping(t *testing.T) {
	for name, c := range map[string]struct {
		start func(i int) int
		grown func(i int) int // KiB
		want  string
	}{
		"moves":  {func(i int) int { return 0x7f2a00000000 + i<<28 }, func(i int) int { return 7000 * i }, "one anonymous mapping, moved 19 times"},
		"stays":  {func(int) int { return 0x7f2a00000000 }, func(i int) int { return 7000 * i }, "one anonymous mapping at 7f2a00000000"},
		"no end": {func(int) int { return 0x7f2a00000000 }, func(int) int { return 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for i := range 20 {
				size := 200_000 + c.grown(i)
				for _, row := range []struct {
					at, kib int
					path    string
				}{{c.start(i), size, "  [ anon ]"}, {0x7f3000000000, 61_234, "  [ anon ]"}, {0x7f2ffe000000, 12_000, "libtorch_cpu.so"}, {0x7ffd00000000, 80, "  [ stack ]"}} {
					fmt.Fprintf(&text, "%016x %7d %7d %7d rw--- %s\n", row.at, row.kib+4, row.kib, row.kib, row.path)
				}
			}
			f, err := proc.Read(strings.NewReader(text.String()))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, x := range Judge([]Series{{Files: []*profiles.File{f}}}).Findings {
				if x.Severity == finding.Problem {
					got += x.Title
				}
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestMappers names who maps memory, and the library that is known to leak.
func TestMappers(t *testing.T) {
	for text, want := range map[string]string{
		"Thread 5 called mmap(addr=(nil), length=8192)\n        syscall+29\n": "growth warning 1 calls map memory, and their stacks end in the C library (syscall): the caller has no frame pointers",
		"@[\n    mmap+71\n    ucm_bget+9\n    munmap+3\n]: 8192\n":            "mmap-leak problem ucm_bget maps memory: 1 of 1 call, 8 KiB UCX_MEM_MMAP_HOOK_MODE=none",
		"#0 mmap64 () from /lib/libc.so.6\n#1 take (n=1) at /a/b.c:7\n":       "growth warning take (b.c:7) maps memory: 1 of 1 call",
	} {
		f, err := sites.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		x := mappers(f)
		if got := strings.TrimSpace(fmt.Sprint(x.Kind, " ", x.Severity, " ", x.Title, " ", x.Remedies[0].Setting)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestChainsApart follows mappings of which nothing is resident, and thousands that each come once.
func TestChainsApart(t *testing.T) {
	for _, c := range chainsOf([][]profiles.Mapping{{{Start: 4096, End: 8192}}, {{Start: 4096, End: 8192}}}) {
		if c.grown() != 0 || len(c.levels) != 2 {
			t.Errorf("of nothing, %d bytes grew in %d texts", c.grown(), len(c.levels))
		}
	}
	const count = 3000
	var texts [][]profiles.Mapping
	for i := range uint64(count) {
		texts = append(texts, []profiles.Mapping{{Start: 1 << 20, End: 2 << 20, RSS: int64(i)}, {Start: i << 30, End: i<<30 + 4096, RSS: count - int64(i)}})
	}
	chains, levels := chainsOf(texts), 0
	for _, c := range chains {
		levels += len(c.levels) // what is kept grows with the mappings, not with texts times mappings
	}
	if first := chains[0]; first.grown() != count-2 || levels != 2*count {
		t.Errorf("%d bytes grew; %d levels of %d mappings", first.grown(), levels, 2*count)
	}
}
