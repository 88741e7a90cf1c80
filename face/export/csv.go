package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"strandline/internal/sheet"
	"strandline/stack"
	"strandline/torch/snapshot"
)

var csvHeader = []string{
	"device", "event", "action", "addr", "size", "stream", "pool", "time_us", "device_free",
	"stack", "file", "line", "function", "compile_context", "user_metadata", "category",
}

// CSV writes the events of all devices as a table of RFC 4180, a line each under
// a header. file, line and function are the site of the event's stack (see
// [stack.Site]); stack is the stack's number, the same for equal stacks. A field
// of which the snapshot records nothing is empty; text that a spreadsheet would take
// for a formula begins with an apostrophe.
func CSV(w io.Writer, s *snapshot.Snapshot) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	out.Write(csvHeader)
	row := make([]string, 0, len(csvHeader))
	for _, d := range s.Devices() {
		for k := range d.Trace.Action {
			if err := out.Write(csvRow(row, s, d.Trace, k)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// csvRow is event k of a trace, appended to row.
func csvRow(row []string, s *snapshot.Snapshot, t *snapshot.Trace, k int) []string {
	addr, free, pool, time := fmt.Sprintf("0x%x", t.Addr[k]), "", "", ""
	if t.Action[k] == snapshot.OOM {
		addr, free = "", strconv.FormatInt(t.DeviceFree(k), 10)
	}
	if t.Pool != nil && t.Pool[k] != 0 {
		pool = s.PoolOf(t.Pool[k]).String()
	}
	if t.Time != nil && t.Time[k] != 0 {
		time = strconv.FormatInt(t.Time[k], 10)
	}
	row = append(row, strconv.Itoa(t.Device), strconv.Itoa(k), cell(actionName(t, k)), addr,
		strconv.FormatInt(t.Size[k], 10), strconv.FormatUint(s.Stream(t.Stream[k]), 10), pool, time, free)
	row = append(row, csvSite(s, t.Stack[k])...)
	for _, column := range [][]snapshot.StringID{t.CompileContext, t.UserMetadata, t.Category} {
		text := ""
		if column != nil {
			text = cell(s.String(column[k]))
		}
		row = append(row, text)
	}
	return row
}

// csvSite is a stack's number and its site.
func csvSite(s *snapshot.Snapshot, id stack.ID) []string {
	number, line := "", ""
	if id > stack.Empty {
		number = strconv.Itoa(int(id))
	}
	site := s.Stacks.Site(id)
	if site.Line > 0 {
		line = strconv.FormatInt(site.Line, 10)
	}
	return []string{number, cell(site.File), line, cell(site.Function)}
}

// cell is text of the snapshot as it can be in a table.
func cell(text string) string { return sheet.Cell(valid(text)) }
