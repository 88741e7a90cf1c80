package allocator

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"strandline/torch/snapshot"
	"strandline/units"
)

// Unlimited is the value of a size that has no limit.
const Unlimited = math.MaxInt64

const (
	mebibyte     = 1 << 20
	maxMebibytes = math.MaxInt64 / mebibyte
	sizeClasses  = 16
	maxThreads   = 128
)

// Settings are the configuration of an allocator, as it understands it. They can be
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
	ThrowOnOOM          bool    // fail above the device's memory without releasing any
	ReuseInCapture      bool    // of blocks that other streams used, during graph capture
	Backend             string  // "native" or "cudaMallocAsync"
	ReleaseLock         bool    // during cudaMalloc

	// What an expandable segment reserves: a share of the device's memory, or
	// GiB as in "40G"; "" is the default. ByClass is a list, "[name:value,…]".
	Reserve, ReserveByClass string

	Host Host

	// Ascend states that it is the allocator of torch_npu. No text sets it.
	Ascend bool
}

// Host are the settings of the allocator of pinned host memory.
type Host struct {
	UseHostRegister   bool // cudaHostRegister instead of cudaHostAlloc
	RegisterThreads   int64
	BackgroundThreads bool
	ReserveSegment    int64 // bytes; 0 if none
	MaxRoundThreshold int64 // bytes; larger requests are not rounded up
	MaxCachedSize     int64 // bytes; larger blocks are not kept
	FreeCatchAll      bool
}

// DefaultSettings are those of a process without any.
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

// Changed returns what differs from the default, as text that [ParseSettings] reads
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

// longestQuote is how much of a text an error quotes, in bytes.
const longestQuote = 120

// A SettingError is a text that PyTorch refuses.
type SettingError struct {
	Conf   string
	At     int    // byte offset in Conf of the word that is refused; its length if a word is missing
	Option string // to which the word belongs; the word itself if it is not an option
	Text   string // what PyTorch prints; of a failed assertion, its last sentence
	Advice string // what to write instead
}

func (e *SettingError) Error() string {
	at := "the end"
	if e.At < len(e.Conf) {
		at = e.Conf[e.At:]
		if n := strings.IndexAny(at, separators); n >= 0 {
			at = at[:max(n, 1)]
		}
		at = strconv.Quote(units.Clip(at, longestQuote))
	}
	return fmt.Sprintf("allocator settings, byte %d (%s): PyTorch says %q; %s", e.At, at, units.Clip(strings.TrimSpace(e.Text), longestQuote), e.Advice)
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

// Options are the names of all that some release has, in alphabetical order.
func Options() (names []string) {
	for i := range options {
		if options[i].changed != nil {
			names = append(names, options[i].name)
		}
	}
	return names
}

// flag is an option that is True or False. Up to 2.9 most report of a missing value
// that they expect one; strict ones do not distinguish missing from wrong.
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
	{"expandable_segments_reserve", 215, false, "write a share of the memory or GiB, such as expandable_segments_reserve:0.5 or expandable_segments_reserve:40G",
		(*parser).reserve, func(s *Settings) string { return s.Reserve }},
	{"expandable_segments_reserve_by_class", 215, false, "write a list, such as expandable_segments_reserve_by_class:[capture:0.25,workspace:40G]",
		(*parser).reserveByClass, func(s *Settings) string { return s.ReserveByClass }},
	{"garbage_collection_threshold", 111, true, "write a number between 0 and 1, such as garbage_collection_threshold:0.8",
		(*parser).gcThreshold, func(s *Settings) string { return number(s.GCThreshold, 0) }},
	flag("graph_capture_record_stream_reuse", 209, false, false, func(s *Settings) *bool { return &s.ReuseInCapture }),
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
