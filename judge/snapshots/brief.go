package snapshots

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/shell"
	"strandline/judge/shortage"
	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// accountOf is what memory is for, as a sum.
func accountOf(name string, held []use) *finding.Account {
	a := &finding.Account{Bytes: bytesOf(held), Name: name}
	for _, u := range held {
		a.Add(u.bytes, u.name)
	}
	return a
}

// inspecting is the command that shows a moment of a file; "" if there is none, or the
// file cannot be read again.
func inspecting(file string, event, device int) string {
	if event == timeline.Never || file == "-" {
		return ""
	}
	return fmt.Sprintf("strandline inspect %s --at %d%s   # event %d", shell.File(file), event, onDevice(device), event)
}

// onDevice is the flag that chooses a device, where it is not the first.
func onDevice(device int) string {
	if device == 0 {
		return ""
	}
	return fmt.Sprintf(" --device %d", device)
}

// recordingAgain is the command that records a program again, which names what keeps its
// tensors; "" if the stack does not name the program.
func recordingAgain(frames []stack.Frame) string {
	for _, f := range slices.Backward(frames) {
		if f.Function == "<module>" && stack.OriginOf(f) == stack.Own && strings.HasSuffix(f.File, ".py") {
			file := plain(f.File)
			return "strandline record -- python " + shell.File(file[strings.LastIndexAny(file, `/\`)+1:])
		}
	}
	return ""
}

// briefly fills in what the first screen states of a failure. The place of the request
// follows the title.
func (s *failedRequest) briefly(f *finding.Finding, o *digest.OOM, file string) {
	b := &f.Brief
	b.Title = shortage.Amount(s.request) + " requested"
	switch s.cause() {
	case shortage.Limit:
		limit := "a limit of PyTorch's share"
		if s.reserved != nil { // it would have been exceeded
			limit = "a limit below " + units.Bytes(*s.reserved+*s.driver)
		}
		b.Title, b.Fact = limit+": "+b.Title, shortage.Amount(s.free)+" was free on the device"
	case shortage.Fragmented:
		b.Title, b.Fact = "fragmentation: "+b.Title, units.Bytes(*s.room())+" was free"
		if hole := o.Hole(); hole > 0 {
			b.Fact += ", largest piece " + units.Bytes(hole)
		}
	case shortage.OthersHold:
		b.Title, b.Fact = "not PyTorch: "+b.Title, shortage.Amount(s.outside())+" is held outside PyTorch"
	case shortage.TooBig:
		b.Title, b.Fact = "too large: "+b.Title, "the device has "+shortage.Amount(s.capacity)
		if room := s.room(); room != nil {
			b.Fact = units.Bytes(*room) + " was free"
		}
	default:
		b.Fact = "the figures do not show the cause"
	}
	b.Account = s.account()
	b.Next = inspecting(file, o.Event, *f.Device)
}

// account is where the memory of the device was, or that which PyTorch had and could have
// had; nil if the figures do not add up.
func (s *failedRequest) account() *finding.Account {
	if s.free == nil || s.reserved == nil || s.active == nil {
		return nil
	}
	unused := "free in PyTorch's cache"
	if s.cause() == shortage.Fragmented {
		unused += ", in pieces"
	}
	a := &finding.Account{Bytes: *s.reserved + *s.free}
	if s.capacity != nil {
		a.Bytes = *s.capacity
	}
	a.Add(*s.active, "in use")
	a.Add(*s.reserved-*s.active, unused)
	a.Add(*s.free, "free on the device")
	if !a.Rest("outside PyTorch") {
		return nil
	}
	return a
}
