package pauses

import (
	"cmp"
	"maps"
	"slices"

	"strandline/finding"
)

// awake finds the tags of a process that stay active in cycles in which others are paused.
func awake(runs []run, at int) (out []stay) {
	c, spells, of := runs[at].Course, runs[at].spells, runs[at].pauses
	if len(of) == 0 {
		return sleepless(runs, at)
	}
	byName := slices.Sorted(maps.Keys(of))
	leader := slices.MaxFunc(byName, func(a, b string) int { return len(of[a]) - len(of[b]) })
	for _, tag := range tagsIn(spells) {
		if tag == leader {
			continue
		}
		s := stay{course: c, pool: finding.TagPool, tag: tag}
		windows, brief := of[leader], false // whether a pause of one cycle may have been missed
		for i, from := range windows {
			to := len(spells)
			if i+1 < len(windows) {
				to = windows[i+1]
			} else if len(windows) > 1 {
				break // not over yet
			}
			window := spells[from:to]
			s.of++
			if held, paused := heldThrough(window, tag); held > 0 {
				s.cycles++
				s.bytes, s.paused = max(s.bytes, held), paused
				brief = brief || samplesPaused(window, leader) < minSeen
			} else {
				brief = brief || samplesPaused(window, tag) < minSeen
			}
		}
		switch {
		case s.cycles == 0 || c.Sampled && (s.cycles < s.of && (brief || s.cycles == 1) || s.of < minSeen):
			continue
		case s.cycles == s.of && pausedBeside(runs, at, tag, s.paused):
			s.how = others
		case s.of == 1:
			continue // perhaps its turn comes later
		case s.cycles < s.of:
			s.how = sometimes
		}
		out = append(out, s)
	}
	return out
}

// sleepless finds the tags of a process that pauses nothing while all others do.
func sleepless(runs []run, at int) (out []stay) {
	c := runs[at].Course
	if len(c.Moments) == 0 || len(runs) == 1 {
		return nil
	}
	last := &c.Moments[len(c.Moments)-1]
	for i := range runs {
		if n := cyclesIn(runs[i].pauses); i != at && (n == 0 || c.Sampled && n < minSeen) {
			return nil
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(last.Tags)) {
		for i := range runs {
			if d := runs[i].deep; i != at && d != nil && slices.Contains(d.paused, tag) {
				n := cyclesIn(runs[i].pauses)
				out = append(out, stay{course: c, pool: finding.TagPool, tag: tag, paused: d.paused, bytes: last.Tags[tag].Held, cycles: n, of: n, how: others})
				break
			}
		}
	}
	return out
}

func tagsIn(spells []spell) []string {
	seen := map[string]bool{}
	for i := range spells {
		for _, names := range [][]string{spells[i].active, spells[i].paused} {
			for _, name := range names {
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// samplesPaused is how many samples of a cycle show a tag paused.
func samplesPaused(window []spell, tag string) (n int) {
	for i := range window {
		if slices.Contains(window[i].paused, tag) {
			for _, m := range window[i].moments {
				n += 1 + m.again
			}
		}
	}
	return n
}

// heldThrough is what a tag holds all through a cycle, and what is paused at its first spell.
func heldThrough(window []spell, tag string) (held int64, paused []string) {
	for i := range window {
		if !slices.Contains(window[i].active, tag) {
			return 0, nil
		}
	}
	deepest := slices.MinFunc(window, func(a, b spell) int { return cmp.Compare(a.held, b.held) })
	return deepest.moments[0].Tags[tag].Held, deepest.paused
}

// pausedBeside reports whether another process pauses a tag together with these.
func pausedBeside(runs []run, at int, tag string, with []string) bool {
	for i := range runs {
		for _, s := range runs[i].spells {
			if i != at && slices.Contains(s.paused, tag) && !slices.ContainsFunc(with, func(name string) bool { return !slices.Contains(s.paused, name) }) {
				return true
			}
		}
	}
	return false
}
