package logs

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/logs"
	"strandline/units"
)

// An account is the arithmetic of PyTorch's message. What is nil is unknown.
type account struct {
	*logs.OOM
	request  *int64
	free     *int64 // of the driver
	reserved *int64
	active   *int64
	capacity *int64 // of the device

	// A limit that the message states, and what counts against it.
	allowed, held *int64
}

// accountOf is the arithmetic of a message; of one that contradicts itself there
// is the request alone.
func accountOf(o *logs.OOM, known Options) *account {
	a := &account{OOM: o, request: o.Request, free: o.Free, reserved: o.Reserved, active: o.Allocated, capacity: known.Capacity}
	if o.Total != nil {
		a.capacity = o.Total
	}
	if Contradictory(o) && !a.lent() {
		return &account{OOM: o, request: o.Request}
	}
	switch o.Wording {
	case logs.Async:
		a.allowed, a.held = o.Allowed, o.Allocated
		if o.Allowed != nil && o.Total != nil && *o.Allowed >= *o.Total {
			a.allowed = nil // the whole device is allowed
		}
	case logs.Metal:
		a.capacity = nil // PyTorch shares it with the rest of the system
		if o.Reserved != nil && o.Others != nil {
			a.allowed, a.held = o.Allowed, finding.Int(*o.Reserved+*o.Others)
		}
	default:
		a.allowed, a.held = o.Allowed, o.Reserved
	}
	return a
}

// Contradictory reports whether the figures of a message cannot all be true.
func Contradictory(o *logs.OOM) bool { return contradictions(o) != nil }

// contradictions are the figures of a message that cannot all be true, in words.
func contradictions(o *logs.OOM) (out []string) {
	if o.Total == nil {
		return nil
	}
	const least = 32 << 20
	slack := max(least, *o.Total/100) // the figures are rounded
	say := func(n *int64, format string) {
		if n != nil && *n > *o.Total+slack {
			out = append(out, fmt.Sprintf(format+" on a device of %s", units.Bytes(*n), units.Bytes(*o.Total)))
		}
	}
	say(o.Allocated, "%s in use")
	say(o.Free, "%s free")
	say(o.InUse, "%s held by one process")
	held := o.Reserved
	if held == nil {
		held = o.Allocated
	}
	if out == nil {
		say(o.Reserved, "%s reserved")
	}
	if out == nil && held != nil && o.Free != nil {
		say(finding.Int(*held+*o.Free), "%s free or held by PyTorch")
	}
	if o.Reserved != nil && o.Allocated != nil && *o.Allocated > *o.Reserved+slack {
		out = append(out, fmt.Sprintf("%s in use, of %s reserved", units.Bytes(*o.Allocated), units.Bytes(*o.Reserved)))
	}
	return out
}

// lent reports whether PyTorch has more than the device: the driver of Windows
// lends memory of the host. Nothing is free then, or next to nothing.
func (a *account) lent() bool {
	const little = 0.1 // of the device
	o := a.OOM
	return o.Total != nil && o.Reserved != nil && o.Allocated != nil && o.Free != nil && o.Request != nil &&
		*o.Reserved > *o.Total && *o.Allocated <= *o.Reserved && float64(*o.Free) < little*float64(*o.Total) && Contradictory(o)
}

// complete reports whether a message states all that its wording has.
func (a *account) complete() bool { return a.Lacks() == 0 && !Contradictory(a.OOM) }

// room is all that the request could have had, had it been in one piece.
func (a *account) room() *int64 {
	if a.free == nil || a.reserved == nil || a.active == nil {
		return nil
	}
	return finding.Int(*a.free + *a.reserved - *a.active)
}

// unused is what is reserved and not in use, 0 if that is unknown.
func (a *account) unused() int64 {
	if a.reserved == nil || a.active == nil {
		return 0
	}
	return max(0, *a.reserved-*a.active)
}

// material reports whether what is reserved and not in use is a part that a
// setting can win back: 5 % of the device, or 3 % and half as much again as the
// request.
func (a *account) material() bool {
	const part, less, times = 0.05, 0.03, 1.5
	if a.capacity == nil {
		return true
	}
	unused, capacity := float64(a.unused()), float64(*a.capacity)
	return unused >= part*capacity || unused >= less*capacity && unused >= times*float64(*a.request)
}

// contextAllowance is what a process of PyTorch itself takes of a device beside its
// segments: the CUDA context and loaded kernels, some hundred MiB.
const contextAllowance = 640 << 20

// outside is what is held on the device by others than PyTorch's allocator.
func (a *account) outside() *int64 {
	if a.capacity == nil || a.free == nil || a.reserved == nil || a.Wording == logs.Async {
		return nil
	}
	n := *a.capacity - *a.free - *a.reserved
	if n < 0 && -n <= a.slack() {
		n = 0 // the figures are rounded
	}
	return &n
}

// own is what the program itself holds of the device, beside PyTorch's allocator
// too: what its message states, or the process of those it lists that holds what
// PyTorch has reserved and little more. It is nil if that is unknown.
func (a *account) own() *int64 {
	if a.InUse != nil {
		return a.InUse
	}
	if a.reserved == nil {
		return nil
	}
	const beside = 2 << 30 // of the context and of libraries
	var own *int64
	for _, p := range a.Processes {
		if p.Bytes >= *a.reserved-a.slack() && p.Bytes <= *a.reserved+beside && (own == nil || p.Bytes < *own) {
			own = finding.Int(p.Bytes)
		}
	}
	if own == nil && len(a.Processes) == 1 && a.capacity != nil && a.free != nil && near(a.Processes[0].Bytes+*a.free, *a.capacity) && a.Processes[0].Bytes >= *a.reserved-a.slack() {
		return finding.Int(a.Processes[0].Bytes)
	}
	return own
}

// slack is what figures can be off by, as they are printed, and what a driver keeps
// of a device for itself.
func (a *account) slack() int64 {
	const least, part = 64 << 20, 100
	if a.capacity == nil {
		return least
	}
	return max(least, *a.capacity/part)
}

// others is what other processes hold of the device, as far as the message states
// what this one does, else what is outside and clearly more than its context.
func (a *account) others() int64 {
	n := a.outside()
	if n == nil {
		return 0
	}
	if own := a.own(); own != nil {
		n := *a.capacity - *a.free - *own
		if n <= a.slack() {
			return 0
		}
		return n
	}
	const part = 20 // of the device; less may be this process's own too
	if n := *n - contextAllowance; n >= *a.capacity/part {
		return n
	}
	return 0
}

// mostlyOwn reports whether most of what is outside is known to be of this process.
func (a *account) mostlyOwn() bool {
	n, own := a.outside(), a.own()
	return n != nil && own != nil && 2*(*own-*a.reserved) > *n
}

// holders are who holds what is outside, as far as it is known.
func (a *account) holders() string {
	own := a.own()
	if own == nil {
		return "the context, other libraries, other processes"
	}
	beside := min(max(0, *own-*a.reserved), *a.outside())
	return fmt.Sprintf("%s by this process (its context, other libraries), %s by others", units.Bytes(beside), units.Bytes(*a.outside()-beside))
}

// inUse is what is known to be in use.
func (a *account) inUse() int64 {
	if a.active == nil {
		return 0
	}
	return *a.active
}

// overLimit reports whether a stated limit did not let the request through, within
// what its figures are rounded by.
func (a *account) overLimit() bool {
	const rounding = 0.995
	return a.allowed != nil && a.held != nil && float64(*a.held+*a.request) > rounding*float64(*a.allowed)
}

// oneTooLarge reports whether one allocation is larger than what Intel's drivers
// give at once.
func (a *account) oneTooLarge() bool {
	return a.Backend == "XPU" && a.request != nil && *a.request > 4<<30
}

// cause is why the request failed, "" where the figures do not tell.
func (a *account) cause() string {
	const granules = 16 << 20 // what a driver needs beside a request
	room := a.room()
	switch {
	case a.Block != nil && a.request != nil:
		return causeLimit
	case a.request == nil:
		return ""
	case a.overLimit():
		return causeLimit
	case a.lent():
		return causeTooBig
	case a.capacity != nil && *a.request > *a.capacity-a.inUse():
		return causeTooBig
	case a.Wording == logs.Async && a.free != nil && *a.free < *a.request:
		return causeTooBig
	case a.free != nil && *a.free >= *a.request+granules:
		return causeRefused
	case room == nil:
		return ""
	case a.capacity != nil && 2*a.others() > *a.capacity:
		return causeOutside
	case *room >= *a.request && a.material():
		return causeFragmented
	case a.others() > 0 && *room+a.others() >= *a.request:
		return causeOutside
	}
	return causeTooBig
}

// confidence is how sure the cause is.
func (a *account) confidence() float64 {
	const upperBound, pooled, half = 0.9, 0.7, 0.5
	switch a.cause() {
	case "", causeRefused:
		return half
	case causeFragmented: // what was free in segments is an upper bound
		return upperBound
	case causeTooBig:
		if a.Wording == logs.Async && *a.request <= *a.capacity-a.inUse() {
			return pooled
		}
	}
	return 1
}

// title says in a sentence that and why memory ran out.
func (a *account) title() string {
	switch {
	case a.Wording == logs.Absurd:
		return "memory ran out: a request of more than an exbibyte failed: its size was computed wrongly"
	case a.Wording == logs.NCCL && a.OOM.Request != nil:
		return fmt.Sprintf("memory ran out for NCCL, beside PyTorch's allocator: the driver did not give it %s", units.Bytes(*a.OOM.Request))
	case a.Wording == logs.NCCL:
		return "memory ran out for NCCL, beside PyTorch's allocator"
	case a.Wording == logs.Silent:
		return fmt.Sprintf("memory ran out on an %s device", a.Backend)
	case a.Bare():
		return "memory ran out in a call of the driver that is not one of PyTorch's cache"
	}
	title := fmt.Sprintf("memory ran out: a request of %s %s", amount(a.request), a.why())
	if Contradictory(a.OOM) && !a.lent() {
		title += "; the figures of the message contradict each other"
	}
	return title
}

// amount is a number of bytes that can be unknown.
func amount(n *int64) string {
	if n == nil {
		return "an unknown amount"
	}
	return units.Bytes(*n)
}

// why says what became of the request, and why.
func (a *account) why() string {
	switch a.cause() {
	case causeLimit:
		if a.Block != nil {
			return fmt.Sprintf("failed: this platform gives no block larger than %s", units.Bytes(*a.Block))
		}
		return fmt.Sprintf("failed at a limit: %s was in use of the %s that are allowed", amount(a.held), amount(a.allowed))
	case causeRefused:
		return fmt.Sprintf("was refused though the driver had %s free", amount(a.free))
	case causeFragmented:
		return fmt.Sprintf("failed though %s was free: %s of the driver's and %s in segments, in pieces",
			amount(a.room()), amount(a.free), units.Bytes(a.unused()))
	case causeOutside:
		return fmt.Sprintf("would have fitted, but %s of the device's %s is held outside PyTorch", amount(a.outside()), amount(a.capacity))
	case causeTooBig:
		if a.lent() {
			return fmt.Sprintf("did not fit: PyTorch had %s already, more than the device's %s", amount(a.reserved), amount(a.capacity))
		}
		if room := a.room(); room != nil && *room >= *a.request {
			return fmt.Sprintf("did not fit: the device is full, with %s of its %s in use and %s free", amount(a.active), amount(a.capacity), amount(a.free))
		}
		if room := a.room(); room != nil {
			return fmt.Sprintf("did not fit: %s was in use, and %s was available", amount(a.active), amount(room))
		}
		return fmt.Sprintf("did not fit into the device's %s", amount(a.capacity))
	}
	return "failed"
}

// checkCapacity leaves out a size of the device that cannot be.
func (a *account) checkCapacity(f *finding.Finding) {
	if n := a.outside(); n != nil && *n < 0 && !a.lent() {
		f.Detail = append(f.Detail, fmt.Sprintf("a device of %s cannot be: PyTorch had reserved %s and %s more was free; the size given is not used",
			units.Bytes(*a.capacity), units.Bytes(*a.reserved), units.Bytes(*a.free)))
		a.capacity = nil
	}
}

// short is how much of the device was missing for the request, as a fraction,
// rounded up to hundredths; 0 if that is unknown.
func (a *account) short() float64 {
	if a.request == nil || a.free == nil || a.capacity == nil || *a.capacity == 0 || *a.request <= *a.free {
		return 0
	}
	return math.Ceil(float64(*a.request-*a.free)/float64(*a.capacity)*100) / 100
}
