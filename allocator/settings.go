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

	"strandline/snapshot"
)

// Unlimited is the value of a size that has no limit.
const Unlimited = math.MaxInt64

const (
	mebibyte     = 1 << 20
	maxMebibytes = math.MaxInt64 / mebibyte
	sizeClasses  = 16
	maxThreads   = 128
)

// Settings are what the allocator was told, as it understands it. They can be
// compared with ==.
type Settings struct {
	Conf string // the text they were parsed from

	MaxSplitSize        int64              // bytes; larger blocks are not split; Unlimited if not set
	MaxNonSplitRounding int64              // bytes by which a block that is not split may be too large
	RoundupDivisions    [sizeClasses]int64 // of a power of two, by size class: 1 MiB and less, 2 MiB, … 32 GiB and more; 0 or 1 is none
	GCThreshold         float64            // share of the limit; 0 is off
	Expandable          bool
	LargeSegment        int64   // bytes
	Fraction            float64 // of the device's memory that the process may take; 1 is all
	ThrowOnOOM          bool    // fail at the limit without asking the driver
	ReuseInCapture      bool    // of blocks that other streams used, during graph capture
	Backend             string  // "native" or "cudaMallocAsync"
	ReleaseLock         bool    // during cudaMalloc

	// What an expandable segment reserves: a share of the device's memory, or
	// GiB as in "40G"; "" is the default. ByClass is a list, "[name:value,…]".
	Reserve, ReserveByClass string

	Host Host
}

// Host are the settings of the allocator of pinned host memory.
type Host struct {
	UseHostRegister   bool // cudaHostRegister instead of cudaHostAlloc
	RegisterThreads   int64
	BackgroundThreads bool
	ReserveSegment    int64 // bytes; 0 is none
	MaxRoundThreshold int64 // bytes; larger requests are not rounded up
	MaxCachedSize     int64 // bytes; larger blocks are not kept
	FreeCatchAll      bool
}

// DefaultSettings are those of a process that was told nothing.
func DefaultSettings() Settings {
	return Settings{
		MaxSplitSize:        Unlimited,
		MaxNonSplitRounding: LargeBuffer,
		LargeSegment:        LargeBuffer,
		Fraction:            1,
		Backend:             "native",
		Host:                Host{RegisterThreads: 1, MaxRoundThreshold: Unlimited, MaxCachedSize: Unlimited},
	}
}

// ParseSettings understands the text of PYTORCH_CUDA_ALLOC_CONF or
// PYTORCH_ALLOC_CONF as a release of PyTorch for CUDA does that starts with it,
// and refuses with a [*SettingError] what that release refuses. Version 0 takes
// the options of every release and reads them as the newest does.
//
// The rules are those of PyTorch's sources: up to 2.9 one parser, which stops
// at a separator that is not there; from 2.10 on two passes, the second for the
// options that only CUDA has, which count separators but do not look at them.
// Numbers are read as C reads them, so that 128MB is 128. The answers of 2.6
// were compared with the running PyTorch; before 2.0 the rules of 2.0 are used.
//
// Not confirmed by a source: the exact releases of pinned_free_catch_all,
// pinned_max_round_threshold_mb and pinned_max_cached_size_mb and the limits of
// the latter two; whether 2.2 takes 0 in a list of divisions; how 2.8 spells
// divisions; and how 2.10 words an unknown option, and 2.13 and later a text
// that ends too soon.
func ParseSettings(conf string, v Version) (Settings, error) {
	s, err := parse(conf, v)
	if err != nil {
		return Settings{}, err
	}
	return s, nil
}

// FromSnapshot are the settings in force when a snapshot was taken. What the
// file states wins over its text: a program may have changed the settings more
// than once, and each time the text is only the last one. Options that the file
// does not state come from the text, as far as PyTorch would have read it.
func FromSnapshot(file *snapshot.Settings, v Version) Settings {
	if file == nil {
		return DefaultSettings()
	}
	s, _ := parse(file.Conf, v) // up to the error, as PyTorch does it
	switch {
	case file.MaxSplitSize > 0:
		s.MaxSplitSize = file.MaxSplitSize
	case file.MaxSplitSize < 0:
		s.MaxSplitSize = Unlimited
	}
	s.GCThreshold = 0
	if file.GCThreshold > 0 && file.GCThreshold < 1 {
		s.GCThreshold = file.GCThreshold
	}
	s.Expandable = file.ExpandableSegments
	if file.Roundup != nil {
		s.RoundupDivisions = [sizeClasses]int64{}
	}
	for _, f := range file.Roundup {
		key, _ := f.Key.(string)
		n, _ := f.Value.(int64)
		if class := slices.Index(classNames[:], key); class >= 0 && n > 0 && bits.OnesCount64(uint64(n)) == 1 {
			s.RoundupDivisions[class] = n
		}
	}
	return s
}

// classNames are the size classes as PyTorch names them, in MiB.
var classNames = func() (names [sizeClasses]string) {
	for i := range names {
		names[i] = strconv.Itoa(1 << i)
	}
	return names
}()

// Changed is what differs from the default, as text that [ParseSettings] reads
// back the same, options in alphabetical order: for example
// "expandable_segments:True,max_split_size_mb:256". It is "" for the default.
func (s Settings) Changed() string {
	var parts []string
	for i := range options {
		if o := &options[i]; o.changed != nil {
			if value := o.changed(&s); value != "" {
				parts = append(parts, o.name+":"+value)
			}
		}
	}
	return strings.Join(parts, ",")
}

// A SettingError is a text that PyTorch refuses.
type SettingError struct {
	Conf   string
	At     int    // byte offset in Conf of the word that is refused; its length if a word is missing
	Option string // to which the word belongs; the word itself if it is no option
	Text   string // what PyTorch says; of a failed assertion, its last sentence
	Advice string // what to write instead
}

func (e *SettingError) Error() string {
	at := "the end"
	if e.At < len(e.Conf) {
		at = e.Conf[e.At:]
		if n := strings.IndexAny(at, separators); n >= 0 {
			at = at[:max(n, 1)]
		}
		at = strconv.Quote(clip(at))
	}
	return fmt.Sprintf("allocator settings, byte %d (%s): PyTorch says %q; %s", e.At, at, clip(strings.TrimSpace(e.Text)), e.Advice)
}

func clip(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// An option is one that PyTorch knows.
type option struct {
	name    string
	since   Version
	common  bool                   // from 2.10 on read before those of CUDA alone
	advice  string                 // a value that is right
	read    func(*parser) error    // from the word after the name on
	changed func(*Settings) string // the value, "" if it is the default; nil of a second name
}

// flag is an option that is True or False. Up to 2.9 most say of a missing value
// that they expect one; strict ones do not tell missing from wrong.
func flag(name string, since Version, common, strict bool, field func(*Settings) *bool) option {
	return option{
		name, since, common, "write " + name + ":True or " + name + ":False",
		func(p *parser) error {
			on, err := p.boolean(strict)
			if err == nil {
				*field(p.s) = on
			}
			return err
		},
		func(s *Settings) string {
			if !*field(s) {
				return ""
			}
			return "True"
		},
	}
}

// alias is an option under the name that it has on ROCm.
func alias(name string, of option) option {
	of.name, of.since, of.changed = name, max(of.since, 203), nil
	return of
}

var (
	releaseLock = flag("release_lock_on_cudamalloc", 202, false, true, func(s *Settings) *bool { return &s.ReleaseLock })
	useRegister = flag("pinned_use_cuda_host_register", 202, false, false, func(s *Settings) *bool { return &s.Host.UseHostRegister })
)

// options are all, by name.
var options = []option{
	{"backend", 200, false, "write backend:native or backend:cudaMallocAsync",
		(*parser).backend, func(s *Settings) string { return differs(s.Backend, "native") }},
	flag("expandable_segments", 201, true, true, func(s *Settings) *bool { return &s.Expandable }),
	{"expandable_segments_reserve", 214, false, "write a share of the memory or GiB, such as expandable_segments_reserve:0.5 or expandable_segments_reserve:40G",
		(*parser).reserve, func(s *Settings) string { return s.Reserve }},
	{"expandable_segments_reserve_by_class", 214, false, "write a list, such as expandable_segments_reserve_by_class:[capture:0.25,workspace:40G]",
		(*parser).reserveByClass, func(s *Settings) string { return s.ReserveByClass }},
	{"garbage_collection_threshold", 111, true, "write a number between 0 and 1, such as garbage_collection_threshold:0.8",
		(*parser).gcThreshold, func(s *Settings) string { return number(s.GCThreshold, 0) }},
	flag("graph_capture_record_stream_reuse", 210, false, false, func(s *Settings) *bool { return &s.ReuseInCapture }),
	{"large_segment_size_mb", 211, true, "write a number of MiB above 10, such as large_segment_size_mb:64",
		(*parser).skip, func(s *Settings) string { return mib(s.LargeSegment, LargeBuffer) }},
	{"max_non_split_rounding_mb", 205, true, "write a number of MiB above 20 and not below large_segment_size_mb, such as max_non_split_rounding_mb:64",
		(*parser).maxNonSplitRounding, func(s *Settings) string { return mib(s.MaxNonSplitRounding, s.LargeSegment) }},
	{"max_split_size_mb", 110, true, "write a number of MiB above 20 and not below large_segment_size_mb, such as max_split_size_mb:256",
		(*parser).maxSplitSize, func(s *Settings) string { return mib(s.MaxSplitSize, Unlimited) }},
	{"per_process_memory_fraction", 210, false, "write a number from 0 to 1, such as per_process_memory_fraction:0.9",
		(*parser).fraction, func(s *Settings) string { return number(s.Fraction, 1) }},
	flag("pinned_free_catch_all", 212, false, false, func(s *Settings) *bool { return &s.Host.FreeCatchAll }),
	hostSize("pinned_max_cached_size_mb", func(s *Settings) *int64 { return &s.Host.MaxCachedSize }),
	hostSize("pinned_max_round_threshold_mb", func(s *Settings) *int64 { return &s.Host.MaxRoundThreshold }),
	{"pinned_num_register_threads", 202, false, "write a power of two up to 128, such as pinned_num_register_threads:8",
		(*parser).registerThreads, func(s *Settings) string { return number(float64(s.Host.RegisterThreads), 1) }},
	{"pinned_reserve_segment_size_mb", 210, false, "write a number of MiB above 0, such as pinned_reserve_segment_size_mb:1024",
		(*parser).reserveSegment, func(s *Settings) string { return mib(s.Host.ReserveSegment, 0) }},
	flag("pinned_use_background_threads", 206, true, false, func(s *Settings) *bool { return &s.Host.BackgroundThreads }),
	useRegister,
	alias("pinned_use_hip_host_register", useRegister),
	releaseLock,
	alias("release_lock_on_hipmalloc", releaseLock),
	{"roundup_power2_divisions", 111, true, "write a power of two, such as roundup_power2_divisions:8, or a list by MiB, such as roundup_power2_divisions:[256:1,512:2,>:4]",
		(*parser).divisions, func(s *Settings) string { return divisionList(s.RoundupDivisions) }},
	flag("throw_on_cudamalloc_oom", 212, false, false, func(s *Settings) *bool { return &s.ThrowOnOOM }),
}

func hostSize(name string, field func(*Settings) *int64) option {
	return option{
		name, 213, true, "write a number of MiB, such as " + name + ":128",
		func(p *parser) error {
			n, err := p.number()
			if err == nil {
				*field(p.s) = bytesOrUnlimited(n)
			}
			return err
		},
		func(s *Settings) string { return mib(*field(s), Unlimited) },
	}
}

func differs(value, standard string) string {
	if value == standard {
		return ""
	}
	return value
}

func number(value, standard float64) string {
	return differs(strconv.FormatFloat(value, 'g', -1, 64), strconv.FormatFloat(standard, 'g', -1, 64))
}

func mib(bytes, standard int64) string {
	return differs(strconv.FormatInt(bytes/mebibyte, 10), strconv.FormatInt(standard/mebibyte, 10))
}

// divisionList writes divisions so that every release reads them the same: the
// first key fills the classes below it, and > repeats the last one's value.
func divisionList(d [sizeClasses]int64) string {
	if d == ([sizeClasses]int64{}) {
		return ""
	}
	first, last := 0, sizeClasses-1
	for first < last && d[first+1] == d[0] {
		first++
	}
	if first == last {
		return strconv.FormatInt(d[0], 10)
	}
	for d[last-1] == d[last] {
		last--
	}
	var parts []string
	for i := first; i <= last; i++ {
		if i == first || d[i] != 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", classNames[i], d[i]))
		}
	}
	if last < sizeClasses-1 && d[last] != 0 {
		parts = append(parts, fmt.Sprintf(">:%d", d[last]))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

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
	for i := range p.s.RoundupDivisions {
		p.s.RoundupDivisions[i] = division(n)
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
	return division(n), nil
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
