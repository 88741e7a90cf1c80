package bpf

import "strandline/host/calls/event"

// The layouts of requests.c.
const (
	requestSize      = 48
	requestStackHead = 16
	requestFrameSize = 24

	// Of a thread.
	requestThreadStack = 24
	requestThreadOpen  = 76
	requestThreadHead  = 80
)

// A RequestPlace is a place in the code of the allocator's library, as an offset in
// its file.
type RequestPlace struct {
	At   RequestKind
	File uint64
}

// A RequestKind is what happens at a [RequestPlace].
type RequestKind uint8

// The kinds.
const (
	RequestBegins RequestKind = iota // malloc(this, *address, device, size, stream) begins
	RequestEnds                      // the call returns to its caller
	FreeBegins                       // a function with arguments (address) that frees memory
	DeleteBegins                     // a function with arguments (this, address) that frees memory
)

// driverRequests maps the driver functions by which the allocator takes memory and
// gives it back to what each does; 0 means that this is only known when the function
// returns.
var driverRequests = map[string]event.RequestOp{
	"cuMemAlloc_v2": 0,
	"cuMemFree_v2":  event.SegmentFree,
	"cuMemMap":      event.SegmentMap,
	"cuMemUnmap":    event.SegmentUnmap,
}

func decodeRequest(b []byte) event.Request {
	return event.Request{
		Time: order.Uint64(b), TID: order.Uint32(b[8:]), Op: event.RequestOp(order.Uint16(b[12:])), Device: order.Uint16(b[14:]),
		Addr: order.Uint64(b[16:]), Size: order.Uint64(b[24:]), Stream: order.Uint64(b[32:]), Stack: order.Uint64(b[40:]),
	}
}

func decodeRequestStack(b []byte) event.RequestStack {
	s := event.RequestStack{ID: order.Uint64(b), Cut: order.Uint32(b[12:]) != 0}
	n := min(int(order.Uint32(b[8:])), pythonFrames, (len(b)-requestStackHead)/requestFrameSize)
	s.Frames = make([]event.PythonFrame, n)
	for i := range s.Frames {
		f := b[requestStackHead+i*requestFrameSize:]
		s.Frames[i] = event.PythonFrame{Code: order.Uint64(f), Instruction: order.Uint64(f[8:]), Owner: uint16(order.Uint32(f[16:])), Names: order.Uint32(f[20:])}
	}
	return s
}

// spanOf returns how many bytes of a frame hold the fields that are read.
func spanOf(p *event.PythonLayout) uint32 {
	span := max(p.Code, p.Previous, p.Instruction) + 8
	if p.Owner != event.Absent {
		span = max(span, p.Owner&^7+8)
	}
	return span
}

// maxSpan is less than the room that requests.c has.
const maxSpan = 120
