package report

import (
	"strandline/host/proc/hooks"
	"strings"
	"testing"
)

func TestHooksText(t *testing.T) {
	ucx := hooks.Library{Name: "UCX", Version: "1.18.1", Object: "/lib/libucm.so", Does: "watches every munmap", Leaks: "144 bytes for every munmap", Remedies: []string{"upgrade"}}
	slot := func(object string) hooks.Hook {
		return hooks.Hook{Symbol: "free", Mechanism: hooks.SlotPatched, Object: object, Owner: "/lib/libucm.so", OwnerSymbol: "ucm_free"}
	}
	found := &hooks.Scan{
		Hooks: []hooks.Hook{
			slot("/bin/a"), slot("/lib/b.so"),
			{Symbol: "munmap", Mechanism: hooks.CodePatched, Object: "/lib/libc.so.6"},
		},
		Breakpoints: []hooks.Breakpoint{{Function: "main", Object: "/bin/a", Address: 1}},
		Interposed:  []hooks.Interposed{{Object: "/lib/own.so", Symbols: []string{"calloc", "malloc"}}},
		Libraries:   []hooks.Library{ucx, {Name: "libfabric", Object: "/lib/f.so", Does: "can watch"}, {Name: "own", Object: "/lib/own.so", Does: "replaces"}},
		Slots:       12, Pages: 1, Unread: []string{"/lib/broken.so"},
	}
	d := NewHooks(1, found)
	if d.Leaking() {
		t.Error("a library that hooked nothing is reported to leak")
	}
	want := []string{
		"3 hooks",
		"  free leads to ucm_free of /lib/libucm.so", "    calls of free from 2 objects go there",
		"  munmap leads to an unnamed function of anonymous memory", "    every call of munmap goes there, and its own frame is missing from stacks",
		"a trap of a debugger or probe is in main of /bin/a",
		"/lib/own.so precedes libc for calloc, malloc",
		"UCX 1.18.1: /lib/libucm.so", "  watches every munmap",
		"  loaded, but has hooked nothing yet: 144 bytes for every munmap", "  → upgrade",
		"libfabric (version unknown): /lib/f.so", "  can watch", "  loaded, but has hooked nothing yet",
		"own (version unknown): /lib/own.so", "  replaces",
		"/lib/broken.so cannot be read; hooks in it cannot be seen",
		"compared 12 slots of offset tables and 1 page of modified code",
	}
	var text strings.Builder
	d.Text(&text, Style{})
	if got := strings.TrimSpace(text.String()); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}

	found.Libraries[0].Hooks = 2
	if d = NewHooks(1, found); !d.Leaking() {
		t.Error("a library that hooked functions and is known to leak is not reported")
	}
}
