package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// A failedRequest is the arithmetic of a request that failed. A nil figure is unknown.
type failedRequest struct {
	request  *int64 // rounded
	driver   *int64 // what the driver was asked for
	free     *int64 // of the driver
	reserved *int64
	active   *int64
	capacity *int64 // of the device
	process  *int64 // held by this process in all, according to a message
}

// room is everything the request could have used, had it been in one piece.
func (s *failedRequest) room() *int64 {
	return shortage.Room(s.free, s.reserved, s.active)
}

// outside is the memory held on the device outside PyTorch's allocator.
func (s *failedRequest) outside() *int64 {
	if s.capacity == nil || s.free == nil || s.reserved == nil {
		return nil
	}
	return finding.Int(*s.capacity - *s.free - *s.reserved)
}

// otherProcesses is the part of outside that exceeds the context of this process.
func (s *failedRequest) otherProcesses() int64 {
	if n := s.outside(); n != nil {
		return max(0, *n-shortage.ContextAllowance)
	}
	return 0
}

// own is the part of outside that this process itself holds, nil if unknown.
func (s *failedRequest) own() *int64 {
	n := s.outside()
	if n == nil || s.process == nil {
		return nil
	}
	return finding.Int(min(max(0, *s.process-*s.reserved), *n))
}

// mostlyOwn reports whether most of outside is known to belong to this process.
func (s *failedRequest) mostlyOwn() bool {
	own := s.own()
	return own != nil && 2**own > *s.outside()
}

// holders states who holds the memory outside PyTorch's allocator, as far as is known.
func (s *failedRequest) holders() string {
	return shortage.Holders(s.own(), s.outside())
}

// shareOfDevice is a part of the device's memory, with the device's size if that is known.
func (s *failedRequest) shareOfDevice(n int64) string {
	if s.capacity == nil {
		return units.Bytes(n)
	}
	return units.Bytes(n) + " of " + units.Bytes(*s.capacity)
}

// cause is why the request failed, "" if the figures do not show why.
func (s *failedRequest) cause() string {
	room := s.room()
	switch {
	case s.request == nil:
		return ""
	case s.capacity != nil && *s.request > *s.capacity-shortage.Known(s.active):
		return shortage.TooBig
	case s.free != nil && s.driver != nil && *s.free >= *s.driver:
		return shortage.Limit
	case room == nil:
		return ""
	case *room >= *s.request:
		return shortage.Fragmented
	case *room+s.otherProcesses() >= *s.request:
		return shortage.OthersHold
	}
	return shortage.TooBig
}

// title states in one sentence that memory ran out, and why.
func (s *failedRequest) title() string {
	return fmt.Sprintf("memory ran out: a request of %s %s", shortage.Amount(s.request), s.explain())
}

// explain states what became of the request, and the reason.
func (s *failedRequest) explain() string {
	switch s.cause() {
	case shortage.Limit:
		return fmt.Sprintf("failed although the driver had %s free: a limit stopped it", shortage.Amount(s.free))
	case shortage.Fragmented:
		return fmt.Sprintf("failed although %s was free: %s at the driver and %s in segments, in pieces",
			shortage.Amount(s.room()), shortage.Amount(s.free), shortage.Amount(finding.Int(*s.reserved-*s.active)))
	case shortage.OthersHold:
		return fmt.Sprintf("would have fitted, but %s of the device's %s is held outside PyTorch", shortage.Amount(s.outside()), shortage.Amount(s.capacity))
	case shortage.TooBig:
		if room := s.room(); room != nil {
			return fmt.Sprintf("did not fit: %s was active, and %s was available", shortage.Amount(s.active), shortage.Amount(room))
		}
		return fmt.Sprintf("did not fit into the device's %s", shortage.Amount(s.capacity))
	}
	return "failed"
}

// evidence adds what is known.
func (s *failedRequest) evidence(to *finding.OOMEvidence) {
	to.RequestBytes, to.DeviceFreeBytes, to.ReservedBytes, to.ActiveBytes = s.request, s.free, s.reserved, s.active
	to.CapacityBytes, to.OutsideBytes, to.Cause = s.capacity, s.outside(), s.cause()
}

// checkCapacity leaves out an impossible device size.
func (s *failedRequest) checkCapacity(f *finding.Finding) {
	if n := s.outside(); n != nil && *n < 0 {
		f.Detail = append(f.Detail, shortage.WrongCapacity(*s.capacity, *s.reserved, *s.free))
		s.capacity = nil
	}
}

// failureOf is the arithmetic of a failure, from what the file holds about it.
func failureOf(o *digest.OOM, known Options) *failedRequest {
	s := &failedRequest{capacity: known.Capacity}
	if o.Known.Request {
		s.request, s.driver = &o.Request, finding.Int(timeline.DriverSize(o.Request, o.Expandable))
	}
	if o.Known.DeviceFree {
		s.free = &o.DeviceFree
	}
	if o.Known.State {
		s.reserved, s.active = &o.Reserved, &o.Active
	}
	return s
}
