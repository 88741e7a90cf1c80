package report

import (
	"fmt"
	"math"
	"strings"

	"strandline/face/api"
	"strandline/plan/serving"
	"strandline/units"
)

// addRest fills in what a plan contains in addition to the GPU's memory.
func (p *Plan) addRest(f *serving.Fit) {
	for _, c := range f.Host {
		p.Host = append(p.Host, api.PlannedPart{Name: c.Name, Low: c.Size.Low, High: c.Size.High, Source: c.Source})
	}
	if o := f.Offload; o != nil {
		p.Offload = &api.PlannedOffload{Layers: o.Layers, Of: o.Of, ExpertLayers: o.ExpertLayers}
	}
	if i := f.Images; i != nil {
		p.Images = &api.PlannedImages{Count: i.Count, Width: i.Width, Height: i.Height, Tokens: i.Each.Tokens, Patches: i.Each.Patches, Source: i.Each.Source,
			All: i.Tokens, KV: i.KV, AtOnce: i.AtOnce, Low: i.Work.Low, High: i.Work.High}
	}
	if n := f.Load; n != nil {
		p.Load = &api.PlannedLoad{Requests: n.Requests, Prompt: n.Prompt, Output: n.Output, KV: n.KV, AtOnce: n.AtOnce}
		if l := f.Latency; l != nil && l.Whole[1] > 0 {
			const us = 1e6
			p.Load.Answer = &[2]float64{math.Round(l.Whole[0] * us), math.Round(l.Whole[1] * us)}
		}
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
func (p *Plan) host() string {
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
func (p *Plan) load() string {
	n := p.Load
	text := fmt.Sprintf("%s of %s and %s tokens: %s of KV cache, and there is room for %s", units.Plural(n.Requests, "request"), units.Count(n.Prompt), units.Count(n.Output), units.Bytes(n.KV), requests(n.AtOnce))
	if n.Answer != nil {
		text += fmt.Sprintf("; an answer takes %s", micros(*n.Answer))
	}
	return text
}

// images states what the images of a request take.
func (p *Plan) images() string {
	i := p.Images
	return fmt.Sprintf("%s of %s × %s: %s tokens each (%s), %s in all, %s of KV cache; the encoder takes %s for %s at once", units.Plural(i.Count, "image"), units.Count(i.Width), units.Count(i.Height),
		units.Count(i.Tokens), i.Source, units.Count(i.All), units.Bytes(i.KV), sizeRange(i.Low, i.High), units.Count(i.AtOnce))
}
