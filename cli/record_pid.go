package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strandline/input"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
	"strandline/record"
	"strandline/run/outside"
	"strandline/torch/snapshot"
	"strandline/units"
)

// checkOutside returns what is wrong with the options of a recording from outside.
func (o *recordOptions) checkOutside(c *cobra.Command) error {
	switch {
	case len(o.command) > 0:
		return errors.New("give a command or --pid, not both")
	case o.pid <= 0:
		return fmt.Errorf("--pid %d is not a process ID", o.pid)
	case o.duration <= 0:
		return fmt.Errorf("--duration %v: want a time such as 30s", o.duration)
	case o.every != "":
		return errors.New("--every is for a command: a running process gives one snapshot, at the end")
	}
	return nil
}

// recordOutside records a process that is already running.
func recordOutside(ctx context.Context, g *globals, o *recordOptions) error {
	p, err := reachable(o.pid)
	if err != nil {
		return err
	}
	if o.dir == "" {
		o.dir = time.Now().Format("strandline-20060102-150405")
	}
	m := manifestOf(os.Args)
	m.Processes = []record.Process{describeProcess(p)}
	g.concludes.Store(true) // what is recorded until an interrupt is written
	var folder *safefile.Folder
	var unmade error
	options := outside.Options{PID: int(p), Duration: o.duration, MaxEvents: o.record.Entries}
	if !g.printing.quiet {
		options.Progress = g.outsideProgress()
	}
	options.Began = func() { folder, unmade = record.Create(o.dir, &m) }
	if _, err := os.Lstat(filepath.Join(o.dir, record.ManifestName)); err == nil {
		return fmt.Errorf("%s %w", o.dir, record.ErrExists)
	}
	if input.IsFolder(o.dir) { // which is better known before
		before, err := safefile.OpenFolder(o.dir)
		if err != nil {
			return err
		}
		before.Close()
	}
	s, r, err := outside.Record(ctx, options)
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("recording a process from outside needs BPF, and so root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE: %w; `strandline doctor --pid %d` reports what else the process offers", err, p)
	}
	if err != nil {
		return err
	}
	if unmade != nil {
		return unmade
	}
	defer folder.Close()
	if err := g.saveOutside(context.WithoutCancel(ctx), o, folder, &m, s, r); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return exit(exitInterrupted)
	case !r.Complete():
		return exit(exitPartial)
	}
	return nil
}

// outsideProgress shows what was recorded so far, in a line about every ten seconds.
func (g *globals) outsideProgress() func(outside.Result) {
	const every = 10 * time.Second
	next := time.Now().Add(every)
	return func(r outside.Result) {
		if now := time.Now(); !g.json && now.After(next) {
			next = now.Add(every)
			g.warn("%s: %s requests, %s releases", r.Took.Round(time.Second), units.Count(int64(r.Requests)), units.Count(int64(r.Frees)))
		}
	}
}

// saveOutside writes the snapshot and the manifest, and prints what they hold.
func (g *globals) saveOutside(ctx context.Context, o *recordOptions, folder *safefile.Folder, m *record.Manifest, s *snapshot.Snapshot, r *outside.Result) error {
	p := &m.Processes[0]
	p.Since, p.Ended, p.Torch, p.Python, p.Allocator = r.Since, r.Ended, r.Version, r.Python, "native"
	now := time.Now()
	rank := ""
	if p.Rank != nil {
		rank = fmt.Sprintf("_rank%d", *p.Rank)
	}
	name := filepath.Join(now.Format("20060102-150405.000"), fmt.Sprintf("%s%s_pid%d.pickle", p.Role, rank, p.PID))
	inner, err := folder.Folder(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer inner.Close()
	began := time.Now()
	file, err := inner.Output(filepath.Base(name))
	if err != nil {
		return err
	}
	size, err := g.fill(ctx, file, s.Write)
	if err != nil {
		return err
	}
	dump := record.Dump{File: filepath.ToSlash(name), Time: now, Reason: "outside", Bytes: size, Write: time.Since(began).Seconds()}
	dump.HeldBy = growingContainers(r)
	for _, d := range s.Devices() {
		u := record.Usage{Device: d.Index}
		for _, i := range d.Segments {
			u.Reserved += s.Segments[i].TotalSize
			u.Allocated += s.Segments[i].AllocatedSize
		}
		dump.Events += int64(d.Trace.Len())
		dump.Devices = append(dump.Devices, u)
	}
	p.Dumps = []record.Dump{dump}
	for _, why := range lacks(r) {
		m.Notes = append(m.Notes, record.Note{PID: p.PID, Command: p.Command, Why: why})
	}
	m.Ended = &now
	if err := m.Save(folder); err != nil {
		return err
	}
	if !g.printing.quiet {
		g.warn("%s requests and %s releases of process %d in %s", units.Count(int64(r.Requests)), units.Count(int64(r.Frees)), p.PID, r.Took.Round(100*time.Millisecond))
		g.recorded(ctx, o.dir, m)
	}
	return nil
}

// growingContainers is what is known of the containers that keep tensors, in the form of the recorder.
func growingContainers(r *outside.Result) json.RawMessage {
	type container struct {
		Path  string `json:"path"`
		Count int64  `json:"count"` // of the objects that came
		// Graphs reports whether it holds tensors with graphs.
		Graphs bool `json:"graphs,omitzero"`
	}
	var h struct {
		Growing []container `json:"growing"`
	}
	for _, c := range r.Containers {
		h.Growing = append(h.Growing, container{c.Path, c.Grew(), c.Graph})
	}
	if len(h.Growing) == 0 {
		return nil
	}
	text, _ := json.Marshal(h)
	return text
}

// lacks returns what a recording does not have, a sentence each.
func lacks(r *outside.Result) []string {
	out := r.Notes
	add := func(n int, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, units.Count(int64(n))))
		}
	}
	if r.Requests+r.Segments == 0 && r.Start == nil {
		out = append(out, "it requested no memory of a device meanwhile: `strandline trace --pid` follows its main memory")
	}
	if r.Start != nil {
		out = append(out, "earlier allocations are unknown: "+r.Start.Error())
	}
	if r.End != nil {
		out = append(out, "the blocks and segments at the end are inferred from the events: "+r.End.Error())
	}
	add(r.Lost, "the recording is partial: %s events were lost, as they came faster than they could be read")
	const maxGaps = 5
	for i, gap := range r.Gaps {
		if i == maxGaps {
			out = append(out, fmt.Sprintf("there are %s more such gaps", units.Count(int64(len(r.Gaps)-maxGaps))))
			break
		}
		text := fmt.Sprintf("%s events were lost between %s and %s", units.Count(int64(gap.Lost)), gap.From.Format("15:04:05.000"), gap.To.Format("15:04:05.000"))
		if gap.Closed {
			text += "; the figures before and after are right. Missed changes are entered at the end of the gap, without stacks"
		} else {
			text += "; later figures are uncertain"
		}
		out = append(out, text)
	}
	add(r.LostStacks, "%s stacks were lost; their events have none")
	add(r.Dropped, "the oldest %s events were dropped to bound the memory of the recorder")
	add(r.Unknown, "%s releases were of memory that was not known, and are left out")
	add(r.Failed, "%s requests did not return: out of memory, for one")
	return out
}

// describeProcess is a process as /proc describes it.
func describeProcess(p procfs.Process) record.Process {
	args := p.Args()
	out := record.Process{PID: int(p), Role: roleOf(args), Command: strings.Join(args, " ")}
	if st, err := p.Status(); err == nil {
		out.Parent = st.Parent
	}
	env, _ := p.Environ()
	for _, v := range []struct {
		name string
		to   **int
	}{{"RANK", &out.Rank}, {"LOCAL_RANK", &out.LocalRank}, {"WORLD_SIZE", &out.WorldSize}} {
		if n, err := strconv.Atoi(env[v.name]); err == nil {
			*v.to = &n
		}
	}
	if devices, ok := env["CUDA_VISIBLE_DEVICES"]; ok {
		out.Visible = &devices
	}
	out.Settings = env["PYTORCH_CUDA_ALLOC_CONF"]
	return out
}

var notInNames = lazyregexp.New(`[^A-Za-z0-9.+-]+`)

// roleOf is a short name of what a command line runs, fit for a file's name: the
// script or module of Python, the title that a server gave itself, or the program.
func roleOf(args []string) string {
	name := path.Base(args[0])
	if strings.HasPrefix(name, "python") {
		for i, a := range args[1:] {
			if a == "-m" && i+2 < len(args) {
				name = args[i+2]
			} else if a != "-c" && !strings.HasPrefix(a, "-") {
				name = strings.TrimSuffix(path.Base(a), ".py")
			} else if a != "-c" {
				continue
			}
			break
		}
	}
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-.")
	return name[:min(len(name), 48)]
}
