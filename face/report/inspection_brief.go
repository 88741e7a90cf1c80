package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/shell"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// command is a command of this program with files.
func command(name string, files ...string) string {
	for _, f := range files {
		name += " " + shell.File(Line(f))
	}
	return "strandline " + name
}

// brief prints the account of each device, or what was asked for.
func (d *Inspection) brief(w io.Writer, s Style) {
	var sites []api.Site
	if d.At != nil {
		for _, p := range d.At.Sites {
			sites = append(sites, p.Site)
		}
	}
	b := sitesBrief(w, s, sites)
	if d.Partial {
		b.line("NOTE", "only partly readable: "+inputName(d.File))
	}
	if asked := d.At != nil || d.Alloc != nil || d.Pools != nil; !asked {
		d.devicesBrief(b)
	}
	if d.At != nil {
		d.atBrief(b)
	}
	if d.Alloc != nil {
		d.allocBrief(b)
	}
	if d.Pools != nil {
		d.writePools(w, s)
	}
	for i, n := range d.Notes {
		if i == maxNotes {
			b.left += len(d.Notes) - maxNotes
			break
		}
		b.line("NOTE", Line(n))
	}
	more := ""
	if d.At == nil && d.Pools == nil {
		more = "all figures"
	}
	b.moreLine(more)
}

// devicesBrief prints what the memory of each device consists of, and its peak.
func (d *Inspection) devicesBrief(b *brief) {
	var events, errors int
	for i := range d.Devices {
		v := &d.Devices[i]
		on := ""
		if len(d.Devices) > 1 {
			on = snapshot.DeviceName(v.Device) + ": "
		}
		a := &finding.Account{Bytes: v.ReservedBytes, Name: "reserved"}
		a.Add(v.RequestedBytes, "requested")
		a.Add(v.AllocatedBytes-v.RequestedBytes, "rounding")
		a.Add(v.ActiveBytes-v.AllocatedBytes, "waiting for a stream")
		a.Add(v.InactiveSplitBytes, "free in split segments")
		if !a.Rest("free in whole segments") {
			a.Parts = a.Parts[:1]
		}
		held := units.Bytes(v.ReservedBytes) + " reserved"
		if v.ReservedBytes > 0 {
			held = api.Sum(a)
		}
		b.line("HELD", on+held)
		if v.Events == nil {
			continue
		}
		events, errors = events+*v.Events, errors+*v.OOMEvents
		if *v.Events > 0 {
			b.line("PEAK", fmt.Sprintf("%s requested at event %s; %s reserved at event %s", units.Bytes(*v.PeakRequested), eventName(*v.PeakRequestedEvent),
				units.Bytes(*v.PeakReserved), eventName(*v.PeakReservedEvent)))
		}
	}
	text := fmt.Sprintf("%s  PyTorch %s, %s", inputName(d.File), Line(d.Version), count(events, "event"))
	if errors > 0 {
		text += ", " + count(errors, "out-of-memory error")
	}
	b.line("FILE", text)
	if d.Conf != nil && *d.Conf != "" {
		b.line("", "PYTORCH_CUDA_ALLOC_CONF="+Line(*d.Conf))
	}
	if i := slices.IndexFunc(d.Devices, func(v timeline.DeviceFacts) bool { return v.Events != nil && *v.Events > 0 }); i >= 0 && *d.Devices[i].PeakRequestedEvent != timeline.Never {
		b.paste("NEXT", fmt.Sprintf("%s --at %d%s", command("inspect", d.File), *d.Devices[i].PeakRequestedEvent, onDevice(d.Devices[i].Device)))
	}
}

// onDevice is the flag that names a device, "" for the first.
func onDevice(device int) string {
	if device == 0 {
		return ""
	}
	return fmt.Sprintf(" --device %d", device)
}

// atBrief prints what lives after an event.
func (d *Inspection) atBrief(b *brief) {
	a := d.At
	on := ""
	if a.Device != 0 {
		on = " on " + snapshot.DeviceName(a.Device)
	}
	b.verdict("LIVE", fmt.Sprintf("%s in %s after event %s%s; %s reserved", units.Bytes(a.Requested), count(a.Allocations, "allocation"), eventName(a.Event), on, units.Bytes(a.Reserved)))
	var lines []string
	for _, p := range a.Sites {
		lines = append(lines, fmt.Sprintf("%s  %s ×%s  %s", b.at(p.Site, p.Missing), units.Bytes(p.Bytes), units.Count(int64(p.Count)),
			share(float64(p.Bytes)/float64(max(a.Requested, 1)))))
	}
	b.numbered(lines)
}

// share is a share in whole percent.
func share(of float64) string {
	if of < 0.005 {
		return "<1%"
	}
	return api.WholePercent(of)
}

// allocBrief prints one allocation: its size and life, and the lines that made and freed it.
func (d *Inspection) allocBrief(b *brief) {
	a := d.Alloc
	text := fmt.Sprintf("%s at 0x%x", units.Bytes(a.Bytes), a.Address)
	if a.Device != 0 {
		text += " on " + snapshot.DeviceName(a.Device)
	}
	born, freed := "before the recording", "never freed in the history"
	if a.Born != nil {
		born = "at event " + units.Count(int64(*a.Born))
	}
	if a.Freed != nil {
		freed = "freed at event " + units.Count(int64(*a.Freed))
		if a.Completed == nil {
			freed += ", another stream uses it"
		}
	}
	text += fmt.Sprintf(": made %s, %s", born, freed)
	if a.LivedUS != nil {
		text += ", lived " + units.Duration(time.Duration(*a.LivedUS)*time.Microsecond)
	}
	b.verdict("ALLOC", text)
	for _, x := range []struct {
		label  string
		frames []stack.Frame
	}{{"MADE", a.Stack}, {"FREED", a.FreeStack}} {
		if own := ownFrames(x.frames); len(own) > 0 {
			site := finding.Site(own[0])
			f := finding.Finding{Site: &site}
			for _, o := range own {
				f.Stack = append(f.Stack, finding.Frame(o))
			}
			b.names = api.NamesOf([]finding.Finding{f})
			text := b.place(&site)
			if via := b.via(&f); via != "" {
				text += " ← " + via
			}
			b.line(x.label, text)
		}
	}
}

// ownFrames are the frames of a program's own code, or all that are readable where it has none.
func ownFrames(frames []stack.Frame) (own []stack.Frame) {
	for _, f := range frames {
		if stack.OriginOf(f) == stack.Own {
			own = append(own, f)
		}
	}
	if len(own) == 0 {
		own = stack.Readable(frames)
	}
	return own[:min(len(own), maxPlaces)]
}
