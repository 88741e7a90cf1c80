package texts

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

// An account is the arithmetic of PyTorch's message. A nil figure is unknown.
type account struct {
	*failure.OOM
	request  *int64
	free     *int64 // of the driver
	reserved *int64
	active   *int64
	capacity *int64 // of the device

	// A limit that the message states, and what counts against it.
	allowed, held *int64
}

// accountOf is the arithmetic of a message; for one that contradicts itself, it holds
// only the request.
func accountOf(o *failure.OOM, known Options) *account {
	a := &account{OOM: o, request: o.Request, free: o.Free, reserved: o.Reserved, active: o.Allocated, capacity: known.Capacity}
	if o.Total != nil {
		a.capacity = o.Total
	}
	if Contradictory(o) && !a.lent() {
		a = &account{OOM: o, request: o.Request}
		if a.shared() { // PyTorch's own figures are not in doubt
			a.reserved, a.active = o.Reserved, o.Allocated
		}
		return a
	}
	switch o.Wording {
	case failure.Async:
		a.allowed, a.held = o.Allowed, o.Allocated
		if o.Allowed != nil && o.Total != nil && *o.Allowed >= *o.Total {
			a.allowed = nil // the whole device is allowed
		}
	case failure.Metal:
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
func Contradictory(o *failure.OOM) bool { return contradictions(o) != nil }

// contradictions are the figures of a message that cannot all be true, in words.
func contradictions(o *failure.OOM) (out []string) {
	if o.Total == nil {
		return nil
	}
	const minOwn = 32 << 20
	slack := max(minOwn, *o.Total/100) // the figures are rounded
	say := func(n *int64, format string) {
		if n != nil && *n > *o.Total+slack {
			out = append(out, fmt.Sprintf(format+" on a device of %s", units.Bytes(*n), units.Bytes(*o.Total)))
		}
	}
	say(o.Allocated, "%s allocated")
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
		out = append(out, fmt.Sprintf("%s allocated, of %s reserved", units.Bytes(*o.Allocated), units.Bytes(*o.Reserved)))
	}
	return out
}

// lent reports whether PyTorch has more than the device: on Windows the driver lends host
// memory. Nothing, or next to nothing, is free then.
func (a *account) lent() bool {
	const little = 0.1 // of the device
	o := a.OOM
	return o.Total != nil && o.Reserved != nil && o.Allocated != nil && o.Free != nil && o.Request != nil &&
		*o.Reserved > *o.Total && *o.Allocated <= *o.Reserved && float64(*o.Free) < little*float64(*o.Total) && Contradictory(o)
}

// shared reports whether the driver states more free memory than the device has, as for a
// GPU that is part of the processor: its size is what the firmware reserves for it, and
// what is free includes the host's memory that it may use.
func (a *account) shared() bool {
	o := a.OOM
	return o.Backend == "HIP" && o.Total != nil && o.Free != nil && *o.Free > *o.Total+*o.Total/100 &&
		o.Reserved != nil && o.Allocated != nil && *o.Allocated <= *o.Reserved && *o.Reserved <= *o.Free+*o.Total
}

// complete reports whether a message states everything that its wording can.
func (a *account) complete() bool { return a.Missing() == 0 && !Contradictory(a.OOM) }

// room is everything the request could have used, had it been in one piece.
func (a *account) room() *int64 {
	return shortage.Room(a.free, a.reserved, a.active)
}

// unused is the reserved memory that is not allocated, 0 if unknown.
func (a *account) unused() int64 {
	if a.reserved == nil || a.active == nil {
		return 0
	}
	return max(0, *a.reserved-*a.active)
}

// material reports whether the reserved memory that is not allocated is large enough for a
// setting to win it back: 5 % of the device, or 3 % and one and a half times the request.
func (a *account) material() bool {
	const part, less, times = 0.05, 0.03, 1.5
	if a.capacity == nil {
		return true
	}
	unused, capacity := float64(a.unused()), float64(*a.capacity)
	return unused >= part*capacity || unused >= less*capacity && unused >= times*float64(*a.request)
}

// outside is the memory held on the device outside PyTorch's allocator.
func (a *account) outside() *int64 {
	if a.capacity == nil || a.free == nil || a.reserved == nil || a.Wording == failure.Async {
		return nil
	}
	n := *a.capacity - *a.free - *a.reserved
	if n < 0 && -n <= a.slack() {
		n = 0 // the figures are rounded
	}
	return &n
}

// own is what the program itself holds on the device, including what is outside PyTorch's
// allocator: what its message states, or the listed process that holds what PyTorch has
// reserved and little more. It is nil if unknown, as where a container hides its processes
// from the driver, which then states 0 bytes.
func (a *account) own() *int64 {
	if a.InUse != nil && (a.reserved == nil || *a.InUse >= *a.reserved-a.slack()) {
		return a.InUse
	}
	if a.reserved == nil {
		return nil
	}
	const contextBytes = 2 << 30 // for the context and libraries
	var own *int64
	for _, p := range a.Processes {
		if p.Bytes >= *a.reserved-a.slack() && p.Bytes <= *a.reserved+contextBytes && (own == nil || p.Bytes < *own) {
			own = finding.Int(p.Bytes)
		}
	}
	if own == nil && len(a.Processes) == 1 && a.capacity != nil && a.free != nil && roughlyEqual(a.Processes[0].Bytes+*a.free, *a.capacity) && a.Processes[0].Bytes >= *a.reserved-a.slack() {
		return finding.Int(a.Processes[0].Bytes)
	}
	return own
}

// slack is how far off the printed figures can be, and what a driver keeps of a device
// for itself.
func (a *account) slack() int64 {
	const minSlack, part = 64 << 20, 100
	if a.capacity == nil {
		return minSlack
	}
	return max(minSlack, *a.capacity/part)
}

// others is what other processes hold on the device: exactly, if the message shows what
// this one holds; otherwise what is outside and clearly more than this one's context.
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
	const part = 20 // of the device; less may belong to this process too
	if n := *n - shortage.ContextAllowance; n >= *a.capacity/part {
		return n
	}
	return 0
}

// mostlyOwn reports whether most of outside is known to belong to this process.
func (a *account) mostlyOwn() bool {
	n, own := a.outside(), a.own()
	return n != nil && own != nil && 2*(*own-*a.reserved) > *n
}

// holdsRest reports whether the program itself is to be looked at for the memory outside.
func (a *account) holdsRest() bool { return a.mostlyOwn() && !a.othersSuffice() }

// othersSuffice reports whether the request would have fitted into what is known to be of other
// processes.
func (a *account) othersSuffice() bool {
	n, room := a.others(), a.room()
	return a.own() != nil && n > 0 && room != nil && *room+n >= *a.request
}

// holders states who holds the memory outside PyTorch's allocator, as far as is known.
func (a *account) holders() string {
	own := a.own()
	if own != nil {
		own = finding.Int(min(max(0, *own-*a.reserved), *a.outside()))
	}
	return shortage.Holders(own, a.outside())
}

// huge reports whether the request alone is so large that leaving a little more of the device
// free cannot help: no less than the device, or than any one tensor of a model.
func (a *account) huge() bool {
	const maxDevice = 96 << 30
	if a.request == nil {
		return false
	}
	if a.capacity != nil {
		return *a.request >= *a.capacity
	}
	return *a.request >= maxDevice
}

// inPieces reports whether fragmentation is what matters: a fifth of the device is reserved
// and in pieces.
func (a *account) inPieces() bool {
	const part = 5
	return a.cause() == shortage.Fragmented && a.capacity != nil && part*a.unused() >= *a.capacity
}

// overLimit reports whether a stated limit did not let the request through, allowing for
// the rounding of its figures.
func (a *account) overLimit() bool {
	const rounding = 0.995
	return a.allowed != nil && a.held != nil && float64(*a.held+*a.request) > rounding*float64(*a.allowed)
}

// oneTooLarge reports whether a single allocation is larger than Intel's drivers grant.
func (a *account) oneTooLarge() bool {
	return a.Backend == "XPU" && a.request != nil && *a.request >= 4<<30
}

// elsewhere reports whether cudaMallocAsync failed though most of the device is neither
// allocated by PyTorch nor free: its pool serves requests from all that it keeps, so that the
// rest is mostly not the pool's.
func (a *account) elsewhere() bool {
	return a.Wording == failure.Async && a.capacity != nil && a.active != nil && a.free != nil && a.request != nil &&
		*a.free < *a.request && 2*(*a.capacity-*a.active-*a.free) > *a.capacity
}

// refusedWhole reports whether a message that never states what is free is of one allocation
// larger than Intel's drivers grant, on a device of which PyTorch itself leaves room for it.
func (a *account) refusedWhole() bool {
	return a.oneTooLarge() && a.free == nil && a.capacity != nil && a.reserved != nil && *a.reserved+*a.request <= *a.capacity
}

// granules are what a driver needs in addition to a request: a device of which so little more
// is free is full.
func (a *account) granules() int64 {
	const minGranules, maxGranules, part = 16 << 20, 96 << 20, 250
	if a.capacity == nil {
		return minGranules
	}
	return min(max(minGranules, *a.capacity/part), maxGranules)
}

// cause is why the request failed, "" if the figures do not show why.
func (a *account) cause() string {
	room := a.room()
	switch {
	case a.Block != nil && a.request != nil:
		return shortage.Limit
	case a.request == nil:
		return ""
	case a.overLimit():
		return shortage.Limit
	case a.lent():
		return shortage.TooBig
	case a.capacity != nil && *a.request > *a.capacity-shortage.Known(a.active):
		return shortage.TooBig
	case a.elsewhere():
		return shortage.OthersHold
	case a.Wording == failure.Async && a.free != nil && *a.free < *a.request:
		return shortage.TooBig
	case a.free != nil && *a.free >= *a.request+a.granules():
		return shortage.Refused
	case a.refusedWhole():
		return shortage.Limit
	case room == nil:
		return ""
	case a.capacity != nil && 2*a.others() > *a.capacity:
		return shortage.OthersHold
	case *room >= *a.request && a.material():
		return shortage.Fragmented
	case a.others() > 0 && *room+a.others() >= *a.request:
		return shortage.OthersHold
	}
	return shortage.TooBig
}

// confidence is how certain the cause is.
func (a *account) confidence() float64 {
	const upperBound, pooled, failed = 0.9, 0.7, 0.95 // failed: that it did, whatever the cause
	if a.refusedWhole() || a.elsewhere() {
		return pooled
	}
	switch a.cause() {
	case "", shortage.Refused:
		return failed
	case shortage.OthersHold:
		return shortage.OutsideConfidence(*a.outside(), a.own() != nil)
	case shortage.Fragmented: // what was free in segments is an upper bound
		return upperBound
	case shortage.TooBig:
		if a.Wording == failure.Async && (a.capacity == nil || *a.request <= *a.capacity-shortage.Known(a.active)) {
			return pooled
		}
	}
	return 1
}

// title states in one sentence that memory ran out, and why.
func (a *account) title() string {
	switch {
	case a.Wording == failure.Absurd:
		return "memory ran out: a request of more than an exbibyte failed: its size was computed wrongly"
	case a.Wording == failure.NCCL && a.OOM.Request != nil:
		return fmt.Sprintf("memory ran out for NCCL, outside PyTorch's allocator: the driver refused it %s", units.Bytes(*a.OOM.Request))
	case a.Wording == failure.NCCL:
		return "memory ran out for NCCL, outside PyTorch's allocator"
	case a.Wording == failure.Silent:
		return fmt.Sprintf("memory ran out on an %s device", a.Backend)
	case a.Bare():
		return "memory ran out in a driver call outside PyTorch's cache"
	}
	title := fmt.Sprintf("memory ran out: a request of %s %s", shortage.Amount(a.request), a.explanation())
	if Contradictory(a.OOM) && !a.lent() {
		title += "; the figures of the message contradict each other"
	}
	return title
}

// explanation states what became of the request, and the reason.
func (a *account) explanation() string {
	switch a.cause() {
	case shortage.Limit:
		if a.Block != nil {
			return fmt.Sprintf("failed: this platform allocates no block larger than %s", units.Bytes(*a.Block))
		}
		if a.refusedWhole() {
			return "failed, as a single allocation: Intel's drivers refuse one of 4 GiB or more by default"
		}
		return fmt.Sprintf("failed at a limit: %s of the %s allowed was held", shortage.Amount(a.held), shortage.Amount(a.allowed))
	case shortage.Refused:
		return fmt.Sprintf("was refused although the driver had %s free", shortage.Amount(a.free))
	case shortage.Fragmented:
		return fmt.Sprintf("failed although %s was free: %s at the driver and %s in segments, in pieces",
			shortage.Amount(a.room()), shortage.Amount(a.free), units.Bytes(a.unused()))
	case shortage.OthersHold:
		if a.elsewhere() {
			return fmt.Sprintf("failed, and %s of the device's %s was neither allocated by PyTorch nor free", units.Bytes(*a.capacity-*a.active-*a.free), shortage.Amount(a.capacity))
		}
		return fmt.Sprintf("would have fitted, but %s of the device's %s is held outside PyTorch", shortage.Amount(a.outside()), shortage.Amount(a.capacity))
	case shortage.TooBig:
		if a.lent() {
			return fmt.Sprintf("did not fit: PyTorch had %s already, more than the device's %s", shortage.Amount(a.reserved), shortage.Amount(a.capacity))
		}
		if room := a.room(); room != nil && *room >= *a.request {
			return fmt.Sprintf("did not fit: the device is full, with %s of its %s allocated and %s free", shortage.Amount(a.active), shortage.Amount(a.capacity), shortage.Amount(a.free))
		}
		if room := a.room(); room != nil {
			return fmt.Sprintf("did not fit: %s was allocated, and %s was available", shortage.Amount(a.active), shortage.Amount(room))
		}
		if a.capacity == nil {
			return fmt.Sprintf("did not fit: the driver had %s free", shortage.Amount(a.free))
		}
		return fmt.Sprintf("did not fit into the device's %s", shortage.Amount(a.capacity))
	}
	return "failed"
}

// checkCapacity leaves out an impossible device size.
func (a *account) checkCapacity(f *finding.Finding) {
	if n := a.outside(); n != nil && *n < 0 && !a.lent() {
		f.Detail = append(f.Detail, shortage.WrongCapacity(*a.capacity, *a.reserved, *a.free))
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
