package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A terminal is what a user sees: it supports the few sequences that are used, and
// wraps lines that are too long.
type terminal struct {
	columns  int
	rows     [][]rune
	row, col int
}

func (t *terminal) Write(b []byte) (int, error) {
	text := string(b)
	for len(text) > 0 {
		var n int
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			t.rows = t.rows[:t.row+1]
			t.rows[t.row] = t.rows[t.row][:min(t.col, len(t.rows[t.row]))]
			text = text[3:]
		case strings.HasPrefix(text, "\x1b[K"):
			t.rows[t.row] = t.rows[t.row][:min(t.col, len(t.rows[t.row]))]
			text = text[3:]
		case scan(text, "\x1b[%dA", &n):
			t.row = max(0, t.row-n)
			text = text[strings.IndexByte(text, 'A')+1:]
		case text[0] == '\r':
			t.col, text = 0, text[1:]
		case text[0] == '\n':
			t.next()
			text = text[1:]
		default:
			r := []rune(text)[0]
			t.put(r)
			text = text[len(string(r)):]
		}
	}
	return len(b), nil
}

func scan(text, format string, n *int) bool {
	_, err := fmt.Sscanf(text, format, n)
	return err == nil
}

func (t *terminal) next() {
	if t.row, t.col = t.row+1, 0; t.row == len(t.rows) {
		t.rows = append(t.rows, nil)
	}
}

func (t *terminal) put(r rune) {
	if t.col == t.columns {
		t.next()
	}
	line := append(t.rows[t.row], []rune(strings.Repeat(" ", max(0, t.col+1-len(t.rows[t.row]))))...)
	line[t.col] = r
	t.rows[t.row] = line
	t.col++
}

// narrow makes the terminal narrower: its lines are rewrapped.
func (t *terminal) narrow(columns int) {
	old := t.rows
	t.columns, t.rows, t.row, t.col = columns, [][]rune{nil}, 0, 0
	for i, line := range old {
		for _, r := range line {
			t.put(r)
		}
		if i < len(old)-1 {
			t.next()
		}
	}
}

func (t *terminal) String() string {
	var lines []string
	for _, r := range t.rows {
		lines = append(lines, string(r))
	}
	return strings.Join(lines, "\n")
}

// What was drawn is drawn over, however long the lines are and however the
// terminal changes; what was above it stays.
func TestScreen(t *testing.T) {
	term := &terminal{columns: 20, rows: [][]rune{nil}}
	fmt.Fprint(term, "$ trace\n")
	s := &screen{out: term, size: func() (int, int) { return term.columns, 24 }}
	frame := func(lines ...string) { s.draw(func(int) []string { return lines }) }
	frame("one", "a line that is much longer than the terminal is wide", "three")
	frame("1", "a line that is longer", "", "4")
	if got, want := term.String(), "$ trace\n1\na line that is long\n\n4\n"; got != want {
		t.Fatalf("the screen shows\n%s\nwant\n%s", got, want)
	}
	term.narrow(8)
	frame("narrow and long", "\x1b[2Jend")
	if got, want := term.String(), "$ trace\nnarrow \n\ufffd[2Jend\n"; got != want {
		t.Fatalf("the screen shows\n%s\nwant\n%s", got, want)
	}
	s.clear()
	s.clear()
	if got, want := term.String(), "$ trace\n"; got != want {
		t.Errorf("in the end the screen shows\n%s\nwant\n%s", got, want)
	}
}

// A screen is used only on a terminal, where nothing else writes.
func TestScreenOrNot(t *testing.T) {
	for _, c := range []struct {
		terminal, json bool
		term           string
		command        []string
		want           bool
	}{
		{true, false, "xterm", nil, true},
		{true, true, "xterm", nil, false},
		{false, false, "xterm", nil, false},
		{true, false, "dumb", nil, false},
		{true, false, "xterm", []string{"sleep"}, false},
	} {
		var out bytes.Buffer
		g := &globals{json: c.json, env: &Env{stdout: &out, stdoutTerminal: c.terminal, getenv: func(string) string { return c.term }}}
		if got := g.screen(&traceOptions{command: c.command}) != nil; got != c.want {
			t.Errorf("%+v: a screen is there: %v", c, got)
		}
	}
}
