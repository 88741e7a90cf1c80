package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"strandline/face/report"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
)

// madeSample is a moment of a trainer that leaks tensors, a server and a zombie.
func madeSample(n int) *sample.Sample {
	size := func(n int64) *int64 { n <<= 20; return &n }
	leak := int64(8000 + 20*n)
	container := "0123456789ab"
	d := sample.Device{Index: 0, UUID: "GPU-a", Used: size(leak + 9500), Free: size(80000 - leak - 9500), Total: size(80000), Processes: []sample.Holding{}}
	d.Processes = []sample.Holding{{PID: 4242, Used: size(leak + 1500), Owner: sample.Live}, {PID: 4300, Used: size(7900), Owner: sample.Live}}
	d.Account()
	return &sample.Sample{
		Time: time.Date(2026, 11, 22, 12, 0, n, 0, time.UTC), Seconds: float64(n), Devices: []sample.Device{d},
		Groups: []sample.Group{{Name: "/jobs", Used: size(3000), Limit: size(64000)}},
		Processes: []sample.Process{
			{
				PID: 4242, Started: 1, Name: "python", Command: "python train.py --config large.yaml", State: "running", Container: &container, Group: "/jobs",
				Host:    &sample.Host{Anonymous: 2 << 30, File: 300 << 20, Shared: 64 << 20},
				Devices: []sample.DeviceShare{{Device: 0, Used: size(leak + 1500), Allocated: size(leak), Cached: size(500), Other: size(1000)}},
			},
			{
				PID: 4300, Started: 1, Name: "vllm", Command: "vllm serve", State: "sleeping", Group: "/jobs", Pod: "llm-0",
				Host:     &sample.Host{Anonymous: 4 << 30, File: 900 << 20},
				Devices:  []sample.DeviceShare{{Device: 0, Used: size(7900)}},
				Pausable: []sample.Tag{{Tag: "kv cache", Bytes: 3 << 30, State: "paused", Backup: "none"}, {Tag: "weights", Bytes: 2 << 30, Held: 1 << 30, State: "partial", Backup: "pinned", BackupBytes: 1 << 30}},
			},
			{PID: 4301, Parent: 4300, Started: 1, Name: "helper", Command: "helper\x1b[2J", State: sample.Zombie, Devices: []sample.DeviceShare{}},
		},
	}
}

// terminalModel is the model after a watch of count samples.
func terminalModel(count int) *watchModel {
	m := &watchModel{screen: report.WatchScreen{Order: "device"}, mappings: func(id sample.ID) ([]procfs.Usage, error) {
		if id.PID == 4300 {
			return nil, errors.New("permission denied")
		}
		return []procfs.Usage{
			{Mapping: procfs.Mapping{Start: 0x7f0000000000, End: 0x7f0004000000}, RSS: 60 << 20},
			{Mapping: procfs.Mapping{Start: 0x5500000000, End: 0x5500100000, Path: "/usr/bin/python3.11"}, RSS: 1 << 20},
		}, nil
	}}
	m.Update(tea.WindowSizeMsg{Width: 150, Height: 30})
	w := samples.New()
	for n := range count {
		w.Add(madeSample(n))
	}
	found := w.Findings()
	m.Update(sampleMsg{madeSample(count), found, w.Rows(found)})
	return m
}

func screenOf(m *watchModel) string {
	var b strings.Builder
	for line := range strings.Lines(m.View().Content + "\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// press sends keys and what they cause, once.
func press(t *testing.T, m *watchModel, keys ...rune) {
	t.Helper()
	for _, k := range keys {
		_, cmd := m.Update(tea.KeyPressMsg{Code: k, Text: textOf(k)})
		if cmd != nil {
			if msg, ok := cmd().(mappingsMsg); ok {
				m.Update(msg)
			}
		}
	}
}

func textOf(k rune) string {
	if k >= ' ' && k < 0x7f {
		return string(k)
	}
	return ""
}

// TestWatchScreens compares what is drawn with the files in testdata/watch.
func TestWatchScreens(t *testing.T) {
	empty := &watchModel{screen: report.WatchScreen{Order: "device"}}
	empty.Update(tea.WindowSizeMsg{Width: 60, Height: 5})
	overview, detail, forbidden, narrow, other := terminalModel(60), terminalModel(60), terminalModel(60), terminalModel(60), terminalModel(60)
	press(t, detail, tea.KeyEnter)
	grown := append([]procfs.Usage{}, detail.screen.Detail.Now...)
	grown[0].Start -= 1 << 20 // the kernel joined a new mapping to it
	grown[0].RSS += 1 << 20
	detail.Update(mappingsMsg{id: detail.screen.Detail.ID, all: grown})
	press(t, forbidden, 'j', tea.KeyEnter)
	narrow.Update(tea.WindowSizeMsg{Width: 40, Height: 6})
	press(t, other, 's', tea.KeyDown, tea.KeyDown)
	tree, filter, keys := terminalModel(60), terminalModel(60), terminalModel(60)
	press(t, tree, 't')
	press(t, filter, '/', 'V', 'l', 'l', 'm', tea.KeyEnter)
	press(t, keys, '?')
	sized := map[string]*watchModel{}
	for _, columns := range []int{60, 80, 120} {
		m := terminalModel(60)
		m.Update(tea.WindowSizeMsg{Width: columns, Height: 12})
		sized[fmt.Sprint("columns-", columns)] = m
		for line := range strings.Lines(screenOf(m)) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("%d columns: %d: %s", columns, n, line)
			}
		}
		if text := strings.Join(strings.Fields(screenOf(m)), " "); !strings.Contains(text, "allocated +1.17 GiB a minute, full in 40 min 45 s to 1 h 4 min") {
			t.Errorf("%d columns: the verdict is missing:\n%s", columns, text)
		}
	}
	for name, m := range sized {
		sameAsFile(t, "testdata/watch/"+name+".txt", screenOf(m))
	}
	for name, m := range map[string]*watchModel{"tree": tree, "filter": filter, "keys": keys, "empty": empty, "overview": overview, "detail": detail, "forbidden": forbidden, "narrow": narrow, "by-host": other} {
		sameAsFile(t, "testdata/watch/"+name+".txt", screenOf(m))
	}
}

func TestWatchKeys(t *testing.T) {
	m := terminalModel(20)
	if m.screen.Selected.PID != 4242 {
		t.Fatalf("the cursor begins on %v", m.screen.Selected)
	}
	press(t, m, tea.KeyUp, 'j', 'j', 'j', 'j')
	if m.screen.Selected.PID != 4301 {
		t.Errorf("at the end the cursor is on %v", m.screen.Selected)
	}
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if m.screen.Selected.PID != 4300 {
		t.Errorf("the wheel moves it to %v", m.screen.Selected)
	}
	m.Update(tea.MouseClickMsg{Y: 3})
	if m.screen.Selected.PID != 4242 || m.screen.Detail != nil {
		t.Errorf("a click moves it to %v", m.screen.Selected)
	}
	if _, cmd := m.Update(tea.MouseClickMsg{Y: 3}); cmd == nil || m.screen.Detail == nil {
		t.Error("a second click does not open it")
	}
	press(t, m, tea.KeyEscape)
	if m.screen.Detail != nil {
		t.Error("Esc does not close it")
	}
	m.Update(tea.MouseClickMsg{Y: 25}) // on no process
	late := mappingsMsg{id: sample.ID{PID: 4242, Started: 1}}
	if _, cmd := m.Update(late); cmd != nil || m.screen.Detail != nil {
		t.Error("mappings of a process that was closed are used")
	}
	for _, k := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := m.Update(k)
		if cmd == nil {
			t.Fatalf("%s does not end it", k)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not end it", k)
		}
	}
}

// TestWatchScrolls follows the cursor through more processes than there is room for, in
// sizes down to none.
func TestWatchScrolls(t *testing.T) {
	m := terminalModel(3)
	s := madeSample(0)
	for i := range 100 {
		s.Processes = append(s.Processes, sample.Process{PID: 5000 + i, Started: 1, Command: fmt.Sprint("p", i), Devices: []sample.DeviceShare{}})
	}
	m.Update(sampleMsg{sample: s})
	for _, size := range []int{30, 8, 3, 1, 0} {
		m.Update(tea.WindowSizeMsg{Width: 80, Height: size})
		for range 120 {
			m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			m.View()
		}
		if size >= 8 && !strings.Contains(m.View().Content, fmt.Sprint(m.screen.Selected.PID)) {
			t.Errorf("the cursor is not on a screen of %d rows", size)
		}
		for range 120 {
			m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
		}
		if m.screen.Top != 0 {
			t.Errorf("at the top, %d processes are above a screen of %d rows", m.screen.Top, size)
		}
	}
}

// BenchmarkWatchScreen is what a sample of 200 processes that grow costs on a terminal,
// but for what the terminal's own library takes to find what changed.
func BenchmarkWatchScreen(b *testing.B) {
	w := samples.New()
	at := func(n int) *sample.Sample {
		s := madeSample(n)
		for pid := range 200 {
			p := s.Processes[0]
			p.PID, p.Command = 5000+pid, fmt.Sprintf("python worker.py --rank %d", pid)
			s.Processes = append(s.Processes, p)
		}
		return s
	}
	const samples = 600
	for n := range samples {
		w.Add(at(n))
	}
	found, s := w.Current(), at(samples)
	m := terminalModel(0)
	m.Update(tea.WindowSizeMsg{Width: 180, Height: 50})
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			w.Rows(found)
		}
	})
	rows := w.Rows(found)
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			m.Update(sampleMsg{s, found, rows})
			m.View()
		}
	})
}
