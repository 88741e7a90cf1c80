package compare

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

func TestProcessOf(t *testing.T) {
	for _, c := range []struct{ path, group, want string }{
		{"dumps/w16.default.rank2.step4.pickle", "", "rank2"},
		{"20250801-1004/periodic_rank0_pid881.pickle", "", "rank0 pid881"},
		{"snapshot_pid12.pickle", "", "pid12"},
		{"Rank-3.pickle", "", "rank3"},
		{"host1/step4.pickle", "", "host1"},
		{"crank4.pickle", "", "."},
		{"a/worker-7.step2.pickle", `worker-(\d+)`, "7"},
		{"a/worker-7.step2.pickle", `worker-\d+`, "worker-7"},
	} {
		var re *regexp.Regexp
		if c.group != "" {
			re = regexp.MustCompile(c.group)
		}
		if got := ProcessOf(c.path, re); got != c.want {
			t.Errorf("%s with %q: process %q, want %q", c.path, c.group, got, c.want)
		}
	}
}

func TestGroupOfOneProcessHasNoName(t *testing.T) {
	names, files := Group([]string{"d/step1.pickle", "d/step2.pickle"}, nil)
	if fmt.Sprint(names) != "[]" || len(files[""]) != 2 {
		t.Errorf("names %q, files %v", names, files)
	}
	names, _ = Group([]string{"rank10.pickle", "rank9.pickle"}, nil)
	if fmt.Sprint(names) != "[rank9 rank10]" {
		t.Errorf("names %q", names)
	}
}

func TestNatural(t *testing.T) {
	order := []string{"a", "step1", "step2", "step02.1", "step10", "step10.a", "t"}
	for i, a := range order {
		for j, b := range order {
			if got := Natural(a, b); got != (i < j) && a != b {
				t.Errorf("Natural(%q, %q) = %v", a, b, got)
			}
		}
	}
}

// file is a digest of one device.
func file(name string, d digest.Device) *digest.File {
	return &digest.File{Name: name, Devices: []digest.Device{d}}
}

// history is a device that has events alone.
func history(events int, end int64) digest.Device {
	return digest.Device{History: digest.History{Events: events, End: end}}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []*digest.File
		want  string
	}{
		{"by the end of the history", []*digest.File{
			file("a", history(3, 30)), file("b", history(2, 20)), file("c", history(1, 10)),
		}, "c b a"},
		{"by number without a history", []*digest.File{file("step10", digest.Device{}), file("step9", digest.Device{})}, "step9 step10"},
		{"one without a history keeps its place", []*digest.File{
			file("step4", history(9, 40)), file("step2", digest.Device{}), file("step3", history(3, 30)),
		}, "step2 step3 step4"},
		{"by length where events have no time", []*digest.File{file("b", history(5, 0)), file("a", history(9, 0))}, "b a"},
	} {
		var got []string
		for _, f := range NewProcess("", c.files).Files {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestSameAlloc(t *testing.T) {
	timed := func(start, end int64) digest.Device {
		return digest.Device{History: digest.History{HasTime: true, Events: 9, Start: start, End: end}}
	}
	complete := timed(150, 200)
	complete.Complete = true
	live := func(born int64, s stack.ID) digest.Live {
		return digest.Live{Addr: 512, Bytes: 64, Born: born, Stack: s}
	}
	for _, c := range []struct {
		name     string
		old, cur digest.Device
		a, b     digest.Live
		same     bool
	}{
		{"made at the same moment", timed(0, 100), timed(0, 200), live(50, 2), live(50, 2), true},
		{"freed and taken again", timed(0, 100), timed(0, 200), live(50, 2), live(150, 2), false},
		{"older than both recordings", timed(10, 100), timed(10, 200), live(-1, 0), live(-1, 0), true},
		{"older than the first recording, made again in the second", timed(10, 100), timed(10, 200), live(-1, 0), live(150, 2), false},
		{"history restarted, block still there", timed(0, 100), timed(90, 200), live(50, 2), live(-1, 2), true},
		{"a gap between the recordings", timed(0, 100), timed(150, 200), live(50, 2), live(-1, 2), true},
		{"another stack", timed(0, 100), timed(150, 200), live(50, 2), live(-1, 3), false},
		{"another process: it began empty", timed(0, 100), complete, live(50, 2), live(-1, 2), false},
		{"no times, same event of a growing history", history(5, 0), history(9, 0), live(3, 2), live(3, 2), true},
		{"no times, another event", history(5, 0), history(9, 0), live(3, 2), live(7, 2), false},
		{"state alone", digest.Device{}, digest.Device{}, live(-1, 2), live(-1, 2), true},
	} {
		if same := sameAlloc(&c.old, &c.cur, c.a, c.b); same != c.same {
			t.Errorf("%s: same %v", c.name, same)
		}
	}
	other := live(50, 2)
	other.Bytes++
	old := timed(0, 100)
	if sameAlloc(&old, &old, live(50, 2), other) {
		t.Error("allocations of different size are the same")
	}
}

func TestChainsAndRows(t *testing.T) {
	b := digest.NewBook()
	at := func(line int64) stack.ID {
		return b.Stacks.Intern([]stack.FrameID{b.Stacks.Frame(stack.Frame{File: "train.py", Line: line, Function: "f"}, nil)})
	}
	kept, temp := at(1), at(2)
	file := func(name string, end int64, live ...digest.Live) *digest.File {
		d := digest.Device{History: digest.History{HasTime: true, Events: int(end), Start: 1, End: end}}
		d.Live = live
		return file(name, d)
	}
	p := NewProcess("", []*digest.File{
		file("1", 100, digest.Live{Addr: 512, Bytes: 10, Born: 50, Stack: kept}, digest.Live{Addr: 1024, Bytes: 7, Born: 90, Stack: temp}),
		file("2", 200, digest.Live{Addr: 512, Bytes: 10, Born: 50, Stack: kept}, digest.Live{Addr: 1024, Bytes: 7, Born: 190, Stack: temp}, digest.Live{Addr: 2048, Bytes: 20, Born: 150, Stack: kept}),
		file("3", 300, digest.Live{Addr: 512, Bytes: 10, Born: 50, Stack: kept}, digest.Live{Addr: 2048, Bytes: 20, Born: 150, Stack: kept}, digest.Live{Addr: 4096, Bytes: 30, Born: 250, Stack: kept}),
	})
	rows := p.Rows(b)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	got := fmt.Sprint(rows[0].Site.Line, rows[0].Bytes, rows[0].Count, rows[0].Survivors, rows[0].PerStep())
	if want := "1 [10 30 60] [1 2 3] 1 25"; got != want {
		t.Errorf("kept: %s, want %s", got, want)
	}
	got = fmt.Sprint(rows[1].Site.Line, rows[1].Bytes, rows[1].Count, rows[1].Survivors)
	if want := "2 [7 7 0] [1 1 0] 0"; got != want {
		t.Errorf("temporaries: %s, want %s", got, want)
	}
	if got := p.Interval(0); got != 100 {
		t.Errorf("interval of %d events, want 100", got)
	}
}

func TestIdleIntervalIsNoCheckpoint(t *testing.T) {
	file := func(name string, events int) *digest.File {
		return file(name, digest.Device{History: digest.History{HasTime: true, Events: events, Start: 1, End: int64(events)}})
	}
	p := NewProcess("", []*digest.File{file("1", 100), file("2", 200), file("3", 300), file("4", 304)})
	if got := fmt.Sprint(p.Checkpoints(0)); got != "[0 1 3]" {
		t.Errorf("checkpoints %s: nothing happened between the last two files", got)
	}
}

// TestWork counts the steps between files where they were counted and all files are
// apart, otherwise events, but for those that mark a snapshot.
func TestWork(t *testing.T) {
	file := func(name string, events, marks int) *digest.File {
		return file(name, digest.Device{History: digest.History{HasTime: true, Events: events, Marks: marks, Start: 1, End: int64(events)}})
	}
	p := NewProcess("", []*digest.File{file("1", 100, 1), file("2", 101, 2), file("3", 202, 3), file("4", 403, 4)})
	if got := fmt.Sprint(p.Checkpoints(0)); got != "[1 2 3]" {
		t.Errorf("checkpoints %s: only the snapshot itself is between the first two files", got)
	}
	if got := fmt.Sprint(p.Work(0, []int{1, 2, 3})); got != "[0 100 200]" {
		t.Errorf("by events: %s", got)
	}
	p.About = &About{Steps: map[*digest.File]int{p.Files[1]: 0, p.Files[2]: 7, p.Files[3]: 9}}
	if got := fmt.Sprint(p.Work(0, []int{1, 2, 3})); got != "[0 7 2]" {
		t.Errorf("by steps: %s", got)
	}
	p.About.Steps[p.Files[3]] = 7
	if got := fmt.Sprint(p.Work(0, []int{1, 2, 3})); got != "[0 100 200]" {
		t.Errorf("where no step ended between two files: %s", got)
	}
	p.Files[3].Devices[0].RingFull = true
	if got := p.Work(0, []int{1, 2, 3}); got != nil {
		t.Errorf("where events are missing: %v", got)
	}
}

// open reads an example of the repository.
func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(filepath.Join("../..", "examples", path), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRunsMatchByPlace(t *testing.T) {
	before, after := NewRun(open(t, "image-leak/step-2.pickle")), NewRun(open(t, "image-leak/step-4.pickle"))
	changes := Runs(before, after)
	var end int64
	for _, c := range changes {
		end += c.EndAfter - c.EndBefore
	}
	if want := after.End - before.End; end != want {
		t.Errorf("the changes sum up to %d bytes, the runs differ by %d", end, want)
	}
	if top := changes[0]; top.Site.Function != "normalise" || top.EndAfter <= top.EndBefore {
		t.Errorf("the largest change is at %v", top.Site)
	}
	self := Runs(before, before)
	for _, c := range self {
		if c.PeakAfter != c.PeakBefore || c.EndAfter != c.EndBefore {
			t.Errorf("a run differs from itself at %v", c.Site)
		}
	}
}

// TestRowsKeepCausesApart holds that what lived before the recording is no row with what
// an autograd thread made, and that an allocation counts by what is known of it in any file.
func TestRowsKeepCausesApart(t *testing.T) {
	of := func(end int64, third timeline.Missing) *digest.File {
		d := history(9, end)
		d.Live = []digest.Live{
			{Addr: 0x1000, Bytes: 512, Born: -1, Missing: timeline.BeforeRecording},
			{Addr: 0x2000, Bytes: 1024, Born: -1, Stack: stack.Empty, Missing: timeline.AutogradThread},
			{Addr: 0x3000, Bytes: 2048, Born: -1, Missing: third},
		}
		return file(fmt.Sprint(end), d)
	}
	p := NewProcess("", []*digest.File{of(10, timeline.BeforeRecording), of(20, timeline.StacksOff)})
	got := map[string]string{}
	for _, r := range p.Rows(digest.NewBook()) {
		got[r.String()] = fmt.Sprint(r.Bytes)
	}
	want := map[string]string{"(before the recording)": "[512 512]", "(autograd thread)": "[1024 1024]", "(stacks off)": "[2048 2048]"}
	if !maps.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

// TestRunsKeepCausesApart holds that the causes of two runs are those of inspect.
func TestRunsKeepCausesApart(t *testing.T) {
	after := NewRun(open(t, "change/after.pickle.gz"))
	want := map[timeline.Missing]int64{}
	for _, s := range after.AtPeak {
		if s.Missing != "" {
			want[s.Missing] += s.Bytes
		}
	}
	if want[timeline.AutogradThread] == 0 {
		t.Fatal("the example has no memory of an autograd thread at its peak")
	}
	for _, c := range Runs(NewRun(open(t, "change/before.pickle.gz")), after) {
		if c.PeakAfter != want[c.Missing] && c.Missing != "" {
			t.Errorf("%v: %d bytes, want %d", c.Place, c.PeakAfter, want[c.Missing])
		}
	}
}
