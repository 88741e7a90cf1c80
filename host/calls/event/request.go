package event

// A RequestOp is the outcome of a request to PyTorch's caching allocator, or what the
// driver did for it.
type RequestOp uint16

// What can happen. The segment operations come from the driver: a segment that is taken
// back need not be the allocator's.
const (
	RequestAlloc  RequestOp = iota + 1 // Size bytes, as the program asked for, were given at Addr
	RequestFree                        // the memory at Addr was given back
	RequestFailed                      // a request of Size bytes did not return
	SegmentAlloc                       // the driver gave Size bytes at Addr during a request
	SegmentFree                        // the driver is asked to take back the memory at Addr
	SegmentMap                         // the driver maps Size bytes at Addr during a request
	SegmentUnmap                       // the driver is asked to unmap Size bytes at Addr
)

// A Request is one call, by one thread. Calls that give memory back are seen when they
// begin, the others when they end, so an address is never given out before it was given
// back.
type Request struct {
	Time   uint64 // ns of the monotonic clock
	TID    uint32
	Op     RequestOp
	Device uint16 // 0xff where it is not known
	Addr   uint64
	Size   uint64
	Stream uint64
	// Stack is the number of the Python frames, see [RequestStack]; 0 if the thread ran
	// none.
	Stack uint64
}

// A RequestStack is the Python frames that a number stands for, innermost first. The
// number is a hash of the frames and of roughly the current second; they are delivered
// at least once in each second.
type RequestStack struct {
	ID     uint64
	Cut    bool // there are more frames
	Frames []PythonFrame
}

// Requests is what happened since the last batch.
type Requests struct {
	// Events are in an order in which they can have happened: memory is given back
	// before it is given again at the same address.
	Events []Request
	Stacks []RequestStack // of the events of this batch or a later one
	// The rest are totals since the start.
	Lost       uint64 // events that found no room
	LostStacks uint64 // stacks that found no room
}
