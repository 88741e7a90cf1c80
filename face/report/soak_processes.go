package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/internal/sorts"
	"strandline/units"
)

// maxProcesses is how many processes of a server are shown.
const maxProcesses = 8

// processes shows what each process held last and how that changed since the warm-up, if
// there are several.
func (d *Soak) processes(w io.Writer) {
	last := d.last()
	if last == nil || len(last.Processes) < 2 {
		return
	}
	devices := map[int]bool{}
	for _, v := range last.Devices {
		devices[v.Device] = true
	}
	order := slices.Sorted(maps.Keys(devices))
	t := &table{right: map[int]bool{1: true, 2: true}}
	head := []string{"process", "host", "change"}
	for _, v := range order {
		t.right[len(head)], t.right[len(head)+1] = true, true
		head = append(head, fmt.Sprintf("device %d", v), "change")
	}
	t.row(head...)
	before := d.warmedUp()
	all := slices.Clone(last.Processes)
	sorts.StableBy(all, func(a, b api.SoakProcess) int { return cmp.Compare(b.HostBytes, a.HostBytes) })
	for i := range all[:min(len(all), maxProcesses)] {
		p := &all[i]
		var was *api.SoakProcess
		if k := slices.IndexFunc(before, func(q api.SoakProcess) bool { return q.PID == p.PID }); k >= 0 {
			was = &before[k]
		}
		const longest = 40
		cells := []string{fmt.Sprintf("pid%d %s", p.PID, shortened(program(p.Command), longest)), units.Bytes(p.HostBytes), "new"}
		if was != nil {
			cells[2] = units.SignedBytes(p.HostBytes - was.HostBytes)
		}
		for _, v := range order {
			held, change := "", ""
			if bytes, ok := deviceBytes(p.Devices, v); ok {
				held = units.Bytes(bytes)
				if was != nil {
					if old, ok := deviceBytes(was.Devices, v); ok {
						change = units.SignedBytes(bytes - old)
					}
				}
			}
			cells = append(cells, held, change)
		}
		t.row(cells...)
	}
	fmt.Fprintln(w)
	t.write(w, "  ")
	if more := len(all) - maxProcesses; more > 0 {
		fmt.Fprintf(w, "  and %s\n", units.Plural(int64(more), "smaller process"))
	}
}

// program is a command line without the folder of the program.
func program(command string) string {
	first, rest, _ := strings.Cut(command, " ")
	if !strings.Contains(first, "/") {
		return command
	}
	return strings.TrimSpace(path.Base(first) + " " + rest)
}

// warmedUp are the processes after the warm-up of the server that there was last.
func (d *Soak) warmedUp() (out []api.SoakProcess) {
	for i := range d.Waves {
		if x := &d.Waves[i]; x.HostBytes != nil && (x.WarmUp || x.Ended) {
			out = x.Processes
		}
	}
	return out
}
