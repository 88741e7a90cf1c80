package tables

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// courses judges the columns of a table, each on its own.
func courses(f *profiles.File, limit *int64) (out []finding.Finding, judged bool) {
	if oneReading(f.Columns) {
		return heldNow(f.Columns), false
	}
	for i := range f.Columns {
		c := &f.Columns[i]
		v := trend.JudgeLevels(c.Times, c.Bytes)
		if short, ok := trend.JudgeShort(c.Times, c.Bytes, c.Died); ok && (c.Died || c.Logged) {
			v = short
		}
		v.Unit, v.Percent = c.Unit, c.Percent
		judged = judged || v.Shape != trend.Unknown
		found := course(c, &v, limit)
		cacheGrows(&found, c, f.Columns)
		out = append(out, found)
	}
	return out, judged
}

// addressSpace are names of columns of addresses, of which only a part has memory.
var addressSpace = lazyregexp.New(`(?i)^(vsz|vms|vm_?size|virt(ual)?)([ _.(\[].*)?$`)

// course is the finding on one column. The limit of what the caller judges is not that of
// a cache, nor of address space.
func course(c *profiles.Column, v *trend.Course, limit *int64) finding.Finding {
	space := addressSpace.MatchString(c.Name)
	if limit == nil || c.Cache || space {
		limit = c.Limit
	}
	e := v.Evidence(c.Name, limit)
	if e.Phase = c.Phase; v.Leaks() && c.Lines[1] != "" {
		e.Keeper = strings.TrimSpace(c.Process + " " + strings.TrimSuffix(c.Name, " "+c.Phase))
	}
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: e.Confidence, Process: c.Process, Bytes: e.LevelBytes, Evidence: e,
		Title: c.Name + ": " + v.Words(), Basis: v.Basis(), Brief: short(c, v),
	}
	if !c.Percent {
		f.Trend = trend.Thinned(c.Bytes)
	}
	ends := endsOf(c)
	if ends != "" {
		switch over := 2*c.Bytes[len(c.Bytes)-1] < slices.Max(c.Bytes); {
		case over && !v.Leaks() && v.Shape != trend.Sawtooth:
			f.Title = c.Name + ": " + ends // the job that held it is over
			f.Brief.Title = ""
		case over, v.Shape == trend.Unknown:
			f.Detail = append(f.Detail, ends)
		}
	}
	switch {
	case c.Kept != "" && !v.Leaks():
		f.Severity, f.Confidence, e.Phase, e.Keeper = finding.Warning, 0.7, c.Kept, c.Name
		f.Title = fmt.Sprintf("%s: %s it is no lower than before: next to nothing was given back", c.Name, c.Kept)
		f.Remedies = []finding.Remedy{finding.CodeChange("find who still holds it " + c.Kept + ": references, or a pool that this call does not free (weights, KV cache, PyTorch's cache)")}
	case v.Shape == trend.Unknown && !c.Evicts:
		unjudged(&f, c, v)
	}
	for i, at := range []string{"first", "last"} {
		if c.Lines[i] != "" {
			f.Detail = append(f.Detail, at+": "+quoted(c.Lines[i]))
		}
	}
	switch {
	case c.Evicts:
		evicts(&f, c)
		return f
	case v.Leaks() && c.Peak:
		f.Detail = append(f.Detail, "this is a high-water mark, which never falls: growth of it alone is no leak")
		e.Verdict = string(trend.Step)
		f.Title = c.Name + ": a high-water mark, now " + units.Bytes(int64(c.Bytes[len(c.Bytes)-1]))
	case v.Leaks() && c.Cache:
		fills(&f, c)
	case v.Leaks() && c.Unstated:
		f.Kind, f.Severity = finding.Leak, finding.Warning
		f.Detail = append(f.Detail, "nothing says that this column is memory: name it in a header, such as time,rss_bytes")
	case v.Leaks():
		f.Kind, f.Severity = finding.Leak, finding.Problem
		f.Remedies = remedies(c)
		if c.Phase != "" {
			f.Detail = append(f.Detail, "each time "+c.Phase+" more is kept than the time before")
		}
		if ofGPU := OfDevice(c) || ofDevice.MatchString(c.Lines[1]) || engineName.MatchString(c.Lines[1]); ofGPU && c.Lines[1] != "" && !pooled.MatchString(c.Name) {
			f.Detail = append(f.Detail, "the lines do not say whether tensors grow or PyTorch's cache (reserved): print memory_allocated() and memory_reserved()")
		}
		if space {
			f.Detail = append(f.Detail, "this is address space, of which only a part is in memory")
		}
	}
	if limit != nil {
		name := "the limit of " + units.Bytes(*limit)
		if c.Percent {
			name = units.Percent(float64(*limit) / 100)
		}
		if text := v.Reaches(e, name); text != "" {
			f.Detail = append(f.Detail, text)
			if f.Severity == finding.Info && !v.Leaks() {
				f.Severity = finding.Warning // it is above the limit
			}
		}
	}
	return f
}

// endsOf states the first, the highest and the last level, and the rate between the ends, "" if a
// level is missing. Two levels may be of two things, so they are no beginning and end.
func endsOf(c *profiles.Column) string {
	n := len(c.Bytes) - 1
	if c.Percent || n < 1 || slices.ContainsFunc(c.Bytes, math.IsNaN) {
		return ""
	}
	first, last, most := c.Bytes[0], c.Bytes[n], slices.Max(c.Bytes)
	text := units.Bytes(int64(first)) + ", then " + units.Bytes(int64(last))
	if n > 1 {
		text = units.Bytes(int64(first)) + " at first, "
		if most > max(first, last) {
			text += units.Bytes(int64(most)) + " at most, "
		}
		text += units.Bytes(int64(last)) + " at the end"
	}
	if c.Limit != nil {
		text += " of " + units.Bytes(*c.Limit)
	}
	const minHours = 1.0 / 6 // of less, an hour cannot be told
	if hours := (c.Times[n] - c.Times[0]) / 3600; c.Unit == "" && hours >= minHours && last > first && !(most > last) {
		text += fmt.Sprintf(": %s an hour", units.Bytes(int64((last-first)/hours)))
	}
	return text
}

// short is what a first screen states of a level that grows.
func short(c *profiles.Column, v *trend.Course) finding.Brief {
	if text := v.Short(); text != "" {
		return finding.Brief{Title: c.Name + ": " + text}
	}
	return finding.Brief{}
}

// quoted is the beginning of a line of the text.
func quoted(line string) string {
	const maxShown = 160
	line = strings.Join(strings.Fields(secret.Text(strings.ToValidUTF8(line, "?"))), " ")
	if len(line) > maxShown {
		line = strings.ToValidUTF8(line[:maxShown], "") + "…"
	}
	return line
}

// evicts judges a cache that is bounded: it is no leak, however it grows.
func evicts(f *finding.Finding, c *profiles.Column) {
	now, e := int64(c.Bytes[len(c.Bytes)-1]), f.Evidence.(*finding.LevelsEvidence)
	e.Verdict, e.LevelBytes = string(trend.Plateau), &now
	f.Title = fmt.Sprintf("%s: a cache that evicts its oldest entries, not a leak: %s now", c.Name, units.Bytes(now))
	if c.Limit != nil {
		f.Title = fmt.Sprintf("%s: a cache, not a leak: %s of its limit of %s", c.Name, units.Bytes(now), units.Bytes(*c.Limit))
		switch {
		case now > *c.Limit:
			f.Detail = append(f.Detail, "it is above its limit: the newest entry always stays, however large it is")
		case 10*now < 9*(*c.Limit):
			e.Verdict = string(trend.Unknown)
			f.Detail = append(f.Detail, "it fills up to its limit, and evicts there")
		default:
			f.Detail = append(f.Detail, "it is full, and evicts its oldest entries")
		}
	}
	f.Brief.Title = f.Title
	if len(f.Detail) > 0 {
		f.Brief.Why = f.Detail[len(f.Detail)-1]
	}
	f.Remedies = []finding.Remedy{finding.SettingChange("--cache-ram 2048", "a smaller limit, MiB of the host's memory; 0 turns the cache off")}
}

// fills judges the KV cache of an engine that is fuller and fuller. It takes no more of
// the device; what matters is whether requests hold it, which give it back.
func fills(f *finding.Finding, c *profiles.Column) {
	f.Detail = append(f.Detail, "the engine has taken this memory already; when it is full, requests wait or are preempted")
	if n := len(c.Requests); n > 0 {
		third := (n + 1) / 3
		before, after := mean(c.Requests[:third]), mean(c.Requests[n-third:])
		f.Detail = append(f.Detail, fmt.Sprintf("requests in progress: %.3g at first, %.3g at the end, on average", before, after))
		if after > 1.1*before {
			f.Detail = append(f.Detail, "it grows with them, and they give it back when they end")
			return
		}
	}
	f.Severity = finding.Warning
	f.Remedies = []finding.Remedy{finding.CodeChange("compare it with the engine's requests: `strandline watch --pid PID --metrics HOST:PORT` prints the growth per request. Longer contexts and requests without an end fill it")}
}

func mean(x []float64) float64 {
	var sum float64
	for _, n := range x {
		sum += n
	}
	return sum / float64(len(x))
}

// ofDevice are names of the memory of devices, and of what PyTorch has of it.
var ofDevice = lazyregexp.New(`(?i)(gpu|cuda|hbm|vram|memory\.used|fb_used|device|allocated|reserved)`)

var (
	// engineName are programs whose memory is that of a device.
	engineName = lazyregexp.New(`(?i)vllm|sglang|fsdp|deepspeed`)
	// pooled are names that tell PyTorch's cache from its tensors, and memory of the host.
	pooled = lazyregexp.New(`(?i)allocated|reserved|cached|current|active|rss|ram\b|host|swap`)
)

// OfDevice reports whether a column is memory of a device, as far as its name tells.
func OfDevice(c *profiles.Column) bool { return ofDevice.MatchString(c.Name + " " + c.Process) }

// pidIn is the process of a column.
var pidIn = lazyregexp.New(`\bpid (\d+)\b`)

// remedies are what to do next about a level that grows.
func remedies(c *profiles.Column) []finding.Remedy {
	text := "find the line: `strandline trace --pid PID`"
	if OfDevice(c) {
		text = "find the line: `strandline record --pid PID` records a running PyTorch process, `strandline trace --gpu --pid PID` any other"
	}
	if m := pidIn.FindStringSubmatch(c.Process); m != nil {
		text = strings.ReplaceAll(text, "PID", m[1])
	}
	return []finding.Remedy{finding.CodeChange(text)}
}
