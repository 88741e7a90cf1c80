package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/plan/rl"
	"strandline/units"
)

// timed fills in the hand-overs of a way.
func (d *RLPlan) timed(way *api.PlannedWay, o *rl.Outcome) {
	way.AtOnce, way.HandOvers = o.AtOnce, []api.PlannedHandOver{}
	if d.Speeds != nil {
		way.Seconds = &[2]float64{o.Step[0], o.Step[1]}
	}
	for _, h := range o.HandOvers {
		way.HandOvers = append(way.HandOvers, api.PlannedHandOver{Phase: h.Phase, Seconds: h.Seconds, Moves: h.Moves})
	}
}

// rollouts fills in what rollouts need, and the speeds.
func (d *RLPlan) rollouts(p *rl.Phases) {
	if s := p.Speeds; s.Host > 0 {
		d.Speeds = &api.PlannedSpeeds{Host: s.Host, Link: s.Link, Disk: s.Disk}
	}
	if n := p.Rollouts; n != nil {
		d.Rollouts = &api.PlannedRollouts{Prompts: n.Prompts, Group: n.Group, Prompt: n.Prompt, Response: n.Response, Workers: n.Workers,
			Sequences: n.Sequences, One: n.One, Low: n.KV.Low, High: n.KV.High}
	}
}

// seconds prints a range of times.
func seconds(s [2]float64) string { return micros([2]float64{s[0] * 1e6, s[1] * 1e6}) }

// wayTimes states how long the hand-overs of a way take, and how many rollouts it holds
// at once; nothing where neither is known.
func wayTimes(way *api.PlannedWay) string {
	var out []string
	if way.AtOnce != nil {
		out = append(out, fmt.Sprintf("%s at once in the largest pool", units.Plural(*way.AtOnce, "rollout")))
	}
	if way.Seconds != nil && len(way.HandOvers) > 0 {
		longest := slices.MaxFunc(way.HandOvers, func(a, b api.PlannedHandOver) int { return cmp.Compare(a.Seconds[1], b.Seconds[1]) })
		text := fmt.Sprintf("hand-overs take %s a step", seconds(*way.Seconds))
		if len(way.HandOvers) > 1 {
			text += fmt.Sprintf(", the longest before %s: %s", Line(longest.Phase), seconds(longest.Seconds))
		}
		out = append(out, text+" ("+strings.Join(longest.Moves, "; ")+")")
	}
	return strings.Join(out, "; ")
}

// times states what the rollouts need, and with which speeds hand-overs are timed.
func (d *RLPlan) times(w io.Writer, s Style) {
	if n := d.Rollouts; n != nil {
		text := fmt.Sprintf("rollouts: %s with %s each are %s for each of %s; at their longest, %s and %s tokens, they need %s of KV cache on a GPU at once (%s each), less where a group shares its prompt",
			units.Plural(n.Prompts, "prompt"), units.Plural(n.Group, "answer"), units.Plural(n.Sequences, "sequence"), units.Plural(n.Workers, "engine"),
			units.Count(n.Prompt), units.Count(n.Response), sizeRange(n.Low, n.High), units.Bytes(n.One))
		fmt.Fprintln(w)
		for _, line := range wrap(text, s.columns()) {
			fmt.Fprintln(w, line)
		}
	}
	if v := d.Speeds; v != nil {
		text := fmt.Sprintf("hand-overs: bytes by speed: %.3g GB/s to the host (--host-link; pageable memory a third of it), %.3g GB/s between GPUs (--sync-link), %.3g GB/s of disk (--disk); a new engine takes 15 to 60 s and its graphs. What frameworks do around it (process groups, pinning the host's memory, graphs that are captured again) comes on top: these are lower bounds",
			v.Host/1e9, v.Link/1e9, v.Disk/1e9)
		fmt.Fprintln(w)
		for _, line := range wrap(text, s.columns()) {
			fmt.Fprintln(w, line)
		}
	}
}
