package report

import (
	"fmt"
	"io"
	"strings"

	"strandline/face/api"
	"strandline/internal/shell"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/units"
)

// brief prints what would happen, what to paste, and how certain that is.
func (d *Simulation) brief(w io.Writer, s Style) {
	b := &brief{w: w, s: s}
	if d.Partial {
		b.line("NOTE", "only partly readable: "+inputName(d.File))
	}
	switch {
	case d.Best != nil:
		b.verdict(d.bestWord(), strings.TrimPrefix(strings.TrimSuffix(d.Best.Text, "."), "Keep "))
		if set := d.Best.Settings; set != nil && *set == "" {
			b.paste("FIX", "unset PYTORCH_CUDA_ALLOC_CONF")
		} else if set != nil {
			b.paste("FIX", "export PYTORCH_CUDA_ALLOC_CONF="+Line(*set))
		}
	case d.Reclaim != nil:
		word := "OVER"
		if d.Reclaim.Policy != nil || d.Reclaim.InUse <= d.Reclaim.Line && d.Reclaim.Recorded <= d.Reclaim.Line {
			word = "FITS"
		}
		b.verdict(word, strings.TrimSuffix(d.Reclaim.Text, "."))
		if p := d.Reclaim.Policy; p != nil {
			b.paste("FIX", "strandline record --reclaim "+shell.Word(Line(*p))+" -- CMD…")
		}
	}
	for i := range d.Devices {
		on := &d.Devices[i]
		if d.Best == nil {
			d.runsBrief(b, on)
		}
		why := replayText(on)
		if len(d.Devices) > 1 {
			why = snapshot.DeviceName(on.Device) + ": " + why
		}
		switch {
		case len(d.Runs) > 0 || d.Reclaim != nil:
			b.line("WHY", why)
		case on.Exact && on.Events > 0:
			b.verdict("OK", why)
		default:
			b.verdict("UNKNOWN", why)
		}
		for _, n := range on.Assumed.Notes {
			b.line("", "assumed: "+n)
		}
	}
	notes := d.notes()
	b.notes(notes)
	if hint := d.hint(); hint != "" {
		b.paste("NEXT", hint)
	}
	switch {
	case len(d.Runs) > 0 && d.Best == nil:
		b.moreLine("stranded memory, driver calls, costs")
	case len(d.Runs) > 0 || d.Reclaim != nil:
		b.moreLine("all settings, with costs")
	default:
		b.moreLine("")
	}
}

// bestWord is the result of a search in a word.
func (d *Simulation) bestWord() string {
	_, none := peakOfRun(&d.Runs[0])
	switch {
	case none:
		return "OOM"
	case d.Best.Settings == nil:
		return "KEEP"
	}
	return "FITS"
}

// runsBrief prints a sentence for each run on a device.
func (d *Simulation) runsBrief(b *brief, on *api.Replayed) {
	for i := range d.Runs {
		r := runOn(&d.Runs[i], on.Device)
		if r == nil {
			continue
		}
		if i == maxPlaces {
			b.left += len(d.Runs) - maxPlaces
			break
		}
		word := "PEAK"
		switch {
		case r.OOM != nil:
			word = "OOM"
		case r.Capacity != nil || ranOut(on) && r.Smallest != nil && on.Assumed.Room != nil && *r.Smallest <= *on.Assumed.Room:
			word = "FITS"
		}
		text := strings.TrimSuffix(d.sentence(&d.Runs[i], on), ".")
		if len(d.Devices) > 1 {
			text = snapshot.DeviceName(on.Device) + ": " + text
		}
		b.verdict(word, text)
	}
}

// notes are those of all runs, each once.
func (d *Simulation) notes() (out []string) {
	noted := map[string]bool{}
	var untested []string // of all runs, in one sentence
	for _, run := range d.Runs {
		if len(run.Untested) > 0 {
			noted[allocator.UntestedNote(run.Untested)] = true
			untested = union(untested, run.Untested)
		}
	}
	for _, run := range d.Runs {
		for _, note := range run.Notes {
			if !noted[note] {
				noted[note] = true
				out = append(out, note)
			}
		}
	}
	if len(untested) > 0 {
		out = append(out, allocator.UntestedNote(untested))
	}
	return out
}

// replayText states in a line how certain the answers are.
func replayText(r *api.Replayed) string {
	switch {
	case r.Events == 0:
		return fmt.Sprintf("no history was recorded: nothing to replay; the state has %s", count(r.Segments.Recorded, "segment"))
	case r.Exact:
		text := fmt.Sprintf("replayed exactly: %s, %s of the driver", count(r.Events, "event"), count(r.Calls.Recorded, "call"))
		if r.Reserved != nil {
			text += fmt.Sprintf("; peak %s reserved, %s allocated", units.Bytes(*r.Reserved), units.Bytes(*r.Allocated))
			if *r.OOMs > 0 {
				text += "; " + units.Plural(*r.OOMs, "out-of-memory error")
			}
		}
		return text
	}
	then := "runs under other settings are approximate"
	if r.Lost {
		then = "nothing can be run under other settings"
	}
	return fmt.Sprintf("not replayed exactly: %s of %s driver calls; %s; %s", units.Count(int64(r.Calls.Reproduced)),
		units.Count(int64(r.Calls.Recorded)), r.Difference.Reason, then)
}
