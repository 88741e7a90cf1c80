package report

import (
	"fmt"
	"io"
	"strings"

	"strandline/face/api"
	"strandline/pausable/state"
	"strandline/units"
)

// Mem is the document of `strandline mem`.
type Mem struct{ api.Mem }

// Text prints what was done, the tags, the devices, and what was found.
func (d *Mem) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	d.headline(w, s)
	for i := range d.Steps {
		step := &d.Steps[i]
		mark := s.green("fits")
		if !step.Fits {
			mark = s.red("does not fit")
		}
		fmt.Fprintf(w, "%d  %s: %s%s\n", i+1, Line(stepName(step)), mark, stepText(step))
	}
	if len(d.Steps) > 0 && d.Do == "plan" {
		fmt.Fprintln(w, s.dim(Line(d.peak())))
	}
	fmt.Fprintln(w)
	if len(d.Tags) > 0 {
		t := table{right: map[int]bool{1: true, 2: true, 3: true}}
		t.row("tag", "size", "blocks", "on devices", "state", "backup")
		for i := range d.Tags {
			tag := &d.Tags[i]
			backup := tag.Backup
			if tag.BackupBytes > 0 {
				backup += ", " + units.Bytes(tag.BackupBytes)
			}
			t.row(Line(tag.Name), units.Bytes(tag.Bytes), units.Count(tag.Blocks), units.Bytes(tag.Held), tag.State, backup)
		}
		t.write(w, "  ")
	} else {
		fmt.Fprintln(w, "no tags: the process has freed all its pausable memory")
	}
	for i := range d.Devices {
		d.device(w, s, &d.Devices[i])
	}
	if d.Doing != nil {
		fmt.Fprintf(w, "a %s is under way: %s of %s is copied\n", d.Doing.Do, units.Bytes(d.Doing.Done), units.Bytes(d.Doing.Total))
	}
	if d.Kept > 0 {
		fmt.Fprintf(w, "%s of pinned host memory is kept for the next pause\n", units.Bytes(d.Kept))
	}
	if d.NotFreed > 0 {
		printWrapped(w, s, "", fmt.Sprintf("%s that the program freed are still held: the driver refused to release them", units.Bytes(d.NotFreed)))
	}
	if d.Note != "" {
		printWrapped(w, s, "", "who holds the devices is not known: "+d.Note)
	}
	for i := range d.Findings {
		fmt.Fprintln(w)
		writeFinding(w, s, &d.Findings[i], "")
	}
}

// headline states what was done.
func (d *Mem) headline(w io.Writer, s Style) {
	name := fmt.Sprintf("process %d", d.PID)
	switch {
	case d.Failure != nil:
		fmt.Fprintln(w, s.red("the "+d.Do+" was refused")+s.bold(": "+Line(d.Failure.Text)))
	case d.Do == state.Pause, d.Do == state.Resume:
		fmt.Fprintf(w, "%s of %s in %s\n", s.bold(d.Do+"d memory"), name, units.Seconds(*d.Seconds))
	default:
		fmt.Fprintln(w, s.bold(name))
	}
}

// device states what is free, and who holds the rest.
func (d *Mem) device(w io.Writer, s Style, v *api.MemDevice) {
	fmt.Fprintf(w, "\ndevice %d: %s of %s free", v.Device.Index, units.Bytes(v.Free), units.Bytes(v.Total))
	if n := v.Released; n != nil && *n >= 0 {
		fmt.Fprintf(w, ", %s more than before", units.Bytes(*n))
	} else if n != nil {
		fmt.Fprintf(w, ", %s less than before", units.Bytes(-*n))
	}
	fmt.Fprintln(w)
	t := table{right: map[int]bool{0: true, 1: true}}
	for _, h := range v.Holders {
		size := "?"
		if h.Bytes != nil {
			size = units.Bytes(*h.Bytes)
		}
		who := Line(h.Command)
		if h.PID == d.PID {
			who = "this process"
			if v.Cached != nil && *v.Cached > 0 {
				who += fmt.Sprintf(", %s of it unused in PyTorch's cache (torch.cuda.empty_cache)", units.Bytes(*v.Cached))
			}
		} else if h.Pausing {
			who += " (has pausable memory: strandline mem status)"
		}
		t.row(size, fmt.Sprint(h.PID), who)
	}
	t.write(w, "  ")
	if o := v.Outside; o != nil && o.Total() > 0 {
		var parts []string
		for _, p := range []struct {
			bytes int64
			name  string
		}{{o.Tensors, "in tensors"}, {o.Cache, "in PyTorch's cache"}, {o.Pools, "in pools of CUDA graphs or the program's own"}, {o.Expandable, "in expandable segments"}} {
			if p.bytes > 0 {
				parts = append(parts, units.Bytes(p.bytes)+" "+p.name)
			}
		}
		printWrapped(w, s, "  ", "in no region: "+strings.Join(parts, ", "))
	}
}

// stepName is what a step does.
func stepName(step *api.MemStep) string {
	if step.Tag == nil {
		return step.Do + " all"
	}
	return step.Do + " " + *step.Tag
}

// stepText is what a step changes.
func stepText(step *api.MemStep) string {
	if len(step.Devices) == 0 {
		return ", and changes nothing"
	}
	var parts []string
	for _, d := range step.Devices {
		text := fmt.Sprintf("device %d ", d.Device)
		if d.Taken >= 0 {
			text += "takes " + units.Bytes(d.Taken)
		} else {
			text += "gets back " + units.Bytes(-d.Taken)
		}
		if d.Free >= 0 {
			text += fmt.Sprintf(", %s stay free", units.Bytes(d.Free))
		} else {
			text += fmt.Sprintf(", %s is missing", units.Bytes(-d.Free))
		}
		parts = append(parts, text)
	}
	if step.Saved > 0 {
		parts = append(parts, units.Bytes(step.Saved)+" is copied to backups")
	}
	if step.Restored > 0 {
		parts = append(parts, units.Bytes(step.Restored)+" is copied back")
	}
	return ": " + strings.Join(parts, "; ")
}

// peak states after which step most of a device is used.
func (d *Mem) peak() string {
	most, at, on := int64(-1), 0, 0
	for i := range d.Steps {
		for _, v := range d.Steps[i].Devices {
			if d.Steps[i].Fits && v.Used > most {
				most, at, on = v.Used, i, v.Device
			}
		}
	}
	if most < 0 {
		return "nothing changes"
	}
	return fmt.Sprintf("the most is used after step %d: %s of device %d, by all processes", at+1, units.Bytes(most), on)
}
