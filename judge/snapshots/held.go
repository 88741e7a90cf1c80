package snapshots

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/units"
)

// The kinds of holder.
const (
	byPython   = "python"   // a name leads to the tensors
	byAutograd = "autograd" // the graph of a tensor that a name leads to
	byNative   = "native"   // no Python object and no known graph refers to them
	byGarbage  = "garbage"  // reference cycles that no name leads to
	byCycles   = "cycles"   // the same at the exit, until when a name may have led to them
)

// minHeldShare is the share of a finding's tensors from which their holder is named.
const minHeldShare = 0.1

// heldBy is what keeps the tensors that some places made, according to the newest file of
// the process for which the recorder looked for holders and found some. A search that came
// when most of them were gone, such as that of the exit, tells only what kept the rest.
func (g *growth) heldBy(places []*place) []finding.HeldBy {
	of := map[stack.ID]bool{}
	for _, p := range places {
		for _, id := range p.stacks {
			of[id] = true
		}
	}
	live := make([]map[uint64]bool, len(g.process.Files)) // addresses, by file
	maxSampled := 0
	for i, f := range g.process.Files {
		held := g.process.HeldIn(f)
		if held == nil {
			continue
		}
		live[i] = map[uint64]bool{}
		for _, l := range f.Device(g.device).Live {
			if of[l.Stack] {
				live[i][l.Addr] = true
			}
		}
		maxSampled = max(maxSampled, countIn(held.Sampled, live[i]))
	}
	var left []finding.HeldBy // which an earlier file knows better
	for i, blocks := range slices.Backward(live) {
		if blocks == nil {
			continue
		}
		held := g.process.HeldIn(g.process.Files[i])
		out := g.choose(holdersOf(held, blocks), of)
		if len(out) > 0 && (out[0].Kind == byCycles || 2*countIn(held.Sampled, blocks) < maxSampled) {
			if left == nil {
				left = out
			}
		} else if len(out) > 0 {
			return out
		}
		if h := growingWith(held, int64(len(blocks))); h != nil {
			return []finding.HeldBy{*h}
		}
	}
	return left
}

// growingWith is the container that grew by about as many objects as there are blocks, which
// were allocated meanwhile; nil if none did. A tensor with a graph keeps several blocks.
func growingWith(h *compare.Held, blocks int64) *finding.HeldBy {
	const maxOfGraph = 64
	for i := range h.Growing {
		x := &h.Growing[i]
		switch n := x.Count; {
		case x.Graphs && n <= 2*blocks && maxOfGraph*n >= blocks:
			return &finding.HeldBy{Kind: byAutograd, Path: plain(x.Path), Share: 1}
		case 2*n >= blocks && n <= 2*blocks:
			return &finding.HeldBy{Kind: byPython, Path: plain(x.Path), Share: min(1, float64(n)/float64(blocks))}
		}
	}
	return nil
}

// holdersOf are the holders of some blocks; the one that holds the most comes first.
func holdersOf(h *compare.Held, blocks map[uint64]bool) (out []finding.HeldBy) {
	sampled := countIn(h.Sampled, blocks)
	if sampled == 0 {
		return nil
	}
	left := sampled
	for i := range h.Holders {
		x := &h.Holders[i]
		n := countIn(x.Blocks, blocks)
		left -= n
		share := float64(n) / float64(sampled)
		if share < minHeldShare {
			continue
		}
		kind := byPython
		if x.Kind == byGarbage || x.Kind == byCycles {
			kind = x.Kind
		}
		at := len(out)
		out = append(out, holderOf(x, kind, share))
		for j := range h.Graphs {
			if graph := &h.Graphs[j]; graph.Path == x.Path && graph.ChainLength > 1 {
				if out = append(out, graphHolder(graph, share)); share < ofGraphs { // it keeps others as well
					out[at], out[at+1] = out[at+1], out[at]
				}
			}
		}
	}
	if share := float64(left) / float64(sampled); share >= minHeldShare {
		// A search that ended early need not have come to what keeps the rest. A graph that
		// does has a node for each tensor, about, and grows; that of one step does not.
		if h.Bound == "" || len(h.Graphs) > 0 && h.Graphs[0].Nodes >= int64(max(left, 2)) && h.Graphs[0].Grew != nil && *h.Graphs[0].Grew > 0 {
			out = append(out, beyondPython(h, share))
		}
	}
	sorts.StableBy(out, func(a, b finding.HeldBy) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// beyondPython is what keeps blocks that no Python object refers to: the largest graph,
// if there is one with more than a few nodes.
func beyondPython(h *compare.Held, share float64) finding.HeldBy {
	if len(h.Graphs) > 0 && h.Graphs[0].Nodes > 1 {
		return graphHolder(&h.Graphs[0], share)
	}
	return finding.HeldBy{Kind: byNative, Path: "no Python object", Share: share}
}

func graphHolder(x *compare.Holder, share float64) finding.HeldBy {
	h := holderOf(x, byAutograd, share)
	h.ChainLength, h.Grew, h.Node = &x.ChainLength, x.Grew, plain(x.Node)
	return h
}

func holderOf(x *compare.Holder, kind string, share float64) finding.HeldBy {
	return finding.HeldBy{Kind: kind, Path: plain(x.Path), File: plain(x.File), Line: lineOf(x.Line), Lines: x.Lines, Share: share}
}

// linesOf is the line that puts tensors there, or those that may: "train.py:12 or 30"; "" if
// unknown.
func linesOf(h *finding.HeldBy, file string) string {
	lines := h.Lines
	if h.Line != nil {
		lines = []int64{*h.Line}
	}
	if file == "" || len(lines) == 0 {
		return ""
	}
	const maxLines = 4
	texts := make([]string, 0, maxLines)
	for _, n := range lines[:min(maxLines, len(lines))] {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	if len(lines) > maxLines {
		texts = append(texts, "…")
	}
	return file + ":" + strings.Join(texts, " or ")
}

// placeOf is the path of a holder, with the line that puts tensors there.
func placeOf(h *finding.HeldBy) string {
	at := linesOf(h, h.File[strings.LastIndexAny(h.File, `/\`)+1:])
	if at == "" {
		return h.Path
	}
	return h.Path + " (" + at + ")"
}

// choose takes that of several lines of holders which the stacks of the tensors pass.
func (g *growth) choose(held []finding.HeldBy, stacks map[stack.ID]bool) []finding.HeldBy {
	for i := range held {
		h := &held[i]
		if len(h.Lines) == 0 {
			continue
		}
		passed := map[int64]bool{}
		for id := range stacks {
			for _, f := range g.book.Stacks.Stack(id) {
				passed[f.Line] = passed[f.Line] || f.File == h.File
			}
		}
		if lines := slices.DeleteFunc(slices.Clone(h.Lines), func(n int64) bool { return !passed[n] }); len(lines) == 1 {
			h.Line, h.Lines = &lines[0], nil
		}
	}
	return held
}

func lineOf(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

func countIn(addresses []uint64, blocks map[uint64]bool) (n int) {
	for _, a := range addresses {
		if blocks[a] {
			n++
		}
	}
	return n
}

// heldWords names a holder in words.
func heldWords(h *finding.HeldBy) string {
	where := placeOf(h)
	switch {
	case h.Kind == byAutograd && h.ChainLength == nil:
		return where + " keeps tensors with the graph of each"
	case h.Kind == byAutograd:
		text := fmt.Sprintf("%s ends a chain of %s %s", where, units.Count(*h.ChainLength), h.Node)
		if h.Grew != nil && *h.Grew > 0 {
			text += fmt.Sprintf("; it grew by %s since the snapshot before", units.Count(*h.Grew))
		}
		return text
	case h.Kind == byGarbage:
		return "nothing but " + where + " keeps them: Python's collector frees them when it runs"
	case h.Kind == byCycles:
		return where + " kept them at the exit, to which names may have led until then"
	case h.Kind == byNative:
		return "no Python object refers to them, nor a graph that Python names lead to: C++ code keeps them"
	}
	return "they are kept by " + where
}

// holderWords names a holder in a few words.
func holderWords(h *finding.HeldBy) string {
	where := placeOf(h)
	switch {
	case h.Kind == byAutograd && h.ChainLength == nil:
		return "kept by the graphs of " + where
	case h.Kind == byAutograd:
		return fmt.Sprintf("kept by the graph of %s: a chain of %s %s", where, units.Count(*h.ChainLength), h.Node)
	case h.Kind == byNative:
		return "no Python object keeps them: C++ code does"
	}
	return "kept by " + where
}

// addHolders adds the holders to a finding's details and remedies.
func addHolders(f *finding.Finding, held []finding.HeldBy) {
	for i := range held {
		f.Detail = append(f.Detail, fmt.Sprintf("%s (%.0f%% of those looked into)", heldWords(&held[i]), 100*held[i].Share))
	}
	if remedies := holderRemedies(held); len(remedies) > 0 {
		f.Remedies = append(remedies, f.Remedies[1:]...) // the first one says to find the holder
	}
}

// holderRemedies are what to do if tensors are kept.
func holderRemedies(held []finding.HeldBy) (out []finding.Remedy) {
	const maxRemedies = 2
	for i := range held {
		if len(out) < maxRemedies && held[i].Kind != byNative {
			out = append(out, holderRemedy(&held[i]))
		}
	}
	return out
}

func holderRemedy(h *finding.HeldBy) finding.Remedy {
	if h.Kind == byGarbage || h.Kind == byCycles {
		return finding.CodeChange("break the reference cycle: drop the attribute that leads back, or make it a weakref.ref")
	}
	at := linesOf(h, h.File)
	if at != "" {
		at = " at " + at
	}
	if h.Kind == byAutograd {
		return finding.CodeChange(fmt.Sprintf("call .detach() or .item() on what %s%s keeps", h.Path, at)).Because("it keeps the graph of every step it was computed from")
	}
	return finding.CodeChange(fmt.Sprintf("remove tensors from %s%s when they are no longer needed", h.Path, at))
}
