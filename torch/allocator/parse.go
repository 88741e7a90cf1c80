package allocator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The words of a text are separated by these, which are words themselves.
const separators = ",:[]"

type word struct {
	text string // without the white space inside it
	at   int    // its first byte
}

// twoPass is the first release that reads a text twice.
const twoPass Version = 210

// White space is dropped wherever it is. Up to 2.9 only the space is.
var (
	dropSpaces     = strings.NewReplacer(" ", "")
	dropWhiteSpace = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\v", "", "\f", "", "\r", "")
)

// lex splits a text into words.
func lex(conf string, v Version) (words []word) {
	drop := dropWhiteSpace
	if v < twoPass {
		drop = dropSpaces
	}
	add := func(from, to int) {
		text := drop.Replace(conf[from:to])
		if text != "" {
			blank := 0
			for drop.Replace(conf[from+blank:from+blank+1]) == "" {
				blank++
			}
			words = append(words, word{text, from + blank})
		}
	}
	from := 0
	for i := range len(conf) {
		if strings.IndexByte(separators, conf[i]) >= 0 {
			add(from, i)
			add(i, i+1)
			from = i + 1
		}
	}
	add(from, len(conf))
	return words
}

// A parser goes through the words of a text as PyTorch does.
type parser struct {
	s     *Settings
	v     Version
	conf  string
	words []word
	i     int     // the word under way
	in    *option // whose value is being read
}

// parse returns, with an error, what was set before it.
func parse(conf string, v Version) (Settings, error) {
	s := DefaultSettings()
	s.Conf = conf
	p := parser{s: &s, v: v.orNewest(), conf: conf}
	p.words = lex(conf, p.v)
	if p.v < twoPass {
		err := p.pass(func(o *option) error { return o.read(&p) }, "Unrecognized CachingAllocator option: %s")
		return s, err
	}
	if err := p.largeSegment(); err != nil {
		return s, err
	}
	err := p.pass(func(o *option) error {
		if !o.common {
			return p.skip()
		}
		return o.read(&p)
	}, "Unrecognized key '%s' in Accelerator allocator config.")
	if err != nil {
		return s, err
	}
	err = p.pass(func(o *option) error {
		if o.common {
			return p.skip()
		}
		return o.read(&p)
	}, "Unrecognized key '%s' in CUDA allocator config.")
	return s, err
}

// pass reads the whole text, option by option.
func (p *parser) pass(read func(*option) error, unknown string) error {
	for p.i = 0; p.i < len(p.words); p.i++ {
		o := p.option()
		if o == nil {
			return p.unknown(unknown)
		}
		p.in = o
		if err := read(o); err != nil {
			return err
		}
		p.in = nil
		if p.i+1 < len(p.words) {
			if err := p.separator(","); err != nil {
				return err
			}
		}
	}
	return nil
}

// option is the one that the word under way names, nil if there is none in this
// release.
func (p *parser) option() *option {
	if o := optionNamed(p.words[p.i].text); o != nil && o.since <= max(p.v, 200) {
		return o
	}
	return nil
}

func optionNamed(name string) *option {
	i, ok := slices.BinarySearchFunc(options, name, func(o option, name string) int { return strings.Compare(o.name, name) })
	if !ok {
		return nil
	}
	return &options[i]
}

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

// refuse is the error that the word under way is.
func (p *parser) refuse(format string, args ...any) error {
	e := &SettingError{Conf: p.conf, At: len(p.conf), Text: fmt.Sprintf(format, args...)}
	e.Advice = "write option:value, with a comma between options"
	if p.i < len(p.words) {
		e.At = p.words[p.i].at
		e.Option = p.words[p.i].text
	}
	if p.in != nil {
		e.Option, e.Advice = p.in.name, p.in.advice
	}
	return e
}

func (p *parser) unknown(format string) error {
	name := p.words[p.i].text
	e := p.refuse(format, name).(*SettingError)
	if o := optionNamed(name); o != nil {
		e.Advice = fmt.Sprintf("PyTorch has %s since %s", name, o.since)
	} else if key, value, ok := strings.Cut(name, "="); ok && optionNamed(key) != nil {
		e.Advice = "write " + key + ":" + value
	} else if name != "" && !strings.Contains(separators, name) {
		e.Advice = fmt.Sprintf("the options of PyTorch %s are %s", p.v, strings.Join(p.names(), ", "))
	}
	return e
}

// names are the options of the release.
func (p *parser) names() (names []string) {
	for _, o := range options {
		if o.changed != nil && o.since <= max(p.v, 200) {
			names = append(names, o.name)
		}
	}
	return names
}

// separator goes on to the next word. Up to 2.9 it must be c.
func (p *parser) separator(c string) error {
	p.i++
	if p.v >= twoPass {
		return p.inside()
	}
	if p.i >= len(p.words) || p.words[p.i].text != c {
		return p.refuse("Error parsing CachingAllocator settings, expected %s", c)
	}
	return nil
}

// inside refuses the end of the text, as PyTorch does from 2.10 on.
func (p *parser) inside() error {
	if p.i >= len(p.words) {
		return p.refuse("Index out of bounds in ConfigTokenizer")
	}
	return nil
}

// value goes over a colon to the value. Up to 2.9 every option has its own words
// for one that is missing.
func (p *parser) value(missing string) (string, error) {
	if err := p.separator(":"); err != nil {
		return "", err
	}
	return p.next(missing)
}

func (p *parser) next(missing string) (string, error) {
	p.i++
	if p.i < len(p.words) {
		return p.words[p.i].text, nil
	}
	if p.v >= twoPass {
		return "", p.inside()
	}
	return "", p.refuse("%s", missing)
}

func (p *parser) expecting() string { return "Error, expecting " + p.in.name + " value" }

// skip goes over a value that another pass reads.
func (p *parser) skip() error {
	text, err := p.value("")
	if err != nil || text != "[" {
		return err
	}
	for p.i++; p.i < len(p.words); p.i++ {
		if p.words[p.i].text == "]" {
			return nil
		}
	}
	return p.unclosed()
}

func (p *parser) unclosed() error {
	return p.refuse("Expected closing bracket ']' in ConfigTokenizer but reached end of config")
}

func (p *parser) boolean(strict bool) (bool, error) {
	// The messages name the option as it is called on CUDA.
	name := strings.NewReplacer("hipmalloc", "cudamalloc", "use_hip", "use_cuda").Replace(p.in.name)
	wrong := "Expected a single True/False argument for " + name
	missing := "Error, expecting " + name + " value"
	if strict {
		missing = wrong
	}
	text, err := p.value(missing)
	switch {
	case err != nil:
		return false, err
	case text == "True", text == "False":
		return text == "True", nil
	case p.v >= twoPass:
		return false, p.refuse("Expected 'True' or 'False' at index %d in ConfigTokenizer but got '%s'", p.i, text)
	}
	return false, p.refuse("%s", wrong)
}

// number is a value that is a whole one. A negative one wraps around.
func (p *parser) number() (uint64, error) {
	text, err := p.value(p.expecting())
	if err != nil {
		return 0, err
	}
	return p.integer(text)
}

// integer reads text as std::stoi does, from 2.10 on as std::stoull.
func (p *parser) integer(text string) (uint64, error) {
	if p.v >= twoPass {
		return p.unsigned(text, "stoull")
	}
	n, err := strconv.ParseInt(integerPrefix(text), 10, 32)
	if err != nil {
		return 0, p.refuse("stoi")
	}
	return uint64(n), nil
}

// unsigned reads text as the function named does.
func (p *parser) unsigned(text, function string) (uint64, error) {
	digits, negative := strings.CutPrefix(integerPrefix(text), "-")
	n, err := strconv.ParseUint(strings.TrimPrefix(digits, "+"), 10, 64)
	if err != nil {
		return 0, p.refuse("%s", function)
	}
	if negative {
		n = -n
	}
	return n, nil
}

var (
	leadingInteger = regexp.MustCompile(`^[+-]?[0-9]+`)
	leadingFloat   = regexp.MustCompile(`(?i)^[+-]?(0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)`)
	reserveNumber  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// C skips white space before a number and stops at what does not belong to it.
const spaceOfC = " \t\n\v\f\r"

func integerPrefix(text string) string {
	return leadingInteger.FindString(strings.TrimLeft(text, spaceOfC))
}

// float is a value as std::stod reads it.
func (p *parser) float() (float64, error) {
	text, err := p.value(p.expecting())
	if err != nil {
		return 0, err
	}
	f := leadingFloat.FindString(strings.TrimLeft(text, spaceOfC))
	f = strings.ToLower(f)
	if strings.HasSuffix(f, "nan") {
		return math.NaN(), nil
	}
	mantissa, _, _ := strings.Cut(f, "e")
	if strings.Contains(f, "0x") {
		var exponent bool
		if mantissa, _, exponent = strings.Cut(f, "p"); !exponent {
			f += "p0"
		}
	}
	x, err := strconv.ParseFloat(f, 64)
	// What is too close to zero for a normal number is out of range, too.
	tiny := math.Abs(x) < 0x1p-1022 && strings.ContainsAny(strings.Replace(mantissa, "0x", "", 1), "123456789abcdef")
	if err != nil || tiny {
		return 0, p.refuse("stod")
	}
	return x, nil
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

// divisionsWord is how the messages spell it.
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
// nobody can say what it finds there.)
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
