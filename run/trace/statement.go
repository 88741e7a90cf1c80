package trace

import (
	"bufio"
	"io"
	"os"
	"strings"

	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/judge/processes"
)

// nameKeepers names the variables that keep autograd's graph, by the source of the program.
func (w *Session) nameKeepers(found []finding.Finding) {
	for i := range found {
		if f := &found[i]; f.Kind == finding.AutogradGraph && f.Site != nil && strings.HasSuffix(f.Site.File, ".py") {
			processes.NameKeeper(f, w.statement(f.Site))
		}
	}
}

// statement is a line of the program's source, as the process sees the file; empty if it
// cannot be read.
func (w *Session) statement(at *finding.Site) string {
	const maxSource = 4 << 20
	var f *os.File
	var err error
	switch {
	case w.running():
		f, err = w.trace.Root.OpenFile(at.File)
	case len(w.options.Command) > 0: // which ran where we do
		f, err = procfs.OpenFile(at.File)
	default:
		return ""
	}
	if err != nil {
		return ""
	}
	defer f.Close()
	in := bufio.NewScanner(io.LimitReader(f, maxSource))
	for n := int64(1); in.Scan(); n++ {
		if n == at.Line {
			return in.Text()
		}
	}
	return ""
}
