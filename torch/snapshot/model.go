// Package snapshot holds what torch.cuda.memory._snapshot() records of PyTorch's
// caching allocator, of every version from 1.13 on and of each writer, as
// columns: a trace of a million events is a handful of slices, stacks and
// strings are interned once. It does not interpret them: what lived when is
// package timeline, what memory is for is package purpose.
//
// [Open] and [Read] accept pickles of every protocol, the same as JSON text,
// and both compressed. A damaged or truncated file yields what could be read,
// with [Snapshot.Partial] set and no error: callers must look at it.
// [Snapshot.Write] writes what PyTorch would have written.
//
// The bytes of a file become columns in three steps: package pickle (or json.go, for
// JSON) drives the builder (build.go), which recognizes each record by its keys
// (recognize.go), appends it to its columns (columns.go), and puts the snapshot
// together at the end (assemble.go).
//
// All sizes are bytes, all times microseconds since the Unix epoch. Sizes and
// addresses are as in the file, however absurd; [Snapshot.Sane] returns the
// snapshot without impossible ones.
package snapshot

import (
	"fmt"
	"sort"
	"strconv"

	"strandline/stack"
)

// A Snapshot is one file. Its parts share Stacks and the interned columns.
type Snapshot struct {
	Name     string // as given to Open, "" if read from elsewhere
	Format   Format
	Segments []Segment // in the order of the file: by address inside a device, [Host] last
	Traces   []Trace   // one for each device, by index; possibly empty; [Host] last

	Annotations []Annotation
	Settings    *Settings // nil where the file has none
	Stacks      *stack.Table
	Strings     []string // by StringID; 0 is "absent"
	Streams     []uint64 // by StreamID: cudaStream_t, 0 is the default stream
	Pools       []Pool   // by PoolID; 0 is "absent"

	// Extra are top-level keys that are not PyTorch's, such as rank or step.
	Extra []Field
	// UnknownKeys lists keys inside the known records that this reader has no
	// column for, as "record.key". Their values are kept in the records' Extra.
	UnknownKeys []string

	Drawn   bool     // from another tool's profiles: no release of PyTorch writes it
	Partial *Partial // nil if the file was read to its end
	Faults  []string // rules of the format that the file breaks, a sentence each
	// BadSizes are those of them about impossible sizes, see [Snapshot.Sane].
	BadSizes []string

	present presence
	details []detail // of blocks: legacy history, unknown keys
	ids     map[string]StringID
}

type detail struct {
	history []historyEntry
	extra   []Field
}

// frameExtra is the Extra of a frame in the stack table.
type frameExtra struct {
	fields []Field
	lacks  keySet
}

// FrameExtra are the fields of a frame that have no column, such as the node
// of torch.fx that generated it.
func (s *Snapshot) FrameExtra(id stack.FrameID) []Field {
	x, _ := s.Stacks.Extra(id).(frameExtra)
	return x.fields
}

// Format states how the file was written.
type Format struct {
	Encoding    string // "pickle" or "json"
	Protocol    int    // of a pickle, otherwise -1
	Compression string // "", "gzip" or "zstd"
	// BareList is a list of segments without history, as
	// torch.cuda.memory_snapshot() returns it.
	BareList bool
}

// Partial states where reading ended and why.
type Partial struct {
	Offset   int64 // bytes into the uncompressed data
	Err      error
	Unpacked bool // the file is compressed: Offset is not one of the file
}

// Place is the offset in words, such as "byte 7" or "byte 7 of the unpacked
// data".
func (p *Partial) Place() string {
	if p.Unpacked {
		return fmt.Sprintf("byte %d of the unpacked data", p.Offset)
	}
	return fmt.Sprintf("byte %d", p.Offset)
}

// StringID, StreamID and PoolID name entries of the Snapshot's tables.
type (
	StringID uint32
	StreamID uint32
	PoolID   uint32
)

// A Pool is an allocator pool's id. {0, 0} is the default pool, {n, 0} was made
// by a CUDA graph, {0, n} by a graph_pool_handle() or a MemPool.
type Pool struct{ Graph, User int64 }

// Private reports whether the pool is not the default one.
func (p Pool) Private() bool { return p != Pool{} }

func (p Pool) String() string {
	if !p.Private() {
		return "default"
	}
	return "(" + strconv.FormatInt(p.Graph, 10) + "," + strconv.FormatInt(p.User, 10) + ")"
}

// A Field is a key and its value as plain Go data: nil, bool, int64, uint64,
// *big.Int, float64, string, []byte, []any, Tuple or []Field. In the Extra of a
// record, a field named like a column holds what the column cannot.
type Field struct {
	Key   any
	Value any
}

// A Tuple is a Python tuple: pool ids are, lists are not.
type Tuple []any

// A Segment is one reservation from the driver, or one contiguous mapped run of
// an expandable segment.
type Segment struct {
	Device                                              int
	Addr                                                uint64
	TotalSize, AllocatedSize, ActiveSize, RequestedSize int64 // as the file states them
	Stream                                              StreamID
	Type                                                StringID // "small" or "large": the pool's kind, not the size
	Pool                                                PoolID
	Expandable                                          bool
	Stack                                               stack.ID // of the cudaMalloc or the first mapping
	Blocks                                              []Block  // in address order
	Extra                                               []Field
	lacks                                               keySet
}

// Contains reports whether addr is in the segment.
func (s *Segment) Contains(addr uint64) bool {
	return addr-s.Addr < uint64(s.TotalSize)
}

// Free is the number of bytes in inactive blocks.
func (s *Segment) Free() (bytes int64) {
	for i := range s.Blocks {
		if s.Blocks[i].State == Inactive {
			bytes += s.Blocks[i].Size
		}
	}
	return bytes
}

// A State of a block.
type State uint8

// The states of a block. A block that is pending was freed by the program and
// waits for another stream.
const (
	Inactive State = iota
	Allocated
	Pending
	UnknownState
)

var stateNames = [...]string{"inactive", "active_allocated", "active_pending_free", "unknown"}

func (s State) String() string { return stateNames[s] }

// Active is allocated or pending.
func (s State) Active() bool { return s == Allocated || s == Pending }

// A Block is a piece of a segment.
type Block struct {
	Addr      uint64
	Size      int64 // rounded
	Requested int64 // as the program asked; stale on inactive blocks
	Stack     stack.ID
	State     State
	form      blockForm
	detail    uint32 // index into Snapshot.details, 0 for none
}

// blockForm is how the file writes a block. The zero value is PyTorch 2.6's.
type blockForm struct {
	noRequested, noAddress, noFrames bool
	awaiting                         bool // Pending by the name of the docstrings
}

// An Action of a trace event.
type Action uint8

// The actions of the allocator. OtherAction is one that this reader does not
// know, named by the event's Extra.
const (
	Alloc Action = iota
	FreeRequested
	FreeCompleted
	SegmentAlloc
	SegmentFree
	SegmentMap
	SegmentUnmap
	OOM
	SnapshotTaken
	Annotate
	OtherAction
)

var actionNames = [...]string{
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
	"oom", "snapshot", "annotate", "other",
}

func (a Action) String() string { return actionNames[a] }

// Events are the columns of a trace; element k of each is of event k. A column
// of which the file has nothing is nil.
type Events struct {
	Action []Action
	Addr   []uint64 // of an OOM: the driver's free bytes, see [Events.DeviceFree]
	Size   []int64  // requested bytes of a block, bytes of a segment, rounded bytes of an OOM
	Stream []StreamID
	Stack  []stack.ID
	Time   []int64 // 0 where unknown
	// PyTorch 2.8, 2.10, 2.12 on; files made by its profiler.
	CompileContext, UserMetadata []StringID
	Pool                         []PoolID
	Category                     []StringID
}

// Len is the number of events.
func (e *Events) Len() int { return len(e.Action) }

// DeviceFree returns what the driver had left at an OOM event, if the file has it; see
// [Trace.HasDeviceFree].
func (e *Events) DeviceFree(k int) int64 { return int64(e.Addr[k]) }

func (e *Events) slice(from, to int) Events {
	out := Events{
		Action: e.Action[from:to:to], Addr: e.Addr[from:to:to], Size: e.Size[from:to:to],
		Stream: e.Stream[from:to:to], Stack: e.Stack[from:to:to],
	}
	if e.Time != nil {
		out.Time = e.Time[from:to:to]
	}
	for _, c := range []struct{ to, from *[]StringID }{
		{&out.CompileContext, &e.CompileContext}, {&out.UserMetadata, &e.UserMetadata}, {&out.Category, &e.Category},
	} {
		if *c.from != nil {
			*c.to = (*c.from)[from:to:to]
		}
	}
	if e.Pool != nil {
		out.Pool = e.Pool[from:to:to]
	}
	return out
}

// A Trace is the history of one device, oldest event first.
type Trace struct {
	Device int
	Events
	extra []eventExtra // by event
}

// eventExtra is what the columns do not hold of an event.
type eventExtra struct {
	event  int
	fields []Field
	lacks  keySet // keys that have a column, but are missing
}

// Extra are the fields of event k that have no column.
func (t *Trace) Extra(k int) []Field { return t.extraAt(k).fields }

func (t *Trace) extraAt(k int) eventExtra {
	i := t.firstExtra(k)
	if i < len(t.extra) && t.extra[i].event == k {
		return t.extra[i]
	}
	return eventExtra{}
}

// HasSize reports whether event k has a possible size.
func (t *Trace) HasSize(k int) bool {
	return sane(t.Size[k]) && !t.extraAt(k).lacks.has(kSize)
}

// HasDeviceFree reports whether an OOM event states what the driver had left, and that
// is possible.
func (t *Trace) HasDeviceFree(k int) bool {
	free := t.DeviceFree(k)
	return sane(free) && (free > 0 || !t.extraAt(k).lacks.has(kDeviceFree))
}

// firstExtra is the index of the first extra of event k or a later one.
func (t *Trace) firstExtra(k int) int {
	return sort.Search(len(t.extra), func(i int) bool { return t.extra[i].event >= k })
}

// Slice is the trace of the events from to to-1. It shares the columns.
func (t *Trace) Slice(from, to int) Trace {
	out := Trace{Device: t.Device, Events: t.Events.slice(from, to)}
	for _, x := range t.extra[t.firstExtra(from):t.firstExtra(to)] {
		x.event -= from
		out.extra = append(out.extra, x)
	}
	return out
}

// An Annotation marks the start or the end of a record_function scope.
type Annotation struct {
	Name   string
	End    bool // otherwise the start
	Device int
	Time   int64
	Extra  []Field
	lacks  keySet
}

// Settings are the allocator's at the moment of the snapshot.
type Settings struct {
	Conf               string // PYTORCH_CUDA_ALLOC_CONF
	MaxSplitSize       int64  // -1 is unlimited
	GCThreshold        float64
	ExpandableSegments bool
	Roundup            []Field
	TraceMaxEntries    []int64 // by device (2.12 on), nil if absent
	TraceOverflowed    []bool
	fields             []Field
}

// Stream is the cudaStream_t of an id.
func (s *Snapshot) Stream(id StreamID) uint64 { return s.Streams[id] }

// String is the text of an id, "" if absent.
func (s *Snapshot) String(id StringID) string { return s.Strings[id] }

// PoolOf is the pool of an id; absent is the default pool.
func (s *Snapshot) PoolOf(id PoolID) Pool { return s.Pools[id] }

// Host is the index of pinned host memory, where it was recorded (PyTorch 2.14 on):
// an allocator of its own, but no device.
const Host = -1

// DeviceName returns the printed form of a device's index.
func DeviceName(index int) string {
	if index == Host {
		return "pinned host memory"
	}
	return "device " + strconv.Itoa(index)
}

// Device is a device that the file mentions, or its pinned host memory.
type Device struct {
	Index    int    // or Host
	Trace    *Trace // never nil, possibly empty
	Segments []int  // indices into Snapshot.Segments
}

// Devices returns those that have segments or events, by index and [Host] last. A
// file without either has device 0 alone, empty.
func (s *Snapshot) Devices() []Device {
	byIndex := map[int]*Device{}
	get := func(i int) *Device {
		d := byIndex[i]
		if d == nil {
			d = &Device{Index: i, Trace: &Trace{Device: i}}
			byIndex[i] = d
		}
		return d
	}
	for i := range s.Traces {
		if s.Traces[i].Len() > 0 {
			get(s.Traces[i].Device).Trace = &s.Traces[i]
		}
	}
	for i := range s.Segments {
		d := get(s.Segments[i].Device)
		d.Segments = append(d.Segments, i)
	}
	if len(byIndex) == 0 {
		get(0)
	}
	out := make([]Device, 0, len(byIndex))
	for _, d := range byIndex {
		out = append(out, *d)
	}
	sort.Slice(out, func(a, b int) bool { return DeviceLess(out[a].Index, out[b].Index) })
	return out
}

// DeviceLess is the order of devices: by index, with [Host] last.
func DeviceLess(a, b int) bool { return uint(a) < uint(b) }

// HasHistory reports whether the form of the file can hold events; a bare list of
// segments cannot.
func (s *Snapshot) HasHistory() bool { return !s.Format.BareList }

// String returns how a file was written: "pickle, protocol 4, zstd".
func (f Format) String() string {
	s := f.Encoding
	if f.Encoding == "pickle" {
		s += ", protocol " + strconv.Itoa(f.Protocol)
	} else if s == "json" {
		s = "JSON"
	}
	if f.Compression != "" {
		s += ", " + f.Compression
	}
	return s
}
