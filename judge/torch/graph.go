package torch

import (
	"fmt"
	"sort"
	"strings"

	"strandline/finding"
	"strandline/stack"
	"strandline/units"
)

// graph is the finding of a kept autograd graph, if the places are one: they
// grow in step, one thing each for every forward pass, at several lines of it,
// and gradients were not switched off there. What keeps a graph alive is seldom
// the line that made its tensors.
func (g *growth) graph(places []*place) *finding.Finding {
	if len(places) < 2 || !g.forward(places) {
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
	f.Title = fmt.Sprintf("the autograd graph of past iterations is kept: %s in %s made at %d lines of one forward pass%s",
		units.Bytes(*f.Bytes), units.Plural(*f.Count, "tensor"), len(places), per)
	f.Detail = append([]string{"kept by one graph: " + strings.Join(lines, "; ")}, f.Detail...)
	root := places[0].site
	f.Remedies = []finding.Remedy{
		finding.CodeChange(fmt.Sprintf("look for what outlives the iteration and was computed from this forward pass (%s): a loss that is summed or stored without .detach() or .item(), a metric meter, a hidden state carried over", short(root))),
		finding.CodeChange("total += loss.item() instead of total += loss; outputs.append(x.detach().cpu())"),
		finding.CodeChange("drop retain_graph=True where the graph is not used twice, and run evaluation under torch.no_grad()"),
	}
	return &f
}

// forward reports whether the places are of a forward pass with gradients: a loss
// and what it was computed from, or tensors of three lines or more. Two lines of
// a module can as well be two lists that somebody keeps.
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
