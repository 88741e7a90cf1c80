package processes

import (
	"strings"
	"testing"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
)

// What requested memory is above its allocator, with symbols or without.
func TestRequested(t *testing.T) {
	for _, c := range []struct{ frames, title, site string }{
		{"libc.so.6:mmap libc.so.6:sysmalloc_mmap.constprop.0 libc.so.6:sysmalloc libc.so.6:_int_malloc libc.so.6:malloc libxml2.so.2:xmlNewNode main:main", "xmlNewNode ← main", "xmlNewNode"},
		{"libc.so.6:mmap libjemalloc.so.2:libjemalloc.so.2+0x94b59 libjemalloc.so.2:libjemalloc.so.2+0x89993 redis:zmalloc redis:createObject", "zmalloc ← createObject", "zmalloc"},
		{"libc.so.6:mmap libjemalloc.so.2:libjemalloc.so.2+0x94b59 server:server+0x10 server:server+0x20 server:main", "server+0x10 ← main", "server+0x10"},
		{"libc.so.6:mmap redis:os_pages_map.isra.0 redis:je_pages_map redis:arena_grow redis:je_malloc_default redis:zmalloc", "zmalloc", "zmalloc"},
		{"libc.so.6:sbrk libtcmalloc.so.4:SbrkSysAllocator::Alloc(unsigned_long) libtcmalloc.so.4:tc_malloc mariadbd:my_malloc", "my_malloc", "my_malloc"},
		{"libc.so.6:mmap libmimalloc.so.2:_mi_os_alloc libmimalloc.so.2:mi_malloc app:load", "load", "load"},
		{"libucm.so.0:ucm_orig_mmap libucm.so.0:ucm_mmap libc.so.6:sysmalloc libc.so.6:malloc main:grow", "grow", "grow"},
		{"libc.so.6:mmap prof:hook_grow prof:hook libc.so.6:malloc main:grow", "hook_grow ← hook ← grow", "hook_grow"}, // a profiler's own
		{"libc.so.6:mmap libc.so.6:malloc", "", ""},
		{"libc.so.6:mprotect node:v8::base::OS::SetPermissions(void*,int(*)(char)) node:f(int)::{lambda()#1}::operator()(int)", "v8::base::OS::SetPermissions ← f(int)::{lambda()#1}::operator()",
			"v8::base::OS::SetPermissions(void*,int(*)(char))"},
		{"libc.so.6:mmap app:A::operator() app:B::f(int)& app:C::g(int) app:runtime.(*mheap).grow", "A::operator() ← B::f ← C::g ← runtime.(*mheap).grow", "A::operator()"},
		{strings.Join(ucxLeak, " "), "ucm_orig_mmap_syscall ← ucs_mpool_grow ← ucm_event_dispatch ← ucm_munmap ← decode_step server.py:7", "decode_step"},
		{"libc.so.6:mmap python3.11:new_arena python3.11:_PyObject_Malloc python3.11:PyTuple_New app.py:load", "PyTuple_New ← load app.py:7", "load"},
	} {
		u := made(event.Map, ledger.Anonymous, 1<<20, strings.Fields(c.frames)...)
		if got := callPath(u.Frames); got != c.title {
			t.Errorf("%s: through %q, want %q", c.frames, got, c.title)
		}
		site := HostSite(u.Frames)
		if (site == nil) != (c.site == "") || site != nil && site.Function != c.site {
			t.Errorf("%s: at %+v, want %q", c.frames, site, c.site)
		}
	}
}
