package model

import (
	"strconv"

	"strandline/internal/lazyregexp"
)

var expertAt = lazyregexp.New(`experts\.(\d{1,6})\.`)

// WithoutExperts is the model with n experts of each layer left out, such as those
// that are kept in the host's memory. What a token goes through stays the same.
func (m *Model) WithoutExperts(n int64) *Model {
	out := *m
	out.Layers = make([]Layer, len(m.Layers))
	for i, l := range m.Layers {
		if left := l.Experts - min(n, l.Experts); l.Experts > 0 {
			l.Tensors = withExperts(l.Tensors, l.Experts, left)
		}
		out.Layers[i] = l
	}
	out.Host += m.Bytes() - out.Bytes()
	return &out
}

// withExperts are tensors with only the first experts of all. Experts are counted
// by one tensor, stacked in one, or a tensor each.
func withExperts(list []Tensor, all, left int64) (out []Tensor) {
	for _, t := range list {
		if t.Role != Expert {
			out = append(out, t)
			continue
		}
		switch at := expertAt.FindStringSubmatch(t.Name); {
		case t.Count == all:
			t.Count = left
		case at != nil:
			if i, _ := strconv.ParseInt(at[1], 10, 64); i >= left {
				continue
			}
		case t.Out%all == 0:
			t.Out = t.Out / all * left
		}
		if t.Count > 0 && t.Out > 0 {
			out = append(out, t)
		}
	}
	return out
}
