package processes

import (
	"fmt"
	"path/filepath"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/internal/lazyregexp"
	"strandline/units"
)

// A collector is a language's heap, whose garbage is collected. It is not malloc's, so heap
// profilers of malloc show nothing of it; the language has its own.
type collector struct {
	heap    string             // what it is called
	grows   *lazyregexp.Regexp // the functions that take memory from the kernel for it
	profile string             // how to see what is in it
}

var collectors = []collector{
	{"Go's heap", lazyregexp.New(`^runtime\.\(\*mheap\)`),
		"net/http/pprof's /debug/pprof/heap names the lines whose objects stay, /debug/pprof/goroutine the goroutines that do"},
	{"V8's heap", lazyregexp.New(`^v8::base::OS::|^v8::internal::(MemoryAllocator|PagedSpaceBase|CompactionSpace|SemiSpace)::`),
		"compare two heap snapshots (`node --heapsnapshot-signal=SIGUSR2`, or v8.writeHeapSnapshot): they name the holders of the objects that stay"},
	{"Java's heap", lazyregexp.New(`^os::(pd_)?commit_memory`),
		"compare two outputs of `jcmd PID GC.class_histogram`; -Xmx bounds the heap, -XX:MaxMetaspaceSize the classes"},
	{"PHP's heap", lazyregexp.New(`^zend_mm`),
		// the last of the list: see chunkOfPHP
		"memory_get_usage() between steps shows where it grows; memory_limit bounds it"},
}

// java states what Java's heap takes, for growth of a kind that may be its. More growth than it
// has is not its.
func (h host) java(kind finding.Kind) []string {
	if h.looks == nil || h.looks.After == nil || h.looks.After.Java == nil || kind != finding.HeapLeak && kind != finding.MmapLeak && kind != finding.ArenaRetention {
		return nil
	}
	java := h.looks.After.Java
	text := fmt.Sprintf("Java's heap has %s from the system", units.Bytes(java.Committed))
	if java.Used > 0 {
		text += fmt.Sprintf(", of which its last collection left %s in use", units.Bytes(java.Used))
	}
	if outside := h.looks.RSS - java.Committed; outside >= minHostBytes {
		text += fmt.Sprintf(": at least %s of the growth is outside of it, where Java's own tools do not look", units.Bytes(outside))
	}
	return []string{text}
}

// collectorOf returns the collector for whose heap calls took memory; nil if they did for
// something else, such as malloc, which the parts of a language in C call, too.
func collectorOf(u *ledger.Use) *collector {
	for _, f := range u.Frames {
		if mallocs.MatchString(f.Function) {
			return nil
		}
		for i := range collectors {
			if collectors[i].grows.MatchString(f.Function) {
				return &collectors[i]
			}
		}
		if chunkOfPHP(u, f) {
			return &collectors[len(collectors)-1]
		}
	}
	return nil
}

// ofPHP matches PHP's programs and libraries, which distributions strip.
var ofPHP = lazyregexp.New(`^(lib)?php[\d.]*(-fpm|-cgi)?($|\.so)`)

// chunkOfPHP reports whether a frame of a PHP without symbols mapped chunks of its heap, which
// are of 2 MiB.
func chunkOfPHP(u *ledger.Use, f symbolize.Frame) bool {
	return u.Op == event.Map && u.Size == 2<<20 && Unnamed(f.Function) && ofPHP.MatchString(filepath.Base(f.Object))
}

// remedy is what to do about objects that stay in the heap.
func (c *collector) remedy() finding.Remedy {
	return finding.CodeChange("drop the references, so that the collector can free the objects: " + c.profile)
}
