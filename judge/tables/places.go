package tables

import (
	"cmp"
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
	"strandline/trend"
	"strandline/units"
)

// pieces are the allocations of one stack and size on one device. A profile has no
// identities: when pieces become fewer, the oldest are assumed to go first.
type pieces struct {
	device, kind, stack string
	size                int64
}

// place is what one line holds on one device in each file of a series.
type place struct {
	site    finding.Site
	device  string
	stack   []stack.Frame
	pop     *trend.Population
	verdict trend.Verdict
}

// places judges what stays and grows, by line and device, and compiled programs by their
// number.
func places(s Series) (out []finding.Finding) {
	if len(s.Files) < minMoments || s.Files[0].Format != "jax" { // others state what is alive at the end of a recording
		return nil
	}
	byLine := map[stack.Frame][]*place{}
	for _, p := range grouped(s.Files) {
		if p.verdict.Class == trend.Leak {
			byLine[stack.Frame(p.site)] = append(byLine[stack.Frame(p.site)], p)
		}
	}
	for _, list := range byLine {
		out = append(out, leak(list, s))
	}
	sorts.By(out, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(*b.Bytes, *a.Bytes), stack.Frame(*a.Site).Compare(stack.Frame(*b.Site)))
	})
	if f, ok := recompiled(s); ok {
		out = append(out, f)
	}
	return out
}

// grouped sums buffers by line and device, and judges each sum.
func grouped(files []*profiles.File) (out []*place) {
	counts := map[pieces][]int64{}
	stacks := map[string][]stack.Frame{}
	var order []pieces
	for i, f := range files {
		for _, u := range f.Uses {
			if u.Kind != jax.Buffer {
				continue
			}
			k := pieces{u.Device, u.Kind, fmt.Sprint(u.Stack), u.Size}
			if counts[k] == nil {
				counts[k] = make([]int64, len(files))
				stacks[k.stack] = u.Stack
				order = append(order, k)
			}
			counts[k][i] = units.Sum(counts[k][i], u.Count)
		}
	}
	type key struct {
		site   stack.Frame
		device string
	}
	at := map[key]*place{}
	for _, k := range order {
		site := jax.Site(stacks[k.stack])
		p := at[key{site, k.device}]
		if p == nil {
			p = &place{site: finding.Site(site), device: k.device, stack: stacks[k.stack], pop: trend.NewPopulation(len(files))}
			at[key{site, k.device}] = p
			out = append(out, p)
		}
		add(p.pop, counts[k], k.size)
	}
	for _, p := range out {
		p.verdict = trend.Judge(p.pop, trend.Past{})
	}
	return out
}

// add counts pieces, given how many were alive at each checkpoint: the oldest go first.
func add(p *trend.Population, counts []int64, size int64) {
	type batch struct {
		first int
		n     int64
	}
	var live []batch
	before := int64(0)
	for j, n := range counts {
		if n > before {
			live = append(live, batch{j, n - before})
		}
		for gone := before - n; gone > 0; {
			b := &live[0]
			part := min(gone, b.n)
			p.AddMany(trend.Span{First: b.first, Last: j - 1, Bytes: size}, part)
			gone -= part
			if b.n -= part; b.n == 0 {
				live = live[1:]
			}
		}
		before = n
	}
	for _, b := range live {
		p.AddMany(trend.Span{First: b.first, Last: len(counts) - 1, Bytes: size}, b.n)
	}
}

// leak is the finding of one line, on the devices where it leaks.
func leak(list []*place, s Series) finding.Finding {
	sorts.By(list, func(a, b *place) int { return strings.Compare(a.device, b.device) })
	pop := trend.NewPopulation(len(s.Files))
	var devices []string
	best := list[0]
	for _, p := range list {
		pop.Merge(p.pop)
		devices = append(devices, p.device)
		if p.verdict.Confidence > best.verdict.Confidence {
			best = p
		}
	}
	n := len(s.Files) - 1
	bytes, count := pop.Bytes[n], pop.Count[n]
	rate := (bytes - pop.Bytes[0]) / int64(n)
	e := evidence(pop, best.verdict)
	e.Devices = devices
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: best.verdict.Confidence, Basis: best.verdict.Basis(),
		Site: &best.site, Bytes: &bytes, Count: &count, BytesPerStep: &rate, Trend: pop.Bytes, Evidence: e,
	}
	for _, x := range best.stack {
		f.Stack = append(f.Stack, finding.Frame(x))
	}
	more := units.Plural((count-pop.Count[0])/int64(n), "array")
	f.Title = fmt.Sprintf("arrays created at %s are kept: %s, %s; %s and %s more a file, on %s",
		at(best.site), units.Plural(count, "array"), units.Bytes(bytes), more, units.Bytes(rate), devicesOf(devices))
	if len(list) == 1 {
		f.Device = index(devices[0])
	}
	if f.Confidence < problemConfidence {
		f.Severity, f.Title = finding.Warning, "maybe a leak: "+f.Title
	}
	if size := bytes / max(count, 1); size < 256 {
		f.Detail = append(f.Detail, "they are scalars: few bytes, but each takes 256 bytes of a GPU and holds a Python object")
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("store numbers instead of arrays (float(x), x.item(), jax.device_get(x)), or drop them after use")}
	f.Brief.Why = f.Basis
	return f
}

func devicesOf(devices []string) string {
	if len(devices) == 1 && devices[0] == "" {
		return "an unnamed device"
	}
	return list(devices)
}

// recompiled warns if compiled programs are added again and again: those of the first
// steps alone are normal.
func recompiled(s Series) (f finding.Finding, ok bool) {
	counts := make([]int64, len(s.Files))
	for i, file := range s.Files {
		for _, l := range file.Levels {
			if l.Kind == jax.Executable {
				counts[i] = units.Sum(counts[i], *l.Count)
			}
		}
	}
	pop := trend.NewPopulation(len(counts))
	add(pop, counts, 0)
	v := trend.Judge(pop, trend.Past{})
	if v.Class != trend.Leak || v.Confidence < problemConfidence {
		return f, false
	}
	n := len(counts) - 1
	f = finding.Finding{
		Kind: finding.Growth, Severity: finding.Warning, Confidence: v.Confidence, Basis: v.Basis(),
		Title:    fmt.Sprintf("programs are recompiled repeatedly: %s, up from %s", units.Plural(counts[n], "executable"), units.Count(counts[0])),
		Count:    &counts[n],
		Evidence: &finding.CompilationsEvidence{CountAtCheckpoints: counts},
		Remedies: []finding.Remedy{finding.CodeChange("find the change between calls of jitted functions (shapes, static arguments, new lambdas): JAX_LOG_COMPILES=1 names each compilation")},
	}
	if site, more := recompiling(s); more > 0 {
		f.Site = &site
		f.Title += fmt.Sprintf("; %s of them by %s", units.Count(more), at(site))
	}
	return f, true
}

// recompiling is the line that added the most compiled programs between the first file and the
// last, and how many.
func recompiling(s Series) (site finding.Site, most int64) {
	added := map[stack.Frame]int64{}
	for sign, file := range map[int64]*profiles.File{-1: s.Files[0], 1: s.Files[len(s.Files)-1]} {
		for _, u := range file.Uses {
			if u.Kind == jax.Executable && len(u.Stack) > 0 {
				added[jax.Site(u.Stack)] += sign * u.Count
			}
		}
	}
	for place, n := range added {
		if place.File != "" && (n > most || n == most && place.Compare(stack.Frame(site)) < 0) {
			site, most = finding.Site(place), n
		}
	}
	return site, most
}

// heaviest is the line whose memory takes the most; for operators without lines of
// Python, it is the innermost operator.
func heaviest(f *profiles.File) (site finding.Site, bytes int64) {
	sums := map[stack.Frame]int64{}
	for _, u := range f.Uses {
		if u.Kind == jax.Executable {
			continue
		}
		s := placeOf(u.Stack)
		sums[s] = units.Sum(sums[s], u.Size*u.Count)
		if sums[s] > bytes {
			site, bytes = finding.Site(s), sums[s]
		}
	}
	return site, bytes
}

// placeOf is the site of a stack, or its innermost frame if no frame is Python.
func placeOf(frames []stack.Frame) stack.Frame {
	if s := jax.Site(frames); s != (stack.Frame{}) || len(frames) == 0 {
		return s
	}
	return frames[0]
}
