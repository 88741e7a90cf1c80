package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/finding"
	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/host/sampling/sampler"
	"strandline/internal/sorts"
	"strandline/judge/pauses"
	"strandline/pausable"
	"strandline/pausable/state"
	"strandline/units"
)

type memOptions struct {
	pid int
	tag string
	all bool // no tag was given
	// within is how long a pause or resume is waited for.
	within time.Duration
}

func newMem(g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "mem COMMAND --pid N",
		Short: "Pause and resume the GPU memory of a running process",
		Long: `Show the pausable memory of a running process, pause it, and resume it at the same
addresses. A pause gives the memory back to the device.

The process must use strandline.pausable in place of torch_memory_saver. It answers its own user and root, also from a container on
this machine.`,
		Example: `  strandline mem status --pid 4242
  strandline mem pause --pid 4242 --tag kv_cache
  strandline mem plan --pid 4242 resume=weights pause=optimizer resume=kv_cache
  strandline mem resume --pid 4242`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return fmt.Errorf("no command given: `strandline mem status`, `pause`, `resume` or `plan`; see `%s --help`", c.CommandPath())
		},
	}
	c.AddCommand(
		newMemDo(g, "status", "Show each tag's memory, and the holders of the devices", `Show the size, state and backup of each tag of a process, the free memory that
the driver reports, and the processes that hold the rest.

Exit status: 0; 2 wrong usage, or no pausable memory.`),
		newMemDo(g, state.Pause, "Give a process's memory back to the device", `Give the memory of a tag, or of all tags, back to the device. The process waits for
all work of the device, and keeps the contents where it was told to. Paused
memory stays paused. The process must not use the memory until it is resumed.

The released amount is the driver's own figure. A pause that fails is undone.

Exit status: 0 paused; 1 refused; 2 wrong usage, or no pausable memory.`),
		newMemDo(g, state.Resume, "Restore the paused memory of a process", `Restore the memory of a tag, or of all tags, at the same addresses, with kept
contents. Active memory stays active.

If the device has too little free memory, nothing changes. The processes that
hold its memory are listed, and you can try again.

Exit status: 0 resumed; 1 refused, with the holders of the device; 2 wrong
usage, or no pausable memory.`),
		newMemPlan(g),
	)
	return c
}

// flags adds those of every command of mem.
func (o *memOptions) flags(c *cobra.Command) {
	c.Flags().IntVar(&o.pid, "pid", 0, "the process `N`")
	c.Flags().StringVar(&o.tag, "tag", "", "the tag `T` (default: all)")
	c.MarkFlagRequired("pid")
}

func newMemDo(g *globals, do, short, long string) *cobra.Command {
	var o memOptions
	c := &cobra.Command{
		Use: do + " --pid N [--tag T]", Short: short, Long: long,
		Example: fmt.Sprintf("  strandline mem %s --pid 4242\n  strandline mem %s --pid 4242 --tag kv_cache\n  strandline mem %s --pid 4242 --json", do, do, do),
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			o.all = !c.Flags().Changed("tag")
			return g.mem(c.Context(), &o, do)
		},
	}
	o.flags(c)
	if do != "status" {
		c.Flags().DurationVar(&o.within, "timeout", pausable.StepTime, "wait no longer than `TIME`; the process goes on with it")
	}
	return c
}

func newMemPlan(g *globals) *cobra.Command {
	var o memOptions
	c := &cobra.Command{
		Use:   "plan --pid N [STEP...]",
		Short: "Compute whether a series of pauses and resumes would fit",
		Long: `Compute step by step how much pauses and resumes would take and give back, and
whether each fits into the memory that is free now. Nothing is changed. A step is
pause=TAG or resume=TAG; pause or resume alone means all tags. Without steps,
the plan is the resume of --tag, or of all.

Other processes can take or free memory meanwhile.

Exit status: 0 all steps fit; 1 one does not; 2 wrong usage, or no pausable
memory.`,
		Example: "  strandline mem plan --pid 4242\n  strandline mem plan --pid 4242 resume=weights pause=optimizer resume=kv_cache",
		RunE: func(c *cobra.Command, args []string) error {
			o.all = !c.Flags().Changed("tag")
			steps, err := o.steps(args)
			if err != nil {
				return err
			}
			return g.memPlan(c.Context(), &o, steps)
		},
	}
	o.flags(c)
	c.ValidArgs = []string{"resume", "pause", "resume=", "pause="}
	return c
}

// steps reads the steps of a plan.
func (o *memOptions) steps(args []string) (out []state.Step, err error) {
	if len(args) == 0 {
		return []state.Step{{Do: state.Resume, Tag: o.tag, All: o.all}}, nil
	}
	if !o.all {
		return nil, errors.New("give steps or --tag, not both")
	}
	for _, arg := range args {
		do, tag, tagged := strings.Cut(arg, "=")
		if do != state.Pause && do != state.Resume || tagged && tag == "" {
			return nil, fmt.Errorf("step %q: want pause=TAG or resume=TAG", arg)
		}
		out = append(out, state.Step{Do: do, Tag: tag, All: !tagged})
	}
	return out, nil
}

// mem asks a process, or has it pause or resume, and prints the document.
func (g *globals) mem(ctx context.Context, o *memOptions, do string) error {
	p, before, err := askMem(ctx, o.pid)
	if err != nil {
		return err
	}
	doc := &report.Mem{Mem: api.Mem{Schema: api.MemSchema, PID: int(p), Do: do}}
	after := before
	var refused *pausable.Failure
	if do == "status" {
		if !o.all {
			if after.Tags = slices.DeleteFunc(after.Tags, func(t state.Tag) bool { return t.Name != o.tag }); len(after.Tags) == 0 {
				return fmt.Errorf("process %d has no tag %s", p, o.tag)
			}
		}
	} else {
		began := time.Now()
		after, err = g.followed(ctx, int(p), state.Step{Do: do, Tag: o.tag, All: o.all}, o.within)
		doc.Seconds = new(time.Since(began).Seconds())
		switch {
		case errors.As(err, &refused) && refused.Unknown():
			return fmt.Errorf("process %d: %w", p, err)
		case refused != nil:
			doc.Failure = &api.MemFailure{Text: refused.Text, Needed: refused.Needed, Available: refused.Available}
			if refused.Device >= 0 {
				doc.Failure.Device = &refused.Device
			}
		case err != nil:
			return err
		}
	}
	fillMem(ctx, doc, p, before, after)
	if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
		return err
	}
	if refused != nil {
		return exit(exitProblem)
	}
	return nil
}

// followed has a process pause or resume. On a terminal it shows how far that is, from one
// second on.
func (g *globals) followed(ctx context.Context, pid int, step state.Step, within time.Duration) (*state.Status, error) {
	if !g.progressTerminal() {
		return pausable.Do(ctx, pid, step, within)
	}
	following, end := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { g.follow(following, pid) })
	s, err := pausable.Do(ctx, pid, step, within)
	end()
	wait.Wait()
	return s, err
}

func (g *globals) follow(ctx context.Context, pid int) {
	began, shown := time.Now(), false
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if shown {
				fmt.Fprint(g.env.stderr, "\r\x1b[K")
			}
			return
		case <-tick.C:
		}
		if s, err := pausable.Ask(ctx, pid); err == nil && s.Doing != nil {
			fmt.Fprint(g.env.stderr, "\r\x1b[K"+memProgress(s.Doing, time.Since(began)))
			shown = true
		}
	}
}

// memProgress is how far a pause or resume is that takes so long already.
func memProgress(d *state.Doing, passed time.Duration) string {
	text := d.Do + " under way"
	if d.Total == 0 || d.Done == 0 {
		return text
	}
	text += fmt.Sprintf(": %s of %s copied", units.Bytes(d.Done), units.Bytes(d.Total))
	if d.Done < d.Total {
		text += ", " + units.Duration(time.Duration(float64(d.Total-d.Done)/float64(d.Done)*float64(passed))) + " left"
	}
	return text
}

// askMem asks a process what its pausable memory is.
func askMem(ctx context.Context, pid int) (procfs.Process, *state.Status, error) {
	p, err := reachable(pid)
	if err != nil {
		return 0, nil, err
	}
	s, err := pausable.Ask(ctx, int(p))
	if errors.Is(err, pausable.ErrNotThere) {
		return p, nil, fmt.Errorf("%w, or not yet: it opens a region of strandline.pausable first%s", err, whyNone(p))
	}
	return p, s, err
}

// whyNone is what in the environment of a process keeps it from answering.
func whyNone(p procfs.Process) string {
	environ, _ := p.Environ()
	if name, ok := pauses.Expandable(environ); ok {
		return fmt.Sprintf("; with expandable_segments:True in %s regions are refused", name)
	}
	if environ["STRANDLINE_MEM_SOCKET"] == "0" {
		return "; STRANDLINE_MEM_SOCKET=0 has it answer nobody"
	}
	return ""
}

// fillMem adds what is known of a process and its devices.
func fillMem(ctx context.Context, doc *report.Mem, p procfs.Process, before, after *state.Status) {
	doc.Tags, doc.Doing, doc.NotFreed, doc.Kept, doc.Margin = after.Tags, after.Doing, after.NotFreed, after.Kept, after.Margin
	judged := &pauses.Process{Name: fmt.Sprintf("process %d", p), PID: int(p), Status: after}
	judged.Environ, _ = p.Environ()
	levels := gauged(p)
	outside, _ := sampler.OutsideRegions(ctx, int(p))
	seen, note := devicesSeen(ctx)
	doc.Note, doc.Devices = note, []api.MemDevice{}
	for _, d := range after.Devices {
		out := api.MemDevice{Device: d, Holders: []api.MemHolder{}}
		own := usage(p, d.Index, outside, seen)
		out.Outside = own.Outside
		for i := range levels {
			if l := &levels[i]; l.Device == d.Index {
				own.Allocated, own.Reserved = &l.Allocated, &l.Reserved
				out.Cached = new(max(l.Reserved-l.Allocated, 0))
			}
		}
		holders(&out, p, seen)
		for i := range before.Devices {
			if before.Devices[i].Index == d.Index && doc.Do != "status" {
				out.Released = new(d.Free - before.Devices[i].Free)
			}
		}
		doc.Devices = append(doc.Devices, out)
		judged.Seen = append(judged.Seen, own)
	}
	for i := range doc.Devices {
		d := &doc.Devices[i]
		if doc.Device == nil || doc.Failure != nil && doc.Failure.Device != nil && *doc.Failure.Device == d.Device.Index {
			doc.Device = d
		}
	}
	doc.Findings = []finding.Finding{}
	if doc.Failure == nil {
		judged.Stays = besideOthers(ctx, p, judged, seen)
		doc.Findings = append(judged.Stays, pauses.Judge(judged)...)
	}
}

// besideOthers finds what a process, or another of its job on this machine, keeps while the same tags
// are paused.
func besideOthers(ctx context.Context, p procfs.Process, own *pauses.Process, seen *sample.Sample) []finding.Finding {
	var courses []pauses.Course
	job := p.Launch(own.Environ)
	if job == "" {
		return nil
	}
	for _, pid := range pausable.Running() {
		of := own
		if pid != int(p) {
			other := procfs.Process(pid)
			s, err := pausable.Ask(ctx, pid)
			if err != nil || !slices.ContainsFunc(s.Tags, func(t state.Tag) bool {
				return slices.ContainsFunc(own.Status.Tags, func(o state.Tag) bool { return o.Name == t.Name })
			}) {
				continue
			}
			of = &pauses.Process{Status: s}
			if of.Environ, _ = other.Environ(); other.Launch(of.Environ) != job {
				continue
			}
			outside, _ := sampler.OutsideRegions(ctx, pid)
			for _, d := range s.Devices {
				of.Seen = append(of.Seen, usage(other, d.Index, outside, seen))
			}
		}
		for _, d := range of.Status.Devices {
			c := of.Course(d.Index)
			c.Name, c.PID, c.Job = pauses.Name(procfs.Rank(of.Environ), pid), pid, job
			courses = append(courses, c)
		}
	}
	if len(courses) < 2 {
		return nil
	}
	return pauses.Stays(courses)
}

// usage is what a process has of a device, as CUDA counts in it. The allocator's own counters are left out.
func usage(p procfs.Process, device int, outside map[int]*state.Outside, seen *sample.Sample) pauses.Usage {
	use := pauses.Usage{Device: device, Outside: outside[device]}
	if d := deviceOf(p, device, seen); d != nil {
		use.Used = usedOn(d, p)
	}
	return use
}

// usedOn is what a process has of a device by the driver's count; nil if that is not known.
func usedOn(d *sample.Device, p procfs.Process) *int64 {
	i := slices.IndexFunc(d.Processes, func(h sample.Holding) bool { return h.PID == int(p) })
	if i < 0 {
		return nil
	}
	return d.Processes[i].Used
}

// deviceOf is a device, as CUDA counts in a process; nil if it is not seen.
func deviceOf(p procfs.Process, device int, seen *sample.Sample) *sample.Device {
	if seen == nil {
		return nil
	}
	index := sampler.DeviceIndex(int(p), device, seen.Devices)
	i := slices.IndexFunc(seen.Devices, func(d sample.Device) bool { return d.Index == index })
	if i < 0 {
		return nil
	}
	return &seen.Devices[i]
}

// gauged is what PyTorch's allocator has in a process, nil if that cannot be read.
func gauged(p procfs.Process) []cudaalloc.Level {
	gauge, err := cudaalloc.OpenGauge(p)
	if err != nil {
		return nil
	}
	defer gauge.Close()
	levels, _ := gauge.Read()
	return levels
}

// devicesSeen asks the driver for the devices and their processes.
func devicesSeen(ctx context.Context) (out *sample.Sample, note string) {
	const patience = 10 * time.Second
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	s, err := sampler.New(sampler.Options{Interval: time.Second, Devices: sampler.NewNVIDIA()})
	if err != nil {
		return nil, err.Error()
	}
	defer s.Close()
	if out, err = s.Sample(ctx); err != nil {
		return nil, err.Error()
	}
	return out, out.DevicesNote
}

// holders lists who holds memory of a device.
func holders(out *api.MemDevice, p procfs.Process, seen *sample.Sample) {
	d := deviceOf(p, out.Device.Index, seen)
	if d == nil {
		return
	}
	out.Index, out.Process = &d.Index, usedOn(d, p)
	pausing := pausable.Running()
	for _, h := range d.Processes {
		one := api.MemHolder{PID: h.PID, Bytes: h.Used}
		for k := range seen.Processes {
			if seen.Processes[k].PID == h.PID {
				one.Command = seen.Processes[k].Command
			}
		}
		one.Pausing = slices.Contains(pausing, h.PID)
		out.Holders = append(out.Holders, one)
	}
	size := func(h api.MemHolder) int64 {
		if h.Bytes == nil {
			return 0
		}
		return *h.Bytes
	}
	sorts.StableBy(out.Holders, func(a, b api.MemHolder) int { return cmp.Compare(size(b), size(a)) })
}

// memPlan computes what steps would do, and prints that.
func (g *globals) memPlan(ctx context.Context, o *memOptions, steps []state.Step) error {
	p, now, err := askMem(ctx, o.pid)
	if err != nil {
		return err
	}
	planned, err := now.Plan(steps)
	if err != nil {
		return fmt.Errorf("process %d: %w", p, err)
	}
	doc := &report.Mem{Mem: api.Mem{Schema: api.MemSchema, PID: int(p), Do: "plan"}}
	fits := true
	for _, s := range planned {
		step := api.MemStep{Do: s.Do, Fits: s.Fits(), Saved: s.Saved, Restored: s.Restored, Devices: []api.MemStepDevice{}}
		if !s.All {
			step.Tag = &s.Tag
		}
		for _, d := range s.Devices {
			step.Devices = append(step.Devices, api.MemStepDevice{Device: d.Device, Taken: d.Taken, Free: d.Free, Used: d.Total - d.Free - now.Margin})
		}
		fits = fits && step.Fits
		doc.Steps = append(doc.Steps, step)
	}
	fillMem(ctx, doc, p, now, now)
	for i := range doc.Devices {
		doc.Devices[i].Released = nil
	}
	if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
		return err
	}
	if !fits {
		return exit(exitProblem)
	}
	return nil
}
