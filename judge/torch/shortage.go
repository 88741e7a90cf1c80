package torch

import (
	"fmt"

	"strandline/finding"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// The causes for which a request fails.
const (
	causeLimit      = "limit"      // the driver had room: PyTorch is told not to take it
	causeFragmented = "fragmented" // enough was free, in pieces
	causeTooBig     = "too-big"    // it did not fit
	causeOutside    = "outside"    // it would have, were it not for what others hold
)

// A shortage is the arithmetic of a request that failed. What is nil is unknown.
type shortage struct {
	request  *int64 // rounded
	driver   *int64 // what the driver was asked for
	free     *int64 // of the driver
	reserved *int64
	active   *int64
	capacity *int64 // of the device
	process  *int64 // held by this process in all, as a message states
}

// room is all that the request could have had, had it been in one piece.
func (s *shortage) room() *int64 {
	if s.free == nil || s.reserved == nil || s.active == nil {
		return nil
	}
	return finding.Int(*s.free + *s.reserved - *s.active)
}

// contextAllowance is what a process of PyTorch itself takes of a device beside its
// segments: the CUDA context and loaded kernels, some hundred MiB.
const contextAllowance = 640 << 20

// outside is what is held on the device by others than PyTorch's allocator.
func (s *shortage) outside() *int64 {
	if s.capacity == nil || s.free == nil || s.reserved == nil {
		return nil
	}
	return finding.Int(*s.capacity - *s.free - *s.reserved)
}

// others is what of that is more than the context of this process.
func (s *shortage) others() int64 {
	if n := s.outside(); n != nil {
		return max(0, *n-contextAllowance)
	}
	return 0
}

// own is what of it this process itself holds, nil where that is unknown.
func (s *shortage) own() *int64 {
	n := s.outside()
	if n == nil || s.process == nil {
		return nil
	}
	return finding.Int(min(max(0, *s.process-*s.reserved), *n))
}

// mostlyOwn reports whether most of what is outside is known to be of this process.
func (s *shortage) mostlyOwn() bool {
	own := s.own()
	return own != nil && 2**own > *s.outside()
}

// holders are who holds what is outside, as far as it is known.
func (s *shortage) holders() string {
	own := s.own()
	if own == nil {
		return "the context, other libraries, other processes"
	}
	return fmt.Sprintf("%s by this process (its context, other libraries), %s by others", units.Bytes(*own), units.Bytes(*s.outside()-*own))
}

// ofDevice is a part of the device's memory, beside its size if that is known.
func (s *shortage) ofDevice(n int64) string {
	if s.capacity == nil {
		return units.Bytes(n)
	}
	return units.Bytes(n) + " of " + units.Bytes(*s.capacity)
}

// inUse is what is known to be in use.
func (s *shortage) inUse() int64 {
	if s.active == nil {
		return 0
	}
	return *s.active
}

// cause is why the request failed, "" if the figures do not show it.
func (s *shortage) cause() string {
	room := s.room()
	switch {
	case s.request == nil:
		return ""
	case s.capacity != nil && *s.request > *s.capacity-s.inUse():
		return causeTooBig
	case s.free != nil && s.driver != nil && *s.free >= *s.driver:
		return causeLimit
	case room == nil:
		return ""
	case *room >= *s.request:
		return causeFragmented
	case *room+s.others() >= *s.request:
		return causeOutside
	}
	return causeTooBig
}

// title says in a sentence that and why memory ran out.
func (s *shortage) title() string {
	return fmt.Sprintf("memory ran out: a request of %s %s", amount(s.request), s.why())
}

// amount is a number of bytes that can be unknown.
func amount(n *int64) string {
	if n == nil {
		return "an unknown amount"
	}
	return units.Bytes(*n)
}

// why says what became of the request, and why.
func (s *shortage) why() string {
	switch s.cause() {
	case causeLimit:
		return fmt.Sprintf("failed though the driver had %s free: a limit stopped it", amount(s.free))
	case causeFragmented:
		return fmt.Sprintf("failed though %s was free: %s of the driver's and %s in segments, in pieces",
			amount(s.room()), amount(s.free), amount(finding.Int(*s.reserved-*s.active)))
	case causeOutside:
		return fmt.Sprintf("would have fitted, but %s of the device's %s is held outside PyTorch", amount(s.outside()), amount(s.capacity))
	case causeTooBig:
		if room := s.room(); room != nil {
			return fmt.Sprintf("did not fit: %s was in use, and %s could be had", amount(s.active), amount(room))
		}
		return fmt.Sprintf("did not fit into the device's %s", amount(s.capacity))
	}
	return "failed"
}

// evidence adds what is known.
func (s *shortage) evidence(to *finding.OOMEvidence) {
	to.RequestBytes, to.DeviceFreeBytes, to.ReservedBytes, to.ActiveBytes = s.request, s.free, s.reserved, s.active
	to.CapacityBytes, to.OutsideBytes, to.Cause = s.capacity, s.outside(), s.cause()
}

// checkCapacity leaves out a size of the device that cannot be.
func (s *shortage) checkCapacity(f *finding.Finding) {
	if n := s.outside(); n != nil && *n < 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("a device of %s cannot be: PyTorch had reserved %s and %s more was free; the size given is not used",
			units.Bytes(*s.capacity), units.Bytes(*s.reserved), units.Bytes(*s.free)))
		s.capacity = nil
	}
}

// failureOf is the arithmetic of a failure, of what the file holds of it.
func failureOf(o *digest.OOM, known Options) *shortage {
	s := &shortage{capacity: known.Capacity}
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
