package snapshots

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/timeline"
	"strandline/units"
)

// graph is the finding of a kept autograd graph, if the places form one: they grow in
// step, by one thing each per forward pass, at several lines of it, and gradients were
// not switched off there. What keeps a graph alive is seldom the line that made its
// tensors.
func (g *growth) graph(places []*place) *finding.Finding {
	if len(places) < 2 || !g.forward(places) && !g.oneGraph(places) {
		return nil
	}
	f := g.leak(places)
	f.Kind = finding.AutogradGraph
	var lines []string
	for _, p := range places {
		f.Sites = append(f.Sites, finding.Place{Site: finding.Site(p.site), Bytes: p.bytes(), Count: p.count()})
		lines = append(lines, fmt.Sprintf("%s: %s in %s", short(p.site), units.Bytes(p.bytes()), units.Plural(p.count(), "tensor")))
	}
	sort.SliceStable(f.Sites, func(i, j int) bool { return f.Sites[i].Bytes > f.Sites[j].Bytes })
	per := ""
	if f.BytesPerStep != nil {
		per = fmt.Sprintf(", %s from file to file", units.SignedBytes(*f.BytesPerStep))
		if g.judged.Inside {
			per = fmt.Sprintf(", %s a step", units.SignedBytes(*f.BytesPerStep))
		}
	}
	f.Title = fmt.Sprintf("the autograd graph of past iterations is kept: %s in %s allocated at %d lines of one forward pass%s",
		units.Bytes(*f.Bytes), units.Plural(*f.Count, "tensor"), len(places), per)
	f.Detail = append([]string{"kept by one graph: " + strings.Join(lines, "; ")}, f.Detail...)
	root := places[0].site
	f.Remedies = []finding.Remedy{
		finding.CodeChange("call .detach() or .item() on tensors kept beyond the step: total += loss.item()").
			Because(fmt.Sprintf("a result of this forward pass (%s) outlives the iteration: a loss summed or stored, a running metric, a hidden state", short(root))),
		finding.CodeChange("drop retain_graph=True where the graph is not used twice"),
		finding.CodeChange("run evaluation under torch.no_grad()"),
	}
	if e, ok := f.Evidence.(*finding.LeakEvidence); ok {
		f.Remedies = append(holderRemedies(e.HeldBy), f.Remedies...)
	}
	return &f
}

// forward reports whether the places belong to a forward pass with gradients: a loss and
// what it was computed from, or tensors from three lines or more. Two lines of a module
// could just as well be two lists that somebody keeps.
func (g *growth) forward(places []*place) bool {
	passes, losses := 0, 0
	for _, p := range places {
		in, loss := false, false
		for _, id := range p.stacks {
			frames := g.book.Stacks.Stack(id)
			if stack.InForward(frames) && !stack.WithoutGradients(frames) {
				in = true
				loss = loss || stack.InLoss(frames)
			}
		}
		if in {
			passes++
		}
		if loss {
			losses++
		}
	}
	return passes >= 3 || losses > 0 && len(places) >= 2
}

// oneGraph reports whether the recorder found that the graph of one variable keeps the tensors
// of each place.
func (g *growth) oneGraph(places []*place) bool {
	path := ""
	for _, p := range places {
		held := g.heldBy([]*place{p})
		if len(held) == 0 || held[0].Kind != byAutograd || path != "" && held[0].Path != path {
			return false
		}
		path = held[0].Path
	}
	return true
}

// ofGraphs is the share of what a place keeps above which it is kept by a graph, not
// counting its last result and what that is computed from. scalar is the size in bytes of
// the largest tensor that counts as a scalar.
const (
	ofGraphs   = 0.8
	lastResult = 2
	scalar     = 512
)

// keepNumbers is advice on scalars that are kept as tensors.
var keepNumbers = finding.CodeChange("keep x.item() if only the numbers are needed later, or x.detach() where they stay on the device").
	Because("a tensor with gradients also keeps its graph")

// toGraphLeak turns the leak of one place into that of a graph, if a graph keeps its tensors:
// the recorder found that one does, or they are operands, which no container keeps, or
// they are losses on which a backward pass began, kept in place of their numbers.
func (g *growth) toGraphLeak(p *place, f *finding.Finding) {
	e := f.Evidence.(*finding.LeakEvidence)
	operands, losses := g.keptAs(p)
	byGraph := len(e.HeldBy) > 0 && e.HeldBy[0].Kind == byAutograd
	if without := g.withoutGradients(p); !byGraph && (len(e.HeldBy) > 0 || without) {
		if !without && p.bytes() <= scalar*p.count() {
			f.Remedies = append(f.Remedies, keepNumbers)
		}
		return
	}
	maybe, per := "", strings.TrimPrefix(f.Title[strings.LastIndex(f.Title, ":")+1:], " ")
	if f.Severity == finding.Warning {
		maybe = "maybe "
	}
	what := fmt.Sprintf("%s at %s", units.Plural(p.count(), "tensor"), short(p.site))
	switch {
	case byGraph, operands:
		f.Title = fmt.Sprintf("%sthe autograd graph of past iterations is kept, and with it %s: %s", maybe, what, per)
	case losses:
		f.Title = fmt.Sprintf("%sthe losses of past iterations are kept as tensors, %s: %s", maybe, what, per)
		f.Detail = append(f.Detail, "each keeps its graph too, unless it was detached")
	default:
		if p.bytes() <= scalar*p.count() {
			if len(f.Remedies) > 1 {
				f.Remedies[1] = keepNumbers
			}
			f.Remedies = append(f.Remedies, finding.CodeChange("call .detach() or .item() where a running value is computed from them").
				Because("with gradients on, its graph keeps them"))
		}
		return
	}
	if operands {
		f.Detail = append(f.Detail, "they are not the results of that line, but their inputs, which only a graph keeps")
	}
	f.Kind = finding.AutogradGraph
	f.Remedies = append(holderRemedies(e.HeldBy),
		finding.CodeChange(fmt.Sprintf("call .detach(), or .item() of a scalar, on the tensors that %s:%d keeps or sums up: total += loss.item()", plain(p.site.File), p.site.Line)),
		finding.CodeChange("compute metrics under torch.no_grad()"))
}

// keptAs reports whether what a place keeps are operands of what its line computes, or
// losses each of which began a backward pass.
func (g *growth) keptAs(p *place) (operands, losses bool) {
	var sum timeline.Kept
	inLoss := true
	for _, id := range p.stacks {
		if k := g.process.Newest().Device(g.device).Kept[id]; k != nil {
			sum.Count += k.Count
			sum.Operands += k.Operands
			sum.Losses += k.Losses
			inLoss = inLoss && stack.InLoss(g.book.Stacks.Stack(id))
		}
	}
	enough := func(n int) bool {
		return n >= timeline.MinSteps && (n+lastResult >= sum.Count || float64(n) >= ofGraphs*float64(sum.Count))
	}
	return enough(sum.Operands), enough(sum.Losses) && inLoss && p.bytes() <= scalar*p.count()
}

// withoutGradients reports whether gradients are off at the place's allocations.
func (g *growth) withoutGradients(p *place) bool {
	return slices.ContainsFunc(p.stacks, func(id stack.ID) bool { return stack.WithoutGradients(g.book.Stacks.Stack(id)) })
}
