package snapshot_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strandline/internal/test/live"
	"strandline/internal/test/synth"
	"strandline/stack"
	"strandline/torch/snapshot"
)

func written(t testing.TB, s *snapshot.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reread(t testing.TB, in []byte) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(bytes.NewReader(in), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Partial != nil {
		t.Fatalf("only a part is read: %v", s.Partial.Err)
	}
	return s
}

// TestWindowsPaths writes a path of Windows as it was recorded, whatever it is read
// as, beside fields of the frame that have no column.
func TestWindowsPaths(t *testing.T) {
	const file = `C:\\work\\train.py`
	in := `{"segments": [], "device_traces": [[
		{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 1, "frames": [{"filename": "` + file + `", "line": 3, "name": "step"}]},
		{"action": "alloc", "addr": 8192, "size": 512, "stream": 0, "time_us": 2, "frames": [{"filename": "` + file + `", "line": 4, "name": "step", "fx_node_op": "call"}]}]]}`
	s := reread(t, []byte(in))
	again := reread(t, written(t, s))
	for _, s := range []*snapshot.Snapshot{s, again} {
		for k := range 2 {
			id := s.Stacks.Frames(s.Traces[0].Stack[k])[0]
			want := stack.Frame{File: "C:/work/train.py", Line: int64(3 + k), Function: "step"}
			if s.Stacks.At(id) != want || s.Stacks.Recorded(id).File != `C:\work\train.py` {
				t.Errorf("event %d: read as %v, recorded as %v", k, s.Stacks.At(id), s.Stacks.Recorded(id))
			}
		}
	}
}

// content returns all that a snapshot holds, without the numbers by which its parts
// are shared.
func content(s *snapshot.Snapshot) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	stacks := make([]string, s.Stacks.Len())
	for id := range stacks {
		stacks[id] = frames(s, stack.ID(id))
	}
	trace := func(t *snapshot.Trace) {
		for k := range t.Len() {
			e := &t.Events
			say("%d %v %#x %d %d", t.Device, e.Action[k], e.Addr[k], e.Size[k], s.Stream(e.Stream[k]))
			out = append(out, stacks[e.Stack[k]])
			say("%v", t.Extra(k))
			if e.Time != nil {
				say("time %d", e.Time[k])
			}
			for _, column := range [][]snapshot.StringID{e.CompileContext, e.UserMetadata, e.Category} {
				if column != nil {
					say("%v %q", column[k] != 0, s.String(column[k]))
				}
			}
			if e.Pool != nil {
				say("pool %v", s.PoolOf(e.Pool[k]))
			}
		}
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		say("segment %d %#x %d %d %d %d", g.Device, g.Addr, g.TotalSize, g.AllocatedSize, g.ActiveSize, g.RequestedSize)
		say("%d %s %v %v %s %v", s.Stream(g.Stream), s.String(g.Type), s.PoolOf(g.Pool), g.Expandable, stacks[g.Stack], g.Extra)
		for _, b := range g.Blocks {
			say("block %#x %d %d %v %s", b.Addr, b.Size, b.Requested, b.State, stacks[b.Stack])
		}
	}
	say("%d traces", len(s.Traces))
	for i := range s.Traces {
		trace(&s.Traces[i])
	}
	for _, a := range s.Annotations {
		say("%s %v %d %d %v", a.Name, a.End, a.Device, a.Time, a.Extra)
	}
	if s.Settings != nil {
		say("%v", *s.Settings)
	}
	say("%v %v %v", s.Extra, s.UnknownKeys, s.Format.BareList)
	return out
}

func frames(s *snapshot.Snapshot, id stack.ID) string {
	var b strings.Builder
	fmt.Fprint(&b, id != stack.None)
	for _, f := range s.Stacks.Frames(id) {
		fmt.Fprint(&b, s.Stacks.At(f), s.FrameExtra(f))
	}
	return b.String()
}

func sameContent(t *testing.T, what string, a, b *snapshot.Snapshot) {
	t.Helper()
	x, y := content(a), content(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			t.Errorf("%s: line %d is\n%s\nwas\n%s", what, i, y[i], x[i])
			return
		}
	}
	if len(x) != len(y) {
		t.Errorf("%s: %d lines, were %d", what, len(y), len(x))
	}
}

// What is written and read again is the same, and so are the bytes from then on.
func roundTrip(t *testing.T, path string) {
	s, err := snapshot.Open(path, snapshot.Options{})
	if err != nil || s.Partial != nil {
		return
	}
	once := written(t, s)
	again := reread(t, once)
	sameContent(t, filepath.Base(path), s, again)
	if got, want := s.TorchVersion(), again.TorchVersion(); got != want {
		t.Errorf("%s: of PyTorch %s, then of %s", path, got, want)
	}
	if !bytes.Equal(once, written(t, again)) {
		t.Errorf("%s: the bytes differ when written again", path)
	}
}

func TestRoundTrip(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("testdata", "w*"))
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	for _, path := range files {
		roundTrip(t, path)
	}
}

func TestRoundTripCorpus(t *testing.T) {
	root := live.Given(t, "STRANDLINE_CORPUS")
	for _, folder := range []string{"torch", "wild"} {
		roundTripFolder(t, filepath.Join(root, folder))
	}
}

func roundTripFolder(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		const most = 20 << 20 // bytes
		if info, _ := os.Stat(path); err == nil && info != nil && info.Mode().IsRegular() && info.Size() < most {
			roundTrip(t, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWriteNew(t *testing.T) {
	s := reread(t, written(t, snapshot.New()))
	if got := s.TorchVersion(); got != "2.5–2.8" { // only events identify 2.8
		t.Errorf("an empty snapshot is of PyTorch %s", got)
	}
	if s.Settings == nil || s.Settings.MaxSplitSize != -1 || len(s.Settings.Roundup) != 16 || len(s.Traces) != 1 {
		t.Errorf("it has settings %+v and %d traces", s.Settings, len(s.Traces))
	}
}

// A snapshot made by a program has all keys of PyTorch 2.6, and keeps its
// values.
func TestWriteMade(t *testing.T) {
	s := synth.Trace(5000)
	s.Annotations = []snapshot.Annotation{{Name: "step", Device: 0, Time: 5}, {Name: "step", End: true, Time: 9}}
	s.Extra = []snapshot.Field{{Key: "rank", Value: 3}, {Key: "tags", Value: []any{"a", nil, 1.5, snapshot.Tuple{true}}}}
	again := reread(t, written(t, s))
	if len(again.Faults) > 0 || len(again.UnknownKeys) > 0 {
		t.Errorf("faults %q, unknown keys %q", again.Faults, again.UnknownKeys)
	}
	if got := again.TorchVersion(); got != "2.5–2.7" {
		t.Errorf("it is of PyTorch %s", got)
	}
	if !reflect.DeepEqual(s.Traces[0].Events.Addr, again.Traces[0].Events.Addr) || len(s.Segments) != len(again.Segments) {
		t.Error("events or segments differ")
	}
	want := []snapshot.Field{{Key: "rank", Value: int64(3)}, {Key: "tags", Value: []any{"a", nil, 1.5, snapshot.Tuple{true}}}}
	if !reflect.DeepEqual(again.Extra, want) {
		t.Errorf("user keys are %v", again.Extra)
	}
	if !bytes.Equal(written(t, again), written(t, reread(t, written(t, again)))) {
		t.Error("written again it differs")
	}
}

func TestWriteDevices(t *testing.T) {
	s := snapshot.New()
	one := synth.Trace(10).Traces[0]
	s.Traces = []snapshot.Trace{{Device: 2}}
	s.Traces[0].Events = snapshot.Events{
		Action: one.Action[:2], Addr: one.Addr[:2], Size: one.Size[:2], Stream: one.Stream[:2], Stack: make([]stack.ID, 2),
	}
	again := reread(t, written(t, s))
	if len(again.Traces) != 3 || again.Traces[2].Len() != 2 || again.Traces[2].Stack[0] != stack.None {
		t.Errorf("%d traces", len(again.Traces))
	}
}

func TestTraceSlice(t *testing.T) {
	s := readJSON(t, `{"segments": [], "device_traces": [[
		{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "time_us": 1},
		{"action": "dance", "addr": 2, "size": 1, "stream": 0, "time_us": 2},
		{"action": "alloc", "addr": 3, "size": 1, "time_us": 3}]]}`)
	part := s.Traces[0].Slice(1, 2)
	if part.Len() != 1 || part.Addr[0] != 2 || !reflect.DeepEqual(part.Extra(0), []snapshot.Field{{Key: "action", Value: "dance"}}) {
		t.Errorf("%+v with extra %v", part, part.Extra(0))
	}
	s.Traces[0] = s.Traces[0].Slice(2, 3)
	if again := reread(t, written(t, s)); again.Traces[0].Len() != 1 || again.Traces[0].Addr[0] != 3 {
		t.Error("the slice is written otherwise")
	}
}

func readJSON(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Partial != nil {
		t.Fatal(s.Partial.Err)
	}
	return s
}
