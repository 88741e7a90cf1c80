package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"strandline/face/api"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/units"
)

// Plan is the document of `strandline plan` for an inference engine.
type Plan struct{ *api.Plan }

// sizeRange prints a range of sizes, or one size where both ends read the same.
func sizeRange(low, high int64) string {
	a, b := units.Bytes(low), units.Bytes(high)
	if a == b {
		return a
	}
	if x, unit, ok := strings.Cut(a, " "); ok && strings.HasSuffix(b, " "+unit) {
		a = x
	}
	return a + "–" + b
}

func countRange(low, high int64) string {
	if low == high {
		return units.Count(low)
	}
	return units.Count(low) + "–" + units.Count(high)
}

// billions prints a number of parameters the way people do.
func billions(n int64) string {
	switch x := float64(n); {
	case x >= 1e12:
		return fmt.Sprintf("%.3gT", x/1e12)
	case x >= 1e9:
		return fmt.Sprintf("%.3gB", x/1e9)
	default:
		return fmt.Sprintf("%.3gM", x/1e6)
	}
}

func modelWords(m *api.PlannedModel) string {
	text := billions(m.Parameters) + " parameters"
	if m.Mixture {
		text += ", " + billions(m.Active) + " active"
	}
	return text + ", " + m.Format
}

// divided states how the model is divided. llama.cpp leaves no choice.
func (p Plan) divided() string {
	if p.Offload != nil {
		return fmt.Sprintf("%d × %s", p.Parallel.GPUs, p.GPU.Name)
	}
	return parallelWords(&p.Parallel, p.GPU.Name)
}

func parallelWords(p *api.PlannedParallel, g string) string {
	text := fmt.Sprintf("%d × %s", p.GPUs, g)
	for _, d := range []struct {
		name string
		n    int64
	}{{"TP", p.TP}, {"PP", p.PP}, {"EP", p.EP}, {"DP", p.DP}} {
		if d.n > 1 {
			text += fmt.Sprintf(", %s %d", d.name, d.n)
		}
	}
	if p.Nodes != nil && *p.Nodes > 1 {
		text += fmt.Sprintf(", %d nodes", *p.Nodes)
	}
	return text
}

// verdict returns a verdict in its color.
func (s Style) verdict(v plan.Verdict) string {
	switch v {
	case plan.Fits:
		return s.green(string(v))
	case plan.Tight:
		return s.yellow(string(v))
	}
	return s.red(string(v))
}

// bar draws a part of a whole from where it begins: what is certain as full blocks,
// what it may be beyond that as light ones.
func bar(begin, low, high, total int64, width int) string {
	at := func(n int64) int {
		if total <= 0 {
			return 0
		}
		return min(int(math.Round(float64(n)/float64(total)*float64(width))), width)
	}
	from, sure, may := at(begin), at(begin+low), at(begin+high)
	if may == from && high > 0 && from < width {
		may++ // what is there is visible
	}
	return strings.Repeat(" ", from) + strings.Repeat("█", max(sure-from, 0)) + strings.Repeat("░", max(may-max(sure, from), 0))
}

// parts draws components one below the other, each where the one before it ends.
func parts(w io.Writer, s Style, list []api.PlannedPart, total int64, rest string) {
	width := min(max(s.columns()-44, 20), 60)
	t := table{right: map[int]bool{1: true}}
	begin := int64(0)
	for _, c := range list {
		t.row(c.Name, sizeRange(c.Low, c.High), bar(begin, c.Low, c.High, total, width))
		if c.Name != rest {
			begin += c.Low + (c.High-c.Low)/2
		}
	}
	t.write(w, "  ")
}

// Text writes the plan for a person.
func (p Plan) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  %s\n%s on %s\n\n", s.bold(Line(p.Model.Name)), modelWords(&p.Model), p.Engine, p.divided())
	fmt.Fprintf(w, "%s: %s\n\n", s.verdict(p.Verdict), p.sentence())
	parts(w, s, p.Components, p.GPU.Total, plan.Slack)
	fmt.Fprintln(w)
	keyValues(w, func(w io.Writer) {
		fmt.Fprintf(w, "  KV cache\t%s\n", p.cache())
		if !p.keepsNothing() {
			fmt.Fprintf(w, "  requests\t%s of %s tokens at once\n", requests(p.KV.Requests), units.Count(p.KV.Length))
		}
		if !p.keepsNoTokens() {
			fmt.Fprintf(w, "  longest context\t%s\n", p.longest())
		}
		if o := p.Offload; o != nil {
			fmt.Fprintf(w, "  layers on GPUs\t%s\n", offloadWords(o))
		}
		if len(p.Host) > 0 {
			fmt.Fprintf(w, "  host memory\t%s\n", p.host())
		}
		if p.Images != nil {
			fmt.Fprintf(w, "  a request\t%s\n", p.images())
		}
		if p.Load != nil {
			fmt.Fprintf(w, "  as asked for\t%s\n", p.load())
		}
		if l := p.Latency; l != nil {
			fmt.Fprintf(w, "  first token\t%s after a prompt of %s tokens\n", micros(l.First), units.Count(l.Prompt))
			fmt.Fprintf(w, "  a token\t%s with %s; %s is the limit\n", micros(l.Token), units.Plural(l.Batch, "request"), l.Bound)
		}
	})
	if len(p.Formats) > 0 {
		fmt.Fprintln(w)
		p.formats().write(w, "  ")
	}
	fmt.Fprintf(w, "\n  %s\n\n", strings.Join(p.Flags, " "))
	for _, c := range p.Components {
		fmt.Fprintf(w, "%s: %s\n", c.Name, c.Source)
	}
	if p.Latency != nil {
		fmt.Fprintf(w, "times: a roofline; %s\n", p.Latency.Assumed)
	}
	notes(w, s, p.Notes)
}

func notes(w io.Writer, s Style, list []string) {
	for _, n := range list {
		for i, line := range wrap("note: "+n, s.columns()) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(w, line)
		}
	}
}

func (p Plan) sentence() string {
	used := p.GPU.Total
	if p.Verdict == plan.NotRun {
		return p.Binding
	}
	if p.Offload != nil {
		text := units.Bytes(used) + " on each GPU"
		if p.Verdict != plan.Fits {
			text += "; what is short: " + p.Binding
		}
		return text
	}
	text := fmt.Sprintf("%s on each GPU, %.4g of it for the engine", units.Bytes(used), p.Fraction)
	if strings.HasPrefix(p.Engine, engine.SGLang) {
		text = fmt.Sprintf("%s on each GPU, mem_fraction_static %.4g", units.Bytes(used), p.Fraction)
	}
	if p.Verdict != plan.Fits {
		text += "; what is short: " + p.Binding
	}
	return text
}

// keepsNoTokens reports whether what a request keeps does not depend on its length, and
// keepsNothing whether it keeps nothing.
func (p Plan) keepsNoTokens() bool { return p.KV.PerToken == 0 && p.KV.InWindow == 0 }
func (p Plan) keepsNothing() bool  { return p.keepsNoTokens() && p.KV.State == 0 }

// cache states what tokens and requests take of the KV cache, and how many it holds.
func (p Plan) cache() string {
	switch {
	case p.keepsNothing():
		return "none: an encoder keeps nothing of a request"
	case p.keepsNoTokens():
		return fmt.Sprintf("none: each request keeps a state of %s, whatever its length", units.Bytes(p.KV.State))
	}
	return fmt.Sprintf("%s; %s tokens", p.token(), countRange(p.KV.Tokens[0], p.KV.Tokens[1]))
}

// token states what a token and a request take of the KV cache.
func (p Plan) token() string {
	text := units.Bytes(int64(p.KV.PerToken)) + " a token"
	if p.KV.InWindow > 0 {
		text += fmt.Sprintf(", %s more inside a window of %s", units.Bytes(int64(p.KV.InWindow)), units.Count(p.KV.Window))
	}
	if p.KV.State > 0 {
		text += ", " + units.Bytes(p.KV.State) + " a request"
	}
	return text
}

// longest states how long one request can be. A pool may hold more than the model can
// use.
func (p Plan) longest() string {
	text := countRange(p.KV.Longest[0], p.KV.Longest[1]) + " tokens for one request"
	if c := p.Model.Context; c != nil && p.KV.Longest[0] >= *c {
		return fmt.Sprintf("the model's own limit, %s tokens; there is room for %s", units.Count(*c), countRange(p.KV.Longest[0], p.KV.Longest[1]))
	}
	return text
}

func requests(r [2]float64) string {
	a, b := fmt.Sprintf("%.1f", r[0]), fmt.Sprintf("%.1f", r[1])
	if a == b {
		return a
	}
	return a + "–" + b
}

func micros(r [2]float64) string {
	unit, size := " ms", 1e3
	if r[1] >= 1e6 {
		unit, size = " s", 1e6
	}
	return fmt.Sprintf("%.3g–%.3g", r[0]/size, r[1]/size) + unit
}

func (p Plan) formats() *table {
	t := &table{right: map[int]bool{1: true, 2: true}}
	t.row("format", "weights", "tokens", "")
	for _, f := range p.Formats {
		verdict := string(f.Verdict)
		if n := f.GPULayers; n != nil {
			verdict += fmt.Sprintf(", %d of %d layers", *n, p.Offload.Of)
		}
		t.row(f.Format, units.Bytes(f.Weights), countRange(f.Tokens[0], f.Tokens[1]), verdict)
	}
	return t
}

// Markdown writes the plan for a ticket.
func (p Plan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s** (%s), %s on %s: **%s**, %s.\n\n", cell(p.Model.Name), modelWords(&p.Model), p.Engine, p.divided(), p.Verdict, p.sentence())
	fmt.Fprint(w, "| each GPU | size | source |\n| --- | --: | --- |\n")
	for _, c := range p.Components {
		fmt.Fprintf(w, "| %s | %s | %s |\n", c.Name, sizeRange(c.Low, c.High), cell(c.Source))
	}
	if len(p.Formats) > 0 {
		fmt.Fprintln(w)
		p.formats().markdown(w)
	}
	fmt.Fprintf(w, "\n- KV cache: %s\n", p.cache())
	if !p.keepsNothing() {
		fmt.Fprintf(w, "- %s requests of %s tokens at once", requests(p.KV.Requests), units.Count(p.KV.Length))
		if !p.keepsNoTokens() {
			fmt.Fprintf(w, "; the longest context: %s", p.longest())
		}
		fmt.Fprintln(w)
	}
	if o := p.Offload; o != nil {
		fmt.Fprintf(w, "- layers on GPUs: %s\n", offloadWords(o))
	}
	if len(p.Host) > 0 {
		fmt.Fprintf(w, "- host memory: %s\n", p.host())
	}
	if p.Images != nil {
		fmt.Fprintf(w, "- a request: %s\n", cell(p.images()))
	}
	if p.Load != nil {
		fmt.Fprintf(w, "- %s\n", p.load())
	}
	fmt.Fprintf(w, "- flags: %s\n", code(strings.Join(p.Flags, " ")))
	for _, n := range p.Notes {
		fmt.Fprintf(w, "- %s\n", cell(n))
	}
}

func offloadWords(o *api.PlannedOffload) string {
	text := fmt.Sprintf("%d of %d, the output one of them", o.Layers, o.Of)
	if o.ExpertLayers > 0 {
		text += fmt.Sprintf(", without the experts of %d", o.ExpertLayers)
	}
	return text
}

// host states what is in the host's memory, leaving out what takes nothing.
func (p Plan) host() string {
	var low, high int64
	var of []string
	for _, c := range p.Host {
		if low, high = low+c.Low, high+c.High; c.High > 0 {
			of = append(of, c.Name+" "+sizeRange(c.Low, c.High))
		}
	}
	return sizeRange(low, high) + ": " + strings.Join(of, ", ")
}

// load states what the requests that were asked for need.
func (p Plan) load() string {
	n := p.Load
	text := fmt.Sprintf("%s of %s and %s tokens: %s of KV cache, and there is room for %s", units.Plural(n.Requests, "request"), units.Count(n.Prompt), units.Count(n.Output), units.Bytes(n.KV), requests(n.AtOnce))
	if n.Answer != nil {
		text += fmt.Sprintf("; an answer takes %s", micros(*n.Answer))
	}
	return text
}

// images states what the images of a request take.
func (p Plan) images() string {
	i := p.Images
	return fmt.Sprintf("%s of %s × %s: %s tokens each (%s), %s in all, %s of KV cache. The encoder takes %s for %s at once", units.Plural(i.Count, "image"), units.Count(i.Width), units.Count(i.Height),
		units.Count(i.Tokens), i.Source, units.Count(i.All), units.Bytes(i.KV), sizeRange(i.Low, i.High), units.Count(i.AtOnce))
}
