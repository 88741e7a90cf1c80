package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
)

// A watchTerminal shows a watch on a terminal, with keys and mouse.
type watchTerminal struct {
	program *tea.Program
	done    chan struct{}
	// interrupted is known when done is closed: it was ended by Ctrl-C, not by q.
	interrupted bool
	found       []finding.Finding
	rows        map[sample.ID]samples.Row
	next        time.Time // when these are made again
}

// terminal begins to draw; nil where that is not possible. End is called when the user
// ends it.
func (g *globals) terminal(end context.CancelFunc) *watchTerminal {
	e := g.env
	in, ok := e.stdin.(*os.File)
	if g.printing.quiet || !e.stdoutTerminal || e.getenv("TERM") == "dumb" || !ok || !isTerminal(in) {
		return nil
	}
	out := e.stdout
	if o, ok := out.(*outlet); ok { // the size is that of the file itself
		out = o.w
	}
	m := &watchModel{style: g.style(), mappings: smapsOf, screen: report.WatchScreen{Order: report.Orders[0]}}
	t := &watchTerminal{
		program: tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler()),
		done:    make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		defer end()
		if _, err := t.program.Run(); err != nil {
			g.warn("the terminal cannot be drawn on: %v", err)
		}
		t.interrupted = m.interrupted
	}()
	return t
}

// framesPerSecond is how often the screen is looked at for changes: often enough for keys,
// and rarely enough that it does not cost more than the samples.
const framesPerSecond = 10

// sampleMsg is a sample and what was found by then.
type sampleMsg struct {
	sample   *sample.Sample
	findings []finding.Finding
	rows     map[sample.ID]samples.Row
}

func (t *watchTerminal) sample(s *sample.Sample, w *samples.Watch) error {
	if began := time.Now(); !began.Before(t.next) {
		t.found = w.Current()
		t.rows = w.Rows(t.found)
		t.next = began.Add(pause(time.Since(began)))
	}
	t.program.Send(sampleMsg{s, t.found, t.rows})
	return nil
}

// close gives the terminal back.
func (t *watchTerminal) close() {
	t.program.Quit()
	<-t.done
}

// mappingsMsg are the mappings of the process that is looked at.
type mappingsMsg struct {
	id  sample.ID
	all []procfs.Usage
	err error
}

func smapsOf(id sample.ID) ([]procfs.Usage, error) { return procfs.Process(id.PID).Smaps() }

// A watchModel is what is shown, and what the keys do.
type watchModel struct {
	screen        report.WatchScreen
	style         report.Style
	columns, rows int
	mappings      func(sample.ID) ([]procfs.Usage, error)
	interrupted   bool
}

// mappingsEvery is the time between readings of the mappings that are looked at: each
// takes the kernel some microseconds a mapping.
const mappingsEvery = 5 * time.Second

// Init begins with nothing.
func (m *watchModel) Init() tea.Cmd { return nil }

// View draws the screen.
func (m *watchModel) View() tea.View {
	v := tea.NewView(strings.Join(m.screen.Lines(m.style, m.rows, m.columns), "\n"))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	return v
}

// Update applies a key, the mouse, a sample or another size.
func (m *watchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.columns, m.rows = msg.Width, msg.Height
		m.move(0)
	case sampleMsg:
		m.screen.Sample, m.screen.Findings, m.screen.Rows = msg.sample, msg.findings, msg.rows
		m.move(0)
	case mappingsMsg:
		return m, m.mapped(msg)
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			m.scroll(-1)
		} else {
			m.scroll(1)
		}
	case tea.MouseClickMsg:
		if p := m.screen.ProcessAt(msg.Y); p != nil {
			if m.screen.Selected == p.ID() {
				return m, m.open()
			}
			m.screen.Selected = p.ID()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *watchModel) key(name string) tea.Cmd {
	if m.screen.Typing && name != "ctrl+c" {
		m.typed(name)
		return nil
	}
	if m.screen.Help && name != "ctrl+c" && name != "q" {
		m.screen.Help = false
		return nil
	}
	switch name {
	case "q", "ctrl+c":
		m.interrupted = name == "ctrl+c"
		return tea.Quit
	case "up", "k":
		m.scroll(-1)
	case "down", "j":
		m.scroll(1)
	case "pgup":
		m.scroll(-max(m.rows-5, 1))
	case "pgdown", "space":
		m.scroll(max(m.rows-5, 1))
	case "enter", "right", "l":
		return m.open()
	case "esc", "left", "h", "backspace":
		if m.screen.Detail == nil && name == "esc" {
			m.screen.Filter = ""
		}
		m.screen.Detail = nil
	case "s":
		m.sort(1)
	case "S":
		m.sort(-1)
	case "t":
		m.screen.Tree = !m.screen.Tree
	case "/":
		m.screen.Typing = m.screen.Detail == nil
	case "?":
		m.screen.Help = true
	}
	m.move(0)
	return nil
}

// sort sorts by the column that follows, or that is before.
func (m *watchModel) sort(by int) {
	n := len(report.Orders)
	m.screen.Order = report.Orders[(slices.Index(report.Orders, m.screen.Order)+by+n)%n]
}

// typed changes the filter.
func (m *watchModel) typed(name string) {
	f := &m.screen.Filter
	switch name {
	case "enter":
		m.screen.Typing = false
	case "esc":
		m.screen.Typing, *f = false, ""
	case "backspace":
		_, last := utf8.DecodeLastRuneInString(*f)
		*f = (*f)[:len(*f)-last]
	case "space":
		*f += " "
	default:
		if utf8.RuneCountInString(name) == 1 {
			*f += name
		}
	}
	m.move(0)
}

// scroll moves the lines of a process, or the cursor.
func (m *watchModel) scroll(by int) {
	if d := m.screen.Detail; d != nil {
		d.Scrolled = max(d.Scrolled+by, 0)
		return
	}
	m.move(by)
}

// move moves the cursor, and what is shown with it.
func (m *watchModel) move(by int) {
	all := m.screen.Processes()
	if len(all) == 0 {
		return
	}
	at := max(slices.IndexFunc(all, func(p *sample.Process) bool { return p.ID() == m.screen.Selected }), 0)
	at = min(max(at+by, 0), len(all)-1)
	m.screen.Selected = all[at].ID()
	room := m.screen.Room(m.rows)
	m.screen.Top = min(max(m.screen.Top, at-room+1), at)
}

// open looks at the process under the cursor.
func (m *watchModel) open() tea.Cmd {
	if m.screen.Detail != nil || m.screen.Selected == (sample.ID{}) {
		return nil
	}
	m.screen.Detail = &report.WatchDetail{ID: m.screen.Selected}
	return m.read(m.screen.Selected)
}

func (m *watchModel) read(id sample.ID) tea.Cmd {
	return func() tea.Msg {
		all, err := m.mappings(id)
		return mappingsMsg{id, all, err}
	}
}

// mapped takes mappings that were read, and has them read again after a while.
func (m *watchModel) mapped(msg mappingsMsg) tea.Cmd {
	d := m.screen.Detail
	if d == nil || d.ID != msg.id {
		return nil
	}
	if d.Problem = ""; msg.err != nil {
		d.Problem = "they cannot be read: " + describe(msg.err)
		return nil
	}
	if d.Before == nil {
		d.Before = msg.all
	}
	d.Now = msg.all
	again := m.read(msg.id)
	return tea.Tick(mappingsEvery, func(time.Time) tea.Msg { return again() })
}
