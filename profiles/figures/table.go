package figures

import (
	"strings"

	"strandline/internal/lazyregexp"
)

// A table is one of Markdown: rows of cells between bars.
type table struct {
	header []string
	rows   [][]string
}

// maxRows is how many rows of a table are read.
const maxRows = 10_000

// markdown takes a line of a table, and reports whether it is one.
func (t *reader) markdown(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '|' || text[len(text)-1] != '|' || strings.HasPrefix(text, "||") {
		t.endTable()
		return false
	}
	var cells []string
	for _, c := range strings.Split(strings.Trim(text, "|"), "|") {
		cells = append(cells, strings.Trim(c, " *`"))
	}
	switch {
	case t.table == nil:
		t.table = &table{header: cells}
	case strings.Trim(text, "|-: ") != "" && len(t.table.rows) < maxRows:
		t.table.rows = append(t.table.rows, cells)
	}
	return true
}

// moment are heads of columns that are moments: then a row is a series, else a column is one.
var moment = lazyregexp.New(`(?i)^(?:t ?[+=] ?\d.*|\d+ ?(?:s|sec|min|h|steps?)?|step ?\d+|before|after.*|start|end)$`)

// endTable takes the series of the table that ended.
func (t *reader) endTable() {
	tb := t.table
	t.table, t.number = nil, 0
	if tb == nil || len(tb.header) < 2 {
		return
	}
	byRow := true
	for _, h := range tb.header[1:] {
		byRow = byRow && moment.MatchString(h)
	}
	for _, row := range tb.rows {
		line := strings.Join(row, " | ")
		for i, cell := range row {
			if i == 0 || i >= len(tb.header) {
				continue
			}
			name := tb.header[i]
			if byRow {
				name = row[0]
			}
			found := number.FindAllStringSubmatch(cell, 4)
			if len(found) > 1 && len(found[1][2]) >= 2 && strings.Contains(cell, " / ") {
				found[0][2] = found[1][2] // "5.0 / 10.3 GiB"
			}
			for _, m := range found {
				if len(m[2]) >= 2 {
					t.add(key{"", name}, numberOf(m[1])*factors[lower(m[2][0])], line)
					break
				}
			}
		}
	}
}
