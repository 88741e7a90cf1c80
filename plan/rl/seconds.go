package rl

import (
	"slices"
	"strings"

	"strandline/plan"
)

// Speeds are what a hand-over is timed with, in bytes a second.
type Speeds struct {
	Host float64 // between a GPU and the host's memory
	Link float64 // of a GPU to the others that hold the trainer's weights
	Disk float64 // of a node's storage
}

// Speeds that are taken where none are given: PCIe 4.0 x16, less a fifth, and one NVMe
// drive.
const (
	defaultHost = 25e9
	defaultDisk = 5e9
)

// restart is what it takes to restart an engine.
type restart struct {
	checkpoint float64 // bytes that are written and read
	captures   int64   // sizes of CUDA graphs
}

// Seconds are the ends of a time that is known between bounds.
type Seconds [2]float64

func (s Seconds) plus(low, high float64) Seconds { return Seconds{s[0] + low, s[1] + high} }

// A HandOver is what happens before a phase.
type HandOver struct {
	Phase   string
	Seconds Seconds
	Moves   []string // what is moved, in words
}

// offloaded are components that are in the host's memory while they are not on the GPU.
var offloaded = []string{trainerWeights, trainerOptimizer, criticStates, referenceWeights}

// handOvers are the times between the phases of a way, each before the phase that it
// leads to, nil where no speeds are known. Memory of the host that is pinned is copied
// at the whole speed, pageable memory at a third. Weights that are synchronized come
// over the links: at best the share of the rank alone, at worst the whole model to
// every rank, and 10 ms for each bucket of 512 MiB. A new engine reads the checkpoint
// that the trainer wrote, takes 15 to 60 s to start its processes, and 0.2 to 0.6 s
// for each size of its graphs.
func (p *Phases) handOvers(w *sharing) (out []HandOver) {
	if p.Speeds.Host == 0 {
		return nil
	}
	for i, to := range w.Phases {
		from := w.Phases[(i+len(w.Phases)-1)%len(w.Phases)]
		if h := p.handOver(&from, &to); h.Seconds[1] > 0 {
			out = append(out, h)
		}
	}
	return out
}

func (p *Phases) handOver(from, to *stepPhase) HandOver {
	h := HandOver{Phase: to.Name}
	const pageable = 3
	var in, gone []string
	for _, name := range offloaded {
		before, after := slices.Contains(from.Holds, name), slices.Contains(to.Holds, name)
		if before == after || p.size(name).High == 0 {
			continue
		}
		n := float64(p.size(name).High) / p.Speeds.Host
		h.Seconds = h.Seconds.plus(n, pageable*n)
		if after {
			in = append(in, name)
		} else {
			gone = append(gone, name)
		}
	}
	if len(in) > 0 {
		h.Moves = append(h.Moves, strings.Join(in, ", ")+" from the host")
	}
	if len(gone) > 0 {
		h.Moves = append(h.Moves, strings.Join(gone, ", ")+" to the host")
	}
	switch {
	case to.Restarts:
		low := 2 * p.restart.checkpoint / p.Speeds.Disk
		const startLow, startHigh, graphLow, graphHigh = 15, 60, 0.2, 0.6
		h.Seconds = h.Seconds.plus(low+startLow+graphLow*float64(p.restart.captures), 2*low+startHigh+graphHigh*float64(p.restart.captures))
		h.Moves = append(h.Moves, "the checkpoint to disk and back, and a new engine")
	case slices.Contains(to.Holds, syncBuffers):
		const bucket, each = 512 << 20, 0.010
		share, whole := float64(p.size(rolloutWeights).High), p.restart.checkpoint
		h.Seconds = h.Seconds.plus(share/p.Speeds.Link, max(whole, share)/(0.5*p.Speeds.Link)+each*max(whole, share)/bucket)
		h.Moves = append(h.Moves, "the new weights over the links")
	}
	return h
}

// Demand is what the rollouts of a step ask of one engine.
type Demand struct {
	Prompts, Group   int64 // of a step; answers to each prompt
	Prompt, Response int64 // tokens
	Workers          int64 // engines that share them
}

// Needed is the KV cache that a step's rollouts take on a GPU, if all were at their
// longest at once.
type Needed struct {
	Demand
	Sequences int64      // of one engine
	KV        plan.Range // low where a group shares the KV cache of its prompt
	One       int64      // bytes of a sequence
}

// atOnce returns how many sequences a pool holds.
func (n *Needed) atOnce(pool int64) int64 {
	if n.One == 0 {
		return n.Sequences
	}
	return min(pool/n.One, n.Sequences)
}

// needed computes what a demand takes, with the bytes of a sequence of some tokens and
// of every token of a prompt.
func (d Demand) needed(sequence func(tokens int64) int64, perToken float64) *Needed {
	if d.Prompts == 0 {
		return nil
	}
	d.Group, d.Workers = max(d.Group, 1), max(d.Workers, 1)
	n := &Needed{Demand: d, Sequences: (d.Prompts*d.Group + d.Workers - 1) / d.Workers, One: sequence(d.Prompt + d.Response)}
	prompts := (n.Sequences + d.Group - 1) / d.Group
	n.KV.High = plan.Whole(float64(n.Sequences) * float64(n.One))
	n.KV.Low = plan.Whole(float64(n.KV.High) - float64(n.Sequences-prompts)*perToken*float64(d.Prompt))
	return n
}
