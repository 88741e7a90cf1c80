package allocator

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// largeSegment is read before all others, because their limits depend on it.
func (p *parser) largeSegment() error {
	if p.v < 211 {
		return nil
	}
	for p.i = 0; p.i < len(p.words); p.i++ {
		if p.words[p.i].text != "large_segment_size_mb" {
			continue
		}
		p.in = p.option()
		n, err := p.number()
		if err != nil {
			return err
		}
		if n <= LargeLimit/mebibyte {
			return p.refuse("CachingAllocator option large_segment_size_mb must be > %d MB", LargeLimit/mebibyte)
		}
		p.s.LargeSegment = int64(min(n, maxMebibytes)) * mebibyte
	}
	p.s.MaxNonSplitRounding = p.s.LargeSegment
	return nil
}

func (p *parser) backend() error {
	text, err := p.value("Error parsing backend value")
	if err != nil {
		return err
	}
	if text != "native" && text != "cudaMallocAsync" {
		return p.refuse("Unknown allocator backend, options are native and cudaMallocAsync")
	}
	p.s.Backend = text
	return nil
}

// blockSize is a number of MiB that is at least a large segment; up to 2.9 it
// must be more.
func (p *parser) blockSize() (uint64, error) {
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	large := uint64(p.s.LargeSegment / mebibyte)
	if p.v < twoPass && n <= large {
		return 0, p.refuse("CachingAllocator option %s too small, must be > %d", p.in.name, large)
	}
	if n < large {
		return 0, p.refuse("CachingAllocator option %s too small, must be >= %d", p.in.name, large)
	}
	return n, nil
}

func (p *parser) maxSplitSize() error {
	n, err := p.blockSize()
	if err == nil {
		p.s.MaxSplitSize = bytesOrUnlimited(n)
	}
	return err
}

func bytesOrUnlimited(mebibytes uint64) int64 {
	if mebibytes >= maxMebibytes {
		return Unlimited
	}
	return int64(mebibytes) * mebibyte
}

func (p *parser) maxNonSplitRounding() error {
	n, err := p.blockSize()
	if err == nil {
		p.s.MaxNonSplitRounding = int64(min(n, maxMebibytes)) * mebibyte
	}
	return err
}

func (p *parser) gcThreshold() error {
	x, err := p.float()
	switch {
	case err != nil:
		return err
	case x > 0 && x < 1:
		p.s.GCThreshold = x
		return nil
	case p.v >= twoPass:
		return p.refuse("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
	case x >= 1:
		return p.refuse("garbage_collect_threshold too big, set it 0.0~1.0")
	}
	return p.refuse("garbage_collect_threshold too small, set it 0.0~1.0")
}

func (p *parser) fraction() error {
	x, err := p.float()
	if err != nil {
		return err
	}
	if !(x >= 0 && x <= 1) {
		return p.refuse("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
	}
	p.s.Fraction = x
	return nil
}

func (p *parser) registerThreads() error {
	n, err := p.number()
	if err != nil {
		return err
	}
	got := ""
	if p.v >= twoPass {
		got = fmt.Sprintf(", got %d", n)
	}
	if bits.OnesCount64(n) != 1 {
		return p.refuse("Number of register threads has to be power of 2%s", cmp.Or(got, " "))
	}
	if n > maxThreads {
		return p.refuse("Number of register threads should be less than or equal to %d%s", maxThreads, got)
	}
	p.s.Host.RegisterThreads = int64(n)
	return nil
}

func (p *parser) reserveSegment() error {
	n, err := p.number()
	if err != nil {
		return err
	}
	if n == 0 {
		return p.refuse("Pinned reserve segment size has to be greater than 0")
	}
	p.s.Host.ReserveSegment = int64(min(n, maxMebibytes)) * mebibyte
	return nil
}

// divisions reads one number for all size classes, or a list by class.
func (p *parser) divisions() error {
	text, err := p.value(p.expecting())
	if err != nil {
		return err
	}
	if text == "[" {
		return p.divisionsByClass()
	}
	n, err := p.integer(text)
	if err != nil {
		return err
	}
	if bits.OnesCount64(n) != 1 {
		return p.refuse("For roundups, the %s has to be power of 2 ", p.divisionsWord())
	}
	if err := p.roundable(n); err != nil {
		return err
	}
	for i := range p.s.RoundupDivisions {
		p.s.RoundupDivisions[i] = division(n)
	}
	return nil
}

// roundable refuses one division, which PyTorch 2.0 takes and then stops at with
// the first request. Since 2.1 it is none.
func (p *parser) roundable(divisions uint64) error {
	if divisions == 1 && p.v < 201 {
		return p.refuse("Only 2 or more divisions are supported")
	}
	return nil
}

// divisionsWord returns how the messages spell it.
func (p *parser) divisionsWord() string {
	if p.v < 209 {
		return "divisons"
	}
	return "divisions"
}

// division is n as it is kept. Beyond the size of a block more divisions change
// nothing.
func division(n uint64) int64 { return int64(min(n, 1<<62)) }

func (p *parser) divisionsByClass() error {
	d := &p.s.RoundupDivisions
	first, last := true, 0
	for p.i++; p.i < len(p.words) && p.words[p.i].text != "]"; p.i++ {
		key := p.i
		n, err := p.divisionOfClass()
		if err != nil {
			return err
		}
		if p.words[key].text == ">" {
			from := last
			if p.v >= twoPass {
				from++
			}
			for i := from; i < sizeClasses; i++ {
				d[i] = n
			}
		} else {
			class, err := p.class(key)
			if err != nil {
				return err
			}
			for i := 0; first && i < class; i++ {
				d[i] = n
			}
			d[class], first, last = n, false, class
		}
		if err := p.comma(); err != nil {
			return err
		}
	}
	if p.v >= twoPass && p.i >= len(p.words) {
		return p.unclosed()
	}
	return nil
}

// divisionOfClass reads the value of one entry of the list.
func (p *parser) divisionOfClass() (int64, error) {
	text, err := p.value("Error parsing roundup_power2_divisions value")
	if err != nil {
		return 0, err
	}
	n, err := p.integer(text)
	switch {
	case err != nil:
		return 0, err
	case p.v < 202 && bits.OnesCount64(n) != 1:
		return 0, p.refuse("For roundups, the %s has to be power of 2 ", p.divisionsWord())
	case n != 0 && bits.OnesCount64(n) != 1:
		return 0, p.refuse("For roundups, the %s has to be power of 2 or 0 to disable roundup ", p.divisionsWord())
	}
	return division(n), p.roundable(n)
}

// class is the size class that the word at key names.
func (p *parser) class(key int) (int, error) {
	value := p.i
	p.i = key // which the errors are about
	defer func() { p.i = value }()
	function := "stoul"
	if p.v >= twoPass {
		function = "stoull"
	}
	n, err := p.unsigned(p.words[key].text, function)
	if err != nil {
		return 0, err
	}
	if bits.OnesCount64(n) != 1 {
		return 0, p.refuse("For roundups, the intervals have to be power of 2 ")
	}
	return min(bits.TrailingZeros64(n), sizeClasses-1), nil
}

// comma goes over the one between entries of the list, which there need not be
// after the last. (Up to 2.9 PyTorch looks beyond the end of an unclosed list;
// what it finds there is undefined.)
func (p *parser) comma() error {
	if p.i+1 < len(p.words) && p.words[p.i+1].text == "]" {
		return nil
	}
	return p.separator(",")
}

// reserve ignores a value that it cannot read, as PyTorch does.
func (p *parser) reserve() error {
	text, err := p.value("")
	if err == nil && isReserve(text) {
		p.s.Reserve = text
	}
	return err
}

func isReserve(text string) bool {
	n := text
	if l := len(text) - 1; l >= 0 && (text[l] == 'G' || text[l] == 'g') {
		n = text[:l]
	}
	x, err := strconv.ParseFloat(n, 64)
	return reserveNumber.MatchString(n) && err == nil && x > 0
}

func (p *parser) reserveByClass() error {
	if _, err := p.value(""); err != nil { // the bracket, whatever it is
		return err
	}
	byName := map[string]string{}
	for {
		name, err := p.next("")
		if err != nil {
			return err
		}
		if name == "]" {
			break
		}
		value, err := p.value("")
		if err != nil {
			return err
		}
		if isReserve(value) {
			byName[name] = value
		}
		if p.i+1 < len(p.words) && p.words[p.i+1].text == "," {
			p.i++
		}
	}
	p.s.ReserveByClass = ""
	if len(byName) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			parts = append(parts, name+":"+byName[name])
		}
		p.s.ReserveByClass = "[" + strings.Join(parts, ",") + "]"
	}
	return nil
}
