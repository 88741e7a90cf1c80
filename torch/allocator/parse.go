package allocator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
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

// separator advances to the next word. Up to 2.9 it must be c.
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
	leadingInteger = lazyregexp.New(`^[+-]?[0-9]+`)
	leadingFloat   = lazyregexp.New(`(?i)^[+-]?(0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)`)
	reserveNumber  = lazyregexp.New(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
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
