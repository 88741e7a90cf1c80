package engine

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"

	"strandline/internal/sheet"
	"strandline/torch/tile"
)

// csv answers with a table as a file to be saved.
func (q *question) csv() (any, error) {
	name := q.text("table", "")
	tables := map[string]func() ([][]string, error){
		"at": q.sumsCSV, "range": q.sumsCSV, "diff": q.diffCSV, "bands": q.bandsCSV, "state": q.stateCSV,
	}
	make, ok := tables[name]
	if !ok {
		return nil, wrong("table is at, range, diff, bands or state, not %q", name)
	}
	rows, err := make()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	for _, row := range rows[1:] {
		for i, cell := range row {
			row[i] = sheet.Cell(cell)
		}
	}
	w.WriteAll(rows)
	return Answer{Type: "text/csv; charset=utf-8", Body: out.Bytes(), Name: "strandline-" + name + ".csv"}, w.Error()
}

// groupCells are the columns that name a group.
func groupCells(g *tile.Group) []string {
	line := ""
	if g.Site.Line != 0 {
		line = strconv.FormatInt(g.Site.Line, 10)
	}
	return []string{g.Label, g.Site.File, line, g.Site.Function}
}

var groupHeader = []string{"name", "file", "line", "function"}

func numbers(list ...int64) (out []string) {
	for _, n := range list {
		out = append(out, strconv.FormatInt(n, 10))
	}
	return out
}

func (q *question) sumsCSV() ([][]string, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	var sums []tile.Sum
	if q.text("table", "") == "at" {
		k, err := q.moment(d, "k")
		if err != nil {
			return nil, err
		}
		sums = b.Live(k)
	} else {
		from, to, err := q.stretch(d)
		if err != nil {
			return nil, err
		}
		sums = b.Made(from, to)
	}
	rows := [][]string{append(groupHeader[:4:4], "bytes", "count", "alive_at_snapshot_bytes", "freed_bytes", "pending_bytes", "peak_bytes")}
	for _, s := range sums {
		g := &b.Groups[s.Group]
		rows = append(rows, append(groupCells(g), numbers(s.Bytes, int64(s.Count), s.Kept, s.Bytes-s.Kept-s.Pending, s.Pending, g.Peak)...))
	}
	return rows, nil
}

func (q *question) diffCSV() ([][]string, error) {
	_, b, from, to, err := q.twoMoments()
	if err != nil {
		return nil, err
	}
	rows := [][]string{append(groupHeader[:4:4], "a_bytes", "b_bytes", "difference_bytes", "difference_count")}
	for _, c := range b.Changes(from, to) {
		rows = append(rows, append(groupCells(&b.Groups[c.Group]), numbers(c.A, c.B, c.Bytes(), int64(c.Count))...))
	}
	return rows, nil
}

func (q *question) bandsCSV() ([][]string, error) {
	_, b, err := q.grouped()
	if err != nil {
		return nil, err
	}
	rows := [][]string{append(groupHeader[:4:4], "fate", "peak_bytes", "allocations")}
	for _, x := range b.Bands {
		rows = append(rows, append(append(groupCells(&b.Groups[x.Group]), x.Fate.String()), numbers(x.Peak, int64(x.Allocs))...))
	}
	return rows, nil
}

func (q *question) stateCSV() ([][]string, error) {
	d, b, k, err := q.groupedAt()
	if err != nil {
		return nil, err
	}
	doc := d.state(b, k)
	rows := [][]string{append([]string{"segment", "pool", "stream", "offset", "size_bytes", "requested_bytes", "state"}, groupHeader...)}
	for _, g := range doc.Segments {
		for i := g.First; i < g.First+g.Blocks; i++ {
			x := &doc.Blocks
			row := append([]string{g.Address, g.Pool, fmt.Sprint(g.Stream)}, numbers(x.Offset[i], x.Size[i], x.Requested[i])...)
			row = append(row, map[byte]string{'a': "allocated", 'p': "pending", 'f': "free"}[x.State[i]])
			group := make([]string, len(groupHeader))
			if x.Group[i] != none {
				group = groupCells(&b.Groups[x.Group[i]])
			}
			rows = append(rows, append(row, group...))
		}
	}
	return rows, nil
}
