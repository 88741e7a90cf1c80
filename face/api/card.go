package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/units"
)

// A Card is a finding, or a verdict without one, in the words of a first screen. Its texts
// may hold any character of a file's: a face makes them printable.
type Card struct {
	Word   string   `json:"word"`             // the verdict: LEAK, OOM, FRAGMENTATION, OVER, WARNING, NOTE, OK or UNKNOWN
	Title  string   `json:"title"`            // what is wrong, and how large it is
	Line   string   `json:"line,omitempty"`   // file:line function, its file as short as it is unique
	Course string   `json:"course,omitempty"` // 88.9 → 145 → 205 MiB
	Sure   string   `json:"sure,omitempty"`   // the confidence of the cause, unless it is certain
	Fact   string   `json:"fact,omitempty"`   // the figures that decide
	Note   string   `json:"note,omitempty"`   // what could be saved, where nothing asks for something
	Via    string   `json:"via,omitempty"`    // the callers, nearest first
	Fix    string   `json:"fix,omitempty"`    // what to change
	Paste  []string `json:"paste,omitempty"`  // what to paste for it, a line each
	Effect string   `json:"effect,omitempty"` // what that would have done
	Why    string   `json:"why,omitempty"`    // what the judgment rests on
	Next   string   `json:"next,omitempty"`   // the command that shows more
}

// NewCard makes the card of a finding.
func NewCard(f *finding.Finding, names Names) Card {
	c := Card{Word: Word(f), Title: cmp.Or(ShortTitle(f), f.Title), Sure: Unsure(f), Fact: f.Brief.Fact, Via: names.Via(f), Why: cmp.Or(WhyOf(f), f.Basis), Next: f.Brief.Next}
	if f.Site != nil && !titled(f) {
		c.Line = names.Place(f.Site)
	}
	if Keeps(f) {
		c.Title, c.Sure = keeping([]*finding.Finding{f}), Sure(f.Confidence)
	}
	if len(f.Trend) > 1 {
		c.Course = Amounts(f.Trend)
	}
	c.remedy(f)
	return c
}

// remedy fills in the first remedy of a finding.
func (c *Card) remedy(f *finding.Finding) {
	if len(f.Remedies) == 0 {
		return
	}
	r := &f.Remedies[0]
	c.Fix = r.Text
	for _, line := range SettingLines(r.Setting) {
		c.Paste = append(c.Paste, Pasted(line))
	}
	if r.Effect != nil {
		c.Effect = EffectText(f, r.Effect)
	}
}

// Over names what was judged: "6 files of 2 processes".
func Over(files, processes int, noun string) string {
	over := units.Plural(int64(files), noun)
	if processes > 1 {
		over += " of " + units.Plural(int64(processes), "process")
	}
	return over
}

// CalmCard is the verdict where nothing asks for something: of the notes, what memory is for, what
// is not recorded, and what could be saved.
func CalmCard(verdict finding.Verdict, over string, notes []finding.Finding) Card {
	peak, history := PeakOf(notes), HistoryOf(notes)
	c := Card{Word: strings.ToUpper(string(verdict)), Title: "no leak in " + over}
	if peak != nil {
		c.Next = peak.Brief.Next
	}
	if verdict == finding.Unknown {
		switch {
		case history != nil && history.Brief.Title != "":
			c.Title = history.Brief.Title
		case peak != nil && peak.Brief.Fact != "":
			c.Title = "growth not judged: " + cmp.Or(peak.Brief.Why, "too little is recorded")
		case peak != nil && peak.Brief.Title != "":
			c.Title = "growth not judged"
		default:
			c.Title = "growth not judged: nothing is recorded in " + over
		}
		if history != nil {
			c.Next = cmp.Or(history.Brief.Next, c.Next)
		}
	}
	switch {
	case peak == nil:
	case verdict == finding.Unknown && peak.Brief.Fact != "":
		c.Fact = peak.Brief.Fact
	default:
		if c.Why = WhyOf(peak); peak.Brief.Title != "" && peak.Brief.Account == nil {
			c.Title += "; " + peak.Brief.Title
		}
	}
	if list := Savings(notes); len(list) > 0 {
		c.Note = NamesOf(notes).note(list[0])
		if c.remedy(list[0]); verdict != finding.Unknown {
			c.Next = cmp.Or(list[0].Brief.Next, c.Next)
		}
	}
	return c
}

// note is a note in a line: whose it is, its place and its title.
func (n Names) note(f *finding.Finding) string {
	text := f.Title
	if short := ShortTitle(f); short != "" {
		if text = short; f.Site != nil {
			text = n.Place(f.Site) + "  " + text
		}
	}
	if f.Process != "" {
		text = f.Process + ": " + text
	}
	return text
}

// Keeps reports whether a finding is about a place that keeps what it allocates, which
// its course tells better than words.
func Keeps(f *finding.Finding) bool {
	return (f.Kind == finding.Leak || f.Kind == finding.AutogradGraph) && f.Site != nil && len(f.Trend) > 1 && f.Brief.Title == ""
}

// Grown states how much a traced process grew.
func Grown(d *recording.Document) string {
	took := units.Seconds(d.Duration)
	switch {
	case d.Ended && d.RSS == 0:
		return fmt.Sprintf("process %d ended while being watched, after %s", d.PID, took)
	case d.RSSGrowth >= 1<<20:
		share := ""
		if d.Explained != nil {
			share = fmt.Sprintf(", %s of it explained", units.Percent(*d.Explained))
		}
		return fmt.Sprintf("process %d grew by %s in %s%s", d.PID, units.Bytes(d.RSSGrowth), took, share)
	}
	return fmt.Sprintf("process %d did not grow in %s (%s resident)", d.PID, took, units.Bytes(d.RSS))
}

// Watched states what a watch saw, for so many seconds.
func Watched(processes int, seconds float64, samples int) string {
	return fmt.Sprintf("%s watched for %s, %s", units.Plural(int64(processes), "process"), units.Seconds(seconds), units.Plural(int64(samples), "sample"))
}

// Word is the verdict of a finding in a word.
func Word(f *finding.Finding) string {
	switch {
	case f.Severity == finding.Info:
		return "NOTE"
	case f.Severity != finding.Problem:
		return "WARNING"
	case f.Kind == finding.OutOfMemory:
		return "OOM"
	case f.Kind == finding.Fragmentation:
		return "FRAGMENTATION"
	case f.Kind == finding.AboveLimit:
		return "OVER"
	}
	return "LEAK"
}

// ShortTitle is the title of a finding that does not name its place; "" if it has none.
func ShortTitle(f *finding.Finding) string { return cmp.Or(f.Brief.Title, recordedTitle(f)) }

// titled reports whether the title of a failure says all: the line that failed, a helper often,
// is only the first of those that led there.
func titled(f *finding.Finding) bool {
	return f.Kind == finding.OutOfMemory && ShortTitle(f) == "" && !Keeps(f)
}

// recordedTitle is a short title of a finding that was recorded without one, from its kind
// and figures; "" if its title is short, or they are not known.
func recordedTitle(f *finding.Finding) string {
	const maxWords = 20
	if f.Bytes == nil || f.Count == nil || f.Site == nil || len(strings.Fields(f.Title)) <= maxWords {
		return ""
	}
	return fmt.Sprintf("%s: %s in %s", f.Kind, units.Bytes(*f.Bytes), units.Plural(*f.Count, "piece"))
}

// Unsure is the confidence of the cause, "" if it is certain.
func Unsure(f *finding.Finding) string {
	const certain = 0.995
	if f.Confidence >= certain || f.Confidence == 0 {
		return ""
	}
	return Sure(f.Confidence)
}

// Sure states a confidence.
func Sure(confidence float64) string { return WholePercent(confidence) + " sure" }

// WholePercent is a share in whole percent.
func WholePercent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// SettingLines are the lines of a setting. One of the allocator quotes the file's and is a
// single line.
func SettingLines(setting string) []string {
	switch {
	case setting == "":
		return nil
	case strings.HasPrefix(setting, "PYTORCH_CUDA_ALLOC_CONF="):
		return []string{setting}
	}
	return strings.Split(setting, "\n")
}

// Pasted is a setting as it is pasted: a variable of the environment is exported.
func Pasted(setting string) string {
	name, _, ok := strings.Cut(setting, "=")
	if ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
		return "export " + setting
	}
	return setting
}

// EffectText is what a setting would have done.
func EffectText(f *finding.Finding, e *finding.Effect) string {
	how := "replayed: "
	if !e.Exact {
		how = "replayed approximately: "
	}
	switch {
	case e.Left != nil:
		return how + "succeeds, " + units.Bytes(*e.Left) + " to spare"
	case f.Kind == finding.OutOfMemory:
		return how + "succeeds"
	}
	return fmt.Sprintf("%speak %s instead of %s", how, units.Bytes(e.PeakReserved), units.Bytes(e.PeakReserved+e.Saves))
}

// WhyOf is what a judgment rests on: the account that adds up, or a sentence.
func WhyOf(f *finding.Finding) string {
	if a := f.Brief.Account; a != nil {
		return Sum(a)
	}
	return f.Brief.Why
}

// Sum is an account in one line, in the unit of the whole, whose printed figures add up.
func Sum(a *finding.Account) string {
	const maxParts = 4
	total := units.Bytes(a.Bytes)
	_, unit, _ := strings.Cut(total, " ")
	scale := math.Pow(1024, float64(strings.Index("BKMGTP", unit[:1])))
	digits := 0 // as many as the whole has
	switch x := float64(a.Bytes) / scale; {
	case unit == "B":
	case x < 10:
		digits = 2
	case x < 100:
		digits = 1
	}
	parts := slices.Clone(a.Parts)
	sorts.StableBy(parts, func(x, y finding.Part) int { // all others are one part, the last
		return sorts.Bool(x.Name == "other", y.Name == "other")
	})
	if len(parts) > maxParts {
		last := finding.Part{Name: "other"}
		for _, p := range parts[maxParts-1:] {
			last.Bytes += p.Bytes
		}
		parts = append(parts[:maxParts-1], last)
	}
	step := math.Pow(10, float64(digits))
	var words []string
	for i, n := range apportion(parts, a.Bytes, step/scale) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%.*f %s", digits, float64(n)/step, parts[i].Name))
		}
	}
	if a.Name != "" {
		total += " " + a.Name
	}
	return total + " = " + strings.Join(words, " + ")
}

// apportion rounds parts of a whole to steps so that they add up to the rounded whole: what
// rounding leaves over goes to those that lost the most by it.
func apportion(parts []finding.Part, whole int64, steps float64) []int64 {
	out := make([]int64, len(parts))
	order := make([]int, len(parts))
	left := int64(float64(whole)*steps + 0.5)
	lost := make([]float64, len(parts))
	for i, p := range parts {
		x := float64(p.Bytes) * steps
		out[i], order[i] = int64(x), i
		lost[i] = x - float64(out[i])
		left -= out[i]
	}
	sorts.StableBy(order, func(i, j int) int { return cmp.Compare(lost[j], lost[i]) })
	for k := 0; left > 0 && k < len(order); k++ {
		out[order[k]]++
		left--
	}
	return out
}

// Amounts is a course in a few figures, with the unit once: 88.9 → 147 → 205 MiB.
func Amounts(values []int64) string {
	shown := []int64{values[0], values[len(values)-1]}
	if len(values) == 3 {
		shown = values
	}
	last := units.Bytes(shown[len(shown)-1])
	_, unit, _ := strings.Cut(last, " ")
	var parts []string
	for _, v := range shown[:len(shown)-1] {
		parts = append(parts, strings.TrimSuffix(units.Bytes(v), " "+unit))
	}
	return strings.Join(append(parts, last), " → ")
}

// Piece names one of what a line keeps.
func Piece(f *finding.Finding) string {
	e, ok := f.Evidence.(*finding.LeakEvidence)
	switch {
	case ok && e.Devices != nil: // of JAX
		return "array"
	case ok:
		return "tensor"
	}
	return "piece"
}

// KeepsTitle sums up the lines that leak.
func KeepsTitle(list []*finding.Finding) string {
	seen := map[finding.Site]bool{} // of several devices or ranks
	for _, f := range list {
		if Keeps(f) && f.Severity == list[0].Severity {
			seen[*f.Site] = true
		}
	}
	text, lines := keeping(list), int64(len(seen))
	switch {
	case list[0].Kind == finding.AutogradGraph: // by a reference that no stack shows
	case lines == 1:
		text = "1 line " + text
	default:
		text = units.Plural(lines, "line") + " keep" + strings.TrimPrefix(text, "keeps")
	}
	if list[0].Severity == finding.Warning {
		text = "maybe a leak: " + text
	}
	return text
}

// keeping is what one line that leaks keeps, or all of some.
func keeping(list []*finding.Finding) string {
	var bytes, rate int64
	per, what, growth := "a snapshot", Piece(list[0])+"s", ""
	if e, ok := list[0].Evidence.(*finding.LeakEvidence); !ok || e.Devices != nil {
		per = "a file"
	}
	if what == "pieces" {
		what = "memory"
	}
	for _, f := range list {
		if !Keeps(f) || f.Severity != list[0].Severity {
			continue
		}
		if f.Bytes != nil {
			bytes += *f.Bytes
		}
		if f.BytesPerStep != nil {
			rate += *f.BytesPerStep
		}
		switch e := f.Evidence.(type) {
		case *finding.LeakEvidence:
			if e.Steps > 0 {
				per = "a step"
			}
		case *finding.StepGrowthEvidence:
			per = "a step"
		}
	}
	if rate != 0 {
		growth = units.SignedBytes(rate) + " " + per + ", "
	}
	if list[0].Kind == finding.AutogradGraph {
		return fmt.Sprintf("the autograd graph of past steps is kept: %snow %s", growth, units.Bytes(bytes))
	}
	return fmt.Sprintf("keeps %s: %snow %s", what, growth, units.Bytes(bytes))
}

// Via is how the program came to a place: the callers in its own code, nearest first, and
// before them the place itself where the title does not go with it. Of a package's place the
// line that calls the package is always among them.
func (n Names) Via(f *finding.Finding) string {
	const maxCallers = 3
	if f.Site == nil {
		return ""
	}
	var parts []string
	if titled(f) {
		parts = append(parts, n.Place(f.Site))
	}
	frames := f.Stack
	if i := slices.Index(frames, *f.Site); i >= 0 {
		frames = frames[i+1:]
	}
	most := len(parts) + maxCallers
	file, origin := f.Site.File, stack.Own
	if stack.OriginOf(stack.Frame(*f.Site)) == stack.Native { // a program that is not in Python
		origin = stack.Native
	}
	program, left := !stack.Installed(stack.Frame(*f.Site)), false // whether it is named, and callers are left out
	for _, x := range frames {
		if o := stack.OriginOf(stack.Frame(x)); o != origin || x.Function == "<module>" || x.Function == "" && (x.Line == 0 || o == stack.Native) {
			continue // the lines of check have no functions
		}
		own := !stack.Installed(stack.Frame(x))
		if len(parts) >= most && (program || !own) {
			left = true
			continue
		}
		if left {
			parts, left = append(parts, "…"), false
		}
		program = program || own
		at := fmt.Sprintf(":%d", x.Line)
		switch {
		case x.Line == 0:
			at = ""
		case x.File != file:
			at = n.name(x.File) + at
		}
		parts = append(parts, strings.TrimSpace(at+" "+clipped(x.Function)))
		file = x.File
	}
	if left {
		parts = append(parts, "…")
	}
	return strings.Join(parts, " ← ")
}

// Place is a line of code, its file as short as it is unique.
func (n Names) Place(site *finding.Site) string {
	if site.File == "" || site.Line == 0 {
		return strings.TrimSpace(n.name(site.File) + " " + clipped(site.Function))
	}
	return strings.TrimSpace(fmt.Sprintf("%s:%d %s", n.name(site.File), site.Line, clipped(site.Function)))
}

// clipped is the name of a function, as far as a line has room: C++ templates take hundreds of
// characters.
func clipped(function string) string {
	const maxName = 100
	if name := []rune(function); len(name) > maxName {
		return string(name[:maxName-1]) + "…"
	}
	return function
}

func (n Names) name(file string) string {
	if short, ok := n[file]; ok {
		return short
	}
	return file
}

// NamesOf are the names of the files that findings name.
func NamesOf(findings []finding.Finding) Names {
	var files []string
	for i := range findings {
		f := &findings[i]
		if f.Site != nil {
			files = append(files, f.Site.File)
		}
		for _, x := range f.Stack {
			files = append(files, x.File)
		}
	}
	return ShortNames(files)
}

// Names are names of files, each cut at its front as long as it stays different from the others.
type Names map[string]string

// ShortNames are those of files.
func ShortNames(files []string) Names {
	names := Names{}
	for _, file := range files {
		if file != "" {
			names[file] = file
		}
	}
	ends := map[string]int{} // how many files end so
	for file := range names {
		for at := len(file); at >= 0; {
			at = strings.LastIndexAny(file[:at], `/\`)
			ends[file[at+1:]]++
		}
	}
	for file := range names {
		for at := len(file); at >= 0; {
			at = strings.LastIndexAny(file[:at], `/\`)
			if names[file] = file[at+1:]; ends[file[at+1:]] == 1 {
				break
			}
		}
	}
	return names
}
