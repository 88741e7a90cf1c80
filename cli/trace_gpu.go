package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/judge/snapshots"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// writtenMeanwhile are the snapshots that a process wrote while it was traced;
// whole reports whether all could be read.
func (g *globals) writtenMeanwhile(ctx context.Context, began time.Time, paths []string) (out []*snapshot.Snapshot, whole bool) {
	if ctx.Err() != nil { // also after an interrupt
		ctx = context.WithoutCancel(ctx)
	}
	whole = true
	for _, path := range paths {
		s, err := g.open(ctx, path)
		if err != nil {
			g.warn("%v; the totals do not include it", describe(err))
			whole = false
			continue
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().Before(began) {
			g.warn("%s was written before the trace began; it describes that time", path)
		}
		whole = !g.partial(s) && whole
		out = append(out, s)
	}
	return out, whole
}

// beside is what the snapshots show that are named with a recording.
type beside struct {
	snapshots []*snapshot.Snapshot // to account for the device's memory, if that was traced
	findings  []finding.Finding
	known     manifests
	partial   bool
}

// pidOf is the process that wrote a snapshot: by the manifest of its recording, otherwise by
// its name; 0 if neither names it.
func (b *beside) pidOf(path string) int {
	if p, _ := b.known.of(path); p != nil {
		return p.PID
	}
	return compare.PIDOf(path)
}

// readWith reads and judges the snapshots that a recording is judged with. Files that
// are named are of one process each, unless they name it; those of folders are sorted
// by process, of which the newest states what PyTorch holds.
func (g *globals) readWith(c *cobra.Command, run *recording.Run, paths []string) (*beside, error) {
	out := &beside{known: manifests{}}
	if len(paths) == 0 {
		return out, nil
	}
	book, processes, partial, err := g.processes(c, "", paths, false)
	if err != nil {
		return nil, err
	}
	out.partial = partial
	out.judge(run.Document, book, processes)
	if run.GPU == nil || run.Document.GPU == nil {
		return out, nil
	}
	if slices.ContainsFunc(paths, isFolder) {
		paths = nil
		for _, p := range processes {
			paths = append(paths, p.Newest().Name)
		}
	}
	for _, path := range paths {
		s, err := g.openOnly(c.Context(), path)
		if err != nil {
			return nil, err
		}
		out.snapshots = append(out.snapshots, s)
	}
	return out, nil
}

// judge finds what is wrong in the snapshots, less what only informs.
func (b *beside) judge(doc *recording.Document, book *digest.Book, processes []*compare.Process) {
	for _, f := range snapshots.Files(book, processes, snapshots.Options{}).Findings {
		if f.Severity == finding.Info {
			continue
		}
		for _, p := range processes {
			if p.Name == f.Process {
				f.Process = tracedName(doc, p.Name, b.pidOf(p.Newest().Name))
				break
			}
		}
		b.findings = append(b.findings, f)
	}
}

// tracedName is the name of a process with its pid and its command, if it was traced.
func tracedName(doc *recording.Document, name string, pid int) string {
	if pid != 0 && !strings.Contains(name, fmt.Sprintf("pid%d", pid)) {
		name = strings.TrimSpace(fmt.Sprintf("pid%d %s", pid, name))
	}
	for _, p := range doc.Processes {
		if p.PID == pid && p.Role != "" && !strings.Contains(name, "(") {
			name += " (" + p.Role + ")"
		}
		if p.PID == pid && p.Command != "" {
			return name + ": " + p.Command
		}
	}
	return name
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
