package purpose

import (
	"fmt"
	"maps"
	"math"
	"testing"
)

// tensors is how many a made forward pass keeps for its backward pass.
const tensors = 10

// keeping is a forward pass of number n that keeps tensors, and as many temporaries.
func keeping(n int) (out []step) {
	for i := range tensors {
		out = append(out, made(fmt.Sprint("a", n, "-", i), 100, "pass"), made("t", 30, "pass"), freed("t", "pass"))
	}
	return out
}

// let releases what pass n kept, somewhere.
func let(n int, at string) (out []step) {
	for i := range tensors {
		out = append(out, step{name: fmt.Sprint("a", n, "-", i), size: 100, at: at, free: true})
	}
	return out
}

func TestUnusedGraphs(t *testing.T) {
	for _, c := range []struct {
		name        string
		steps       []step
		want        *Unused
		activations int64 // at the peak
		inferred    int64
	}{
		{"each output takes the place of the one before", join(setup, keeping(1), keeping(2), let(1, "assign"), keeping(3), let(2, "assign")),
			&Unused{Bytes: 2000, Graphs: 2, Older: 1000, Without: 2040}, 2000, 0},
		{"the file ends after the last output went", join(setup, keeping(1), let(1, "assign"), keeping(2), let(2, "assign")),
			&Unused{Bytes: 1000, Graphs: 1}, 1000, 0},
		{"the first was made before the recording", join(keeping(2), let(1, "assign"), keeping(3), let(2, "assign")),
			&Unused{Bytes: 2000, Graphs: 2, Older: 1000, Without: 1030}, 1000, 1000},
		{"a function lets go of its locals", join(setup, keeping(1), let(1, "pass"), keeping(2), let(2, "pass")), nil, 0, 0},
		{"a backward pass follows", join(setup, keeping(1), []step{made("g", 300, "backward")}, let(1, "backward"), []step{freed("g", "loss")}), nil, 1000, 0},
		{"memory runs out", join(setup, keeping(1), []step{ranOut}, let(1, "assign")), nil, 1000, 0},
	} {
		m := Of(lineOf(c.steps))
		if (m.Unused == nil) != (c.want == nil) || c.want != nil && *m.Unused != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, m.Unused, c.want)
		}
		if got := m.Peak.By[Activations]; got != c.activations {
			t.Errorf("%s: %d bytes of activations, want %d", c.name, got, c.activations)
		}
		if in := m.Peak.Inferred; (in == nil) != (c.inferred == 0) || in != nil && in.By[Activations] != c.inferred {
			t.Errorf("%s: inferred %+v, want %d bytes of activations", c.name, in, c.inferred)
		}
	}
}

// before are tensors that were there before the history, so many times.
func before(times int, sizes ...int64) (out []step) {
	for range times {
		for _, n := range sizes {
			out = append(out, old(n, ""))
		}
	}
	return out
}

// TestInferred holds what was there before a late recording against the sizes of
// the gradients that it shows.
func TestInferred(t *testing.T) {
	train := func(gradients ...int64) (out []step) {
		out = []step{made("h", 300, "forward")}
		for i, n := range gradients {
			out = append(out, made(fmt.Sprint("g", i), n, "backward"))
		}
		out = append(out, freed("h", "backward"), made("u", 7, "update"), freed("u", "update"))
		for i := range gradients {
			out = append(out, freed(fmt.Sprint("g", i), "zero"))
		}
		return out
	}
	for _, c := range []struct {
		name       string
		steps      []step
		want       map[string]int64
		confidence float64
	}{
		{"a model and Adam", join(before(3, 1000, 10), before(1, 77), train(1000, 10)), map[string]int64{"parameters": 1010, "optimizer": 2020}, 0.75},
		{"a model and momentum", join(before(2, 1000, 10), train(1000, 10)), map[string]int64{"parameters": 1010, "optimizer": 1010}, 0.75},
		{"a model alone, of which most is frozen", join(before(1, 1000, 10, 5000, 6000), train(1000, 10)), map[string]int64{"parameters": 1010}, 0.75},
		{"no step of an optimizer is recorded", join(before(3, 1000, 10), train(1000, 10)[:4], []step{made("k", 1, "loss")}), map[string]int64{"parameters": 1010, "optimizer": 2020}, (0.75 + 2*0.75*unseen) / 3},
		{"bfloat16 beside float32", join(before(1, 500, 5), before(3, 1000, 10), train(500, 5)), map[string]int64{"parameters": 1515, "optimizer": 2020}, 0.75},
		{"other sizes", join(before(3, 400, 70), train(1000, 10)), nil, 0},
		{"no gradients", join(before(3, 1000, 10), []step{made("h", 300, "forward"), freed("h", "loss")}), nil, 0},
		{"a model that only runs forward", join(before(2, 4*32*64, 4*32*128, 4*64), []step{made("x", 4*10*32, "load"), made("h", 4*10*64, "forward"),
			made("y", 4*10*128, "forward"), freed("h", "forward"), freed("y", "loss")}), map[string]int64{"parameters": 2 * 4 * (32*64 + 32*128 + 64)}, resident},
		{"a cache beside one", join(before(2, 4*32*64), before(9, 90004), []step{made("x", 4*10*32, "load"), made("h", 4*10*64, "forward"), freed("h", "loss")}), nil, 0},
		{"a stack identifies the parameters", join([]step{old(1000, "model"), old(10, "model")}, before(2, 1000, 10), train(1000, 10)), map[string]int64{"optimizer": 2020}, 0.75},
	} {
		m := Of(lineOf(c.steps))
		in := m.End.Inferred
		if c.want == nil {
			if in != nil {
				t.Errorf("%s: %+v", c.name, in)
			}
			continue
		}
		if in == nil || !maps.Equal(in.By.Map(), c.want) || math.Abs(in.Confidence-c.confidence) > 1e-9 {
			t.Errorf("%s: inferred %+v, want %v with %v", c.name, in, c.want, c.confidence)
			continue
		}
		var sum int64
		for _, n := range in.By {
			sum += n
		}
		if sum > m.End.By[Unknown] {
			t.Errorf("%s: %d bytes are inferred of %d that are unknown", c.name, sum, m.End.By[Unknown])
		}
	}
}

// Gradients of a pass before the recording are no states: the program clears them, and
// the optimizer makes its states later.
func TestInferredGradients(t *testing.T) {
	cleared := []step{{name: "p0", size: 1000, at: "zero", free: true}, {name: "p1", size: 10, at: "zero", free: true}}
	steps := join(before(1, 1000, 10), []step{made("i", 9000, "load"), freed("i", "loss")}, cleared, []step{
		made("h", 300, "forward"), made("g0", 1000, "backward"), made("g1", 10, "backward"), freed("h", "backward"),
		made("s0", 1000, "update"), made("s1", 10, "update"), freed("g0", "zero"), freed("g1", "zero"), made("h", 300, "forward"), freed("h", "loss"),
	})
	in := Of(lineOf(steps)).Peak.Inferred
	if want := map[string]int64{"parameters": 1010, "gradients": 1010}; in == nil || !maps.Equal(in.By.Map(), want) {
		t.Errorf("inferred %+v, want %v", in, want)
	}
}

func TestAutocast(t *testing.T) {
	plain := join(setup, []step{made("x", 50, "load"), made("c1", 500, "forward"), made("y", 70, "forward"), made("c2", 5, "forward"), made("z", 600, "forward"),
		freed("z", "forward"), freed("y", "forward"), freed("c1", "uncast"), freed("c2", "uncast"), freed("x", "loss")})
	kept := join(setup, []step{made("c1", 500, "cast"), made("y", 70, "cast"), made("c2", 5, "cast"), made("g", 900, "backward"), freed("c1", "backward"),
		freed("c2", "backward"), freed("y", "backward"), freed("g", "loss")})
	for _, c := range []struct {
		name  string
		steps []step
		want  *Casts
	}{
		{"the block's end frees them", plain, &Casts{Bytes: 505, Count: 2, Without: 1730}},
		{"C++ frames show casts of tensors of a parameter's size", kept, &Casts{Bytes: 505, Kept: 505, Count: 2, Without: 1980}},
		{"no autocast", join(setup, trained), nil},
	} {
		got := Of(lineOf(c.steps)).Casts
		if (got == nil) != (c.want == nil) || got != nil && (got.Bytes != c.want.Bytes || got.Kept != c.want.Kept || got.Count != c.want.Count || got.Without != c.want.Without) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
