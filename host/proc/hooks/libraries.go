package hooks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strandline/host/code/image"
	"strandline/internal/lazyregexp"
)

// A Library is a loaded library that is known to hook or replace functions that
// allocate memory.
type Library struct {
	Name    string // such as "UCX"
	Version string // empty where it is not known
	Object  string
	Does    string // what it does to the process, as a sentence
	// Leaks states how this version is known to leak memory; empty if it is not.
	Leaks    string
	Hooks    int // how many functions it took over
	Remedies []string
}

type fingerprint struct{ name, does string }

// fingerprints recognize a library by what it exports: wheels ship renamed copies, so
// file names do not identify them.
var fingerprints = map[string]fingerprint{
	"ucm_set_event_handler":           {"UCX", "watches every mmap, munmap, brk and similar calls, to keep its cache of registered memory true"},
	"mca_patcher_overwrite_component": {"Open MPI", "its memory patcher watches munmap and similar calls"},
	"opal_patcher_base_framework":     {"Open MPI", "its memory patcher watches munmap and similar calls"},
	"fi_getinfo":                      {"libfabric", "its memory monitor can watch munmap and similar calls"},
	"heaptrack_malloc":                {"heaptrack", "records every allocation on the heap"},
	"PyInit__memray":                  {"memray", "records allocations: malloc and similar calls, mmap, munmap"},
	"cuptiSubscribe":                  {"CUPTI", "can watch the calls of CUDA"},
	"mallocx":                         {"jemalloc", "replaces malloc; freed memory goes back to the system after a time"},
	"je_mallocx":                      {"jemalloc", "replaces malloc for those that ask it to; freed memory goes back to the system after a time"},
	"tc_malloc":                       {"tcmalloc", "replaces malloc; freed memory goes back to the system slowly"},
	"mi_malloc":                       {"mimalloc", "replaces malloc, or serves those that ask it to"},
}

// librariesAmong returns the libraries whose fingerprints are among the exports.
func librariesAmong(im *image.Image, instances []*instance) (out []Library) {
	copies := ucxCopies{}
	for _, in := range instances {
		for _, d := range in.dynamics {
			if !d.Defined {
				continue
			}
			switch {
			case d.Name == "ucp_get_version":
				c := copies.of(in.object)
				c.name, c.version = in.object.Name(), ucxVersion(in.object, d.Addr)
			case d.Name == "ucs_rcache_create":
				copies.of(in.object).cache = true
			case strings.HasPrefix(d.Name, "ucs_interval_tree_"):
				copies.of(in.object).interval = true
			}
			f, ok := fingerprints[d.Name]
			if ok && !slices.ContainsFunc(out, func(x Library) bool { return x.Name == f.name && x.Object == in.object.Path }) {
				out = append(out, Library{Name: f.name, Object: in.object.Path, Does: f.does})
			}
		}
	}
	out = slices.DeleteFunc(out, func(l Library) bool { return allocators[l.Name] && records(out, l.Object) })
	env := environ(im)
	copies.findUsers(instances)
	for i := range out {
		if out[i].Name != "UCX" {
			continue
		}
		if hooksOff(env) {
			out[i].Does = "can watch every mmap, munmap, brk and similar calls; UCX_MEM_MMAP_HOOK_MODE=none, with which it started, turns that off"
		}
		own := copies[filepath.Dir(out[i].Object)]
		if own == nil {
			continue
		}
		out[i].Version = own.version
		if own.cache && !own.interval && ucxLeaks(own.version) {
			leaksByUnmapping(&out[i], env, own.users > 0 && own.bounding == own.users)
		}
	}
	if path := env["CUDA_INJECTION64_PATH"]; path != "" {
		out = append(out, Library{Name: "CUDA injection", Object: path, Does: "was put into the process by a profiler of CUDA"})
	}
	return out
}

// A ucxCopy is one of the copies of UCX in a process: wheels bring their own.
type ucxCopy struct {
	name, version   string // of the file that has ucp_get_version: libucp.so.0.0.0
	interval, cache bool
	// users are the objects that make contexts with it, bounding those that bound the cache of theirs.
	users, bounding int
}

// ucxCopies are those of a process, by the folder that their libraries are in.
type ucxCopies map[string]*ucxCopy

// of is the copy that an object is a part of.
func (u ucxCopies) of(o *image.Object) *ucxCopy {
	folder := filepath.Dir(o.Path)
	if u[folder] == nil {
		u[folder] = &ucxCopy{}
	}
	return u[folder]
}

// findUsers counts the users of each copy, by what they are linked with: one that is loaded for all can take their
// calls, but has contexts of others too. NIXL since 1.0 bounds the cache of its own.
func (u ucxCopies) findUsers(instances []*instance) {
	for _, in := range instances {
		uses, modifies := false, false
		for _, d := range in.dynamics {
			modifies = modifies || !d.Defined && d.Name == "ucp_config_modify"
			uses = uses || modifies || !d.Defined && d.Name == "ucp_init_version"
		}
		if !uses {
			continue
		}
		linked := u.linked(in.object.Needed())
		bounds := modifies && len(linked) == 1 && in.object.HasText("RCACHE_MAX_UNRELEASED")
		for _, c := range linked {
			if c.users++; bounds {
				c.bounding++
			}
		}
	}
}

// linked are the copies that the names of libraries can mean; the only one where they mean none.
func (u ucxCopies) linked(needed []string) (out []*ucxCopy) {
	for _, c := range u {
		if len(u) == 1 || slices.ContainsFunc(needed, func(name string) bool { return name == c.name || strings.HasPrefix(c.name, name+".") }) {
			out = append(out, c)
		}
	}
	return out
}

// allocators are the libraries among these that replace malloc.
var allocators = map[string]bool{"jemalloc": true, "tcmalloc": true, "mimalloc": true}

// records reports whether an object belongs to a recorder, which exports the allocator
// functions to see calls of them.
func records(among []Library, object string) bool {
	return slices.ContainsFunc(among, func(l Library) bool {
		return (l.Name == "heaptrack" || l.Name == "memray") && l.Object == object
	})
}

// hooksOff reports whether UCX is configured to hook nothing.
func hooksOff(env map[string]string) bool {
	return strings.EqualFold(env["UCX_MEM_MMAP_HOOK_MODE"], "none")
}

func environ(im *image.Image) map[string]string {
	env, err := im.Process.Environ()
	if err != nil {
		return nil
	}
	return env
}

// ucxVersion reads the three numbers that ucp_get_version stores for its
// caller: mov dword [rdi], major; [rsi], minor; [rdx], release.
func ucxVersion(o *image.Object, addr uint64) string {
	code := make([]byte, 64)
	n, err := o.ReadAddr(code, addr)
	if err != nil {
		return ""
	}
	var parts []string
	for _, store := range [][]byte{{0xc7, 0x07}, {0xc7, 0x06}, {0xc7, 0x02}} {
		i := bytes.Index(code[:n], store)
		if i < 0 || i+6 > n {
			return ""
		}
		parts = append(parts, fmt.Sprint(binary.LittleEndian.Uint32(code[i+2:])))
	}
	return strings.Join(parts, ".")
}

// ucxLeaks reports whether a version keeps an entry for each munmap: those from 1.17 to
// 1.20 do. An unknown version is assumed to.
func ucxLeaks(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return true
	}
	return major == 1 && minor >= 17 && minor < 21
}

// isOff reports whether UCX understands a setting as "no".
func isOff(setting string) bool {
	return slices.Contains([]string{"n", "no", "off", "0"}, strings.ToLower(setting))
}

// leaksByUnmapping states what the cache costs, unless a setting of the process prevents
// it, or else the caller of UCX, which may have bounded the cache.
func leaksByUnmapping(k *Library, env map[string]string, bounded bool) {
	max := strings.ToLower(env["UCX_RCACHE_MAX_UNRELEASED"])
	if max == "" && bounded {
		return
	}
	if hooksOff(env) || isOff(env["UCX_RCACHE_ENABLE"]) || max != "" && max != "inf" {
		return
	}
	k.Leaks = "UCX 1.17 to 1.20 keep 144 bytes for every munmap of the process, whoever calls it; fixed in 1.21"
	k.Remedies = []string{
		"upgrade UCX to 1.21 or newer (NIXL wheels bundle their own copy)",
		"set UCX_RCACHE_MAX_UNRELEASED=1024 before the process starts",
		"set UCX_MEM_MMAP_HOOK_MODE=none before it starts, where memory is registered once",
	}
}

// LeakOf is how a library leaks that maps memory in a call of these functions, and the ways to
// end that; "" for others. UCX maps more for its cache inside the munmap of others.
func LeakOf(functions []string) (leaks string, remedies []string) {
	if !slices.ContainsFunc(functions, ucxGrows.MatchString) {
		return "", nil
	}
	k := &Library{}
	leaksByUnmapping(k, nil, false)
	return k.Leaks, k.Remedies
}

// ucxGrows are functions of UCX in whose call its cache takes memory.
var ucxGrows = lazyregexp.New(`^ucm_bget|^ucs_rcache|^ucs_mpool|^uc[ms]_\w*munmap`)
