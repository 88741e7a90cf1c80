package timeline

import (
	"slices"

	"strandline/stack"
)

// Missing is why no line of own code is known of an allocation.
type Missing string

// The causes. They exclude each other: what is older than the recording was
// made while nothing was recorded, whatever else holds.
const (
	BeforeRecording Missing = "before the recording"
	StacksOff       Missing = "stacks off"      // recording was on, without stacks
	AutogradThread  Missing = "autograd thread" // the backward pass runs in threads without Python frames
	NoOwnCode       Missing = "no own Python frame"
)

// Missing returns why no line of own code is known of allocation i, "" if one is.
func (t *Timeline) Missing(i int) Missing { return t.MissingIn(i, t.Stack(i)) }

// MissingIn is Missing where the stack of allocation i is known from elsewhere, as from
// its block.
func (t *Timeline) MissingIn(i int, id stack.ID) Missing { return t.MissingOf(id, t.Before(i)) }

// MissingOf returns why no line of own code is known of a stack, of an event or of what
// is older than all of them; "" if one is.
func (t *Timeline) MissingOf(id stack.ID, before bool) Missing {
	switch {
	case t.Snap.Stacks.Site(id) != stack.Site{}:
		return ""
	case before && id <= stack.Empty:
		return BeforeRecording
	case id == stack.None, id == stack.Empty && !t.hasStacks():
		return StacksOff
	case id == stack.Empty, stack.InBackward(t.Snap.Stacks.Stack(id)):
		return AutogradThread
	}
	return NoOwnCode
}

// findStacks reports whether any event of the history has a stack with frames.
func (t *Timeline) findStacks() bool {
	return slices.ContainsFunc(t.Trace.Stack, func(id stack.ID) bool { return id > stack.Empty })
}
