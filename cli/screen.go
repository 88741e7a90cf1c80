package cli

import (
	"bytes"
	"fmt"
	"io"

	"strandline/face/report"
)

// A screen draws lines on a terminal over those that it drew before. It changes
// no state of the terminal that would have to be restored.
type screen struct {
	out   io.Writer
	size  func() (columns, rows int)
	drawn []int // columns that each line takes
}

// screen is the terminal, nil where none can be drawn on: a command that is
// started writes on it, too.
func (g *globals) screen(o *traceOptions) *screen {
	e := g.env
	if !e.stdoutTerminal || g.json || g.printing.quiet || e.getenv("TERM") == "dumb" || len(o.command) > 0 {
		return nil
	}
	size := e.size
	if size == nil {
		size = func() (int, int) { return e.width, 0 }
	}
	return &screen{out: e.stdout, size: size}
}

// draw shows the lines that fit.
func (s *screen) draw(lines func(rows int) []string) {
	columns, rows := s.size()
	var b bytes.Buffer
	s.rise(&b, columns)
	for _, line := range lines(rows) {
		line, used := report.Fit(line, max(0, columns-1)) // the last column makes some terminals wrap
		b.WriteString(line)
		b.WriteString("\x1b[K\n")
		s.drawn = append(s.drawn, used)
	}
	b.WriteString("\x1b[J")
	s.out.Write(b.Bytes())
}

// clear takes away what was drawn.
func (s *screen) clear() {
	if len(s.drawn) == 0 {
		return
	}
	var b bytes.Buffer
	columns, _ := s.size()
	s.rise(&b, columns)
	b.WriteString("\x1b[J")
	s.out.Write(b.Bytes())
}

// rise goes back to the first line that was drawn. In a terminal that became
// narrower since, lines take more rows than they did.
func (s *screen) rise(b *bytes.Buffer, columns int) {
	rows := 0
	for _, used := range s.drawn {
		rows++
		if columns > 0 {
			rows += max(0, used-1) / columns
		}
	}
	if b.WriteByte('\r'); rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
	s.drawn = nil
}
