package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"strandline/stack"
	"strandline/torch/pickle"
	"strandline/torch/snapshot"
)

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// One moment, in the form of each writer, is the same snapshot.
func TestWritersAgree(t *testing.T) {
	open := func(name string) *snapshot.Snapshot {
		s, err := snapshot.Open(filepath.Join("testdata", "w21_writers."+name), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := open("reference.train.pickle")
	if want.Traces[0].Len() == 0 || len(want.Segments) == 0 {
		t.Fatal("the reference is empty")
	}
	for _, c := range []struct {
		name, encoding, compression string
		protocol                    int
	}{
		{"reference.train.pickle", "pickle", "", 4},
		{"cpp.train.pickle", "pickle", "", 2},
		{"cpp_zstd.train.pickle.zst", "pickle", "zstd", 2},
		{"protocol0.train.pickle", "pickle", "", 0},
		{"protocol1.train.pickle", "pickle", "", 1},
		{"protocol2.train.pickle", "pickle", "", 2},
		{"protocol3.train.pickle", "pickle", "", 3},
		{"protocol5.train.pickle", "pickle", "", 5},
		{"gzip.train.pickle.gz", "pickle", "gzip", 4},
		{"zstd.train.pickle.zst", "pickle", "zstd", 4},
		{"json.train.snapshot.json", "json", "", -1},
		{"json_gzip.train.snapshot.json.gz", "json", "gzip", -1},
	} {
		s := open(c.name)
		f := s.Format
		if f.Encoding != c.encoding || f.Compression != c.compression || f.Protocol != c.protocol || f.BareList {
			t.Errorf("%s: the format is %+v", c.name, f)
		}
		if s.Partial != nil || len(s.Faults) > 0 || len(s.UnknownKeys) > 0 {
			t.Errorf("%s: %v %q %q", c.name, s.Partial, s.Faults, s.UnknownKeys)
		}
		sameContent(t, c.name, want, s)
	}
	list := open("list.train.pickle")
	if !list.Format.BareList || list.HasHistory() || len(list.Traces) > 0 {
		t.Errorf("the bare list has format %+v and %d traces", list.Format, len(list.Traces))
	}
	list.Traces, list.Annotations, list.Settings, list.Format = want.Traces, want.Annotations, want.Settings, want.Format
	list.Strings, list.Streams = want.Strings, want.Streams
	if got, want := len(list.Segments), len(want.Segments); got != want {
		t.Errorf("the bare list has %d segments, not %d", got, want)
	}
}

func TestOpenStandardInput(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "w21_writers.gzip.train.pickle.gz"))
	if err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	os.Stdin = f
	defer func() { os.Stdin = stdin; f.Close() }()
	s, err := snapshot.Open("-", snapshot.Options{})
	if err != nil || s.Name != "-" || s.Traces[0].Len() == 0 {
		t.Errorf("%v", err)
	}
}

func TestProgress(t *testing.T) {
	in := testFile(t, "w04_graph_leak.default.iter20.pickle")
	var last int64
	_, err := snapshot.Read(bytes.NewReader(in), snapshot.Options{Progress: func(n int64) error {
		if n < last {
			t.Errorf("%d bytes after %d", n, last)
		}
		last = n
		return nil
	}})
	if err != nil || last != int64(len(in)) {
		t.Errorf("%d of %d bytes: %v", last, len(in), err)
	}
}

func TestNotASnapshot(t *testing.T) {
	var emptyGzip bytes.Buffer
	gzip.NewWriter(&emptyGzip).Close()
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "is empty"},
		{"nothing in gzip", emptyGzip.String(), "is empty"},
		{"LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"},
		{"zip", "PK\x03\x04....", "zip"},
		{"web page", "<!DOCTYPE html>", "web page"},
		{"text", "hello", `begins with "hello"`},
		{"a number", "\x80\x04K\x01.", "neither segments nor traces"},
		{"a dict of something else", "\x80\x04}\x8c\x01aK\x01s.", "neither segments nor traces"},
		{"a list of something else", "\x80\x04]K\x01a.", "neither segments nor traces"},
		{"JSON of something else", `{"a": 1}`, "neither segments nor traces"},
		{"JSON text", `["a"]`, "neither segments nor traces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := snapshot.Read(strings.NewReader(c.in), snapshot.Options{Name: "some.pickle"})
			if !errors.Is(err, snapshot.ErrNotSnapshot) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "some.pickle") {
				t.Errorf("error is %v", err)
			}
		})
	}
	for name, path := range map[string]string{"folder": "testdata", "no file": filepath.Join("testdata", "nothing")} {
		if _, err := snapshot.Open(path, snapshot.Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := snapshot.Read(strings.NewReader("\x80\x04cos\nsystem\n."), snapshot.Options{})
	var unsafe *pickle.UnsafeError
	if !errors.As(err, &unsafe) {
		t.Errorf("code: error is %v", err)
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("the disk is on fire")
	in := testFile(t, "w21_writers.reference.train.pickle")
	for _, n := range []int{0, 3000} {
		s, err := snapshot.Read(&failing{in[:n], broken}, snapshot.Options{})
		if err == nil && s.Partial != nil {
			err = s.Partial.Err
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes the error is %v", n, err)
		}
	}
}

type failing struct {
	rest []byte
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, f.err
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func counts(s *snapshot.Snapshot) (segments, blocks, events int) {
	for i := range s.Segments {
		blocks += len(s.Segments[i].Blocks)
	}
	for i := range s.Traces {
		events += s.Traces[i].Len()
	}
	return len(s.Segments), blocks, events
}

// Of a longer part of a file at least as much is read, and never a panic.
func TestTruncated(t *testing.T) {
	for _, c := range []struct {
		name string
		step int
	}{
		{"w07_streams_pools.default.pending.pickle", 1},
		{"w21_writers.cpp.train.pickle", 3},
		{"w21_writers.list.train.pickle", 1},
		{"w21_writers.protocol0.train.pickle", 41},
		{"w21_writers.reference.train.pickle", 7},
		{"w21_writers.json.train.snapshot.json", 101},
		{"w21_writers.gzip.train.pickle.gz", 3},
		{"w21_writers.zstd.train.pickle.zst", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := testFile(t, c.name)
			var segments, blocks, events int
			for n := 1; n < len(in); n += c.step {
				s, err := snapshot.Read(bytes.NewReader(in[:n]), snapshot.Options{Size: int64(n)})
				if err != nil {
					if segments+events > 0 {
						t.Fatalf("%d bytes: %v, but less of the file was read", n, err)
					}
					continue
				}
				if s.Partial == nil {
					if tail := in[n:]; len(bytes.Trim(tail, "\n ")) > 0 && s.Format.Compression == "" {
						t.Fatalf("%d of %d bytes are read as the whole", n, len(in))
					}
					continue
				}
				g, b, e := counts(s)
				if g < segments || b < blocks || e < events {
					t.Fatalf("%d bytes: %d segments, %d blocks, %d events, but less of the file gave %d, %d, %d", n, g, b, e, segments, blocks, events)
				}
				segments, blocks, events = g, b, e
			}
			const zstd = ".zst" // which has the whole file in one block
			if segments == 0 && filepath.Ext(c.name) != zstd {
				t.Error("no part of the file is read")
			}
		})
	}
}

func TestDamaged(t *testing.T) {
	for _, name := range []string{"w10_nothing.default.state.pickle", "w07_streams_pools.default.pending.pickle"} {
		in := testFile(t, name)
		step := 1 + len(in)/800
		for i := 0; i < len(in); i += step {
			for _, mask := range []byte{1, 4, 32, 128, 255, ']' ^ in[i], '0' ^ in[i]} {
				damaged := bytes.Clone(in)
				damaged[i] ^= mask
				if s, err := snapshot.Read(bytes.NewReader(damaged), snapshot.Options{}); err == nil {
					s.Write(&counting{})
					content(s)
				}
			}
		}
	}
}

// Few bytes cannot unfold to many, by sharing or by declared sizes.
func TestReadBoundsMemory(t *testing.T) {
	var bomb strings.Builder // a list of two of a list of two of …, as an extra of 3000 events
	bomb.WriteString("\x80\x04}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces](](]\x94")
	for i := range 19 {
		fmt.Fprintf(&bomb, "](h%[1]ch%[1]ce\x94", i)
	}
	bomb.WriteString("0000000000000000000" + "0") // the lists
	for range 3000 {
		bomb.WriteString("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00sizeK\x01X\x01\x00\x00\x00bh\x13u")
	}
	bomb.WriteString("eeu.")
	for name, in := range map[string]string{
		"lists that unfold":   bomb.String(),
		"JSON nested deep":    strings.Repeat("[", 1_000_000),
		"JSON numbers":        `{"segments": [` + strings.Repeat("1,", 500_000) + "1]}",
		"number of 1 MB":      `{"segments": [], "x": ` + strings.Repeat("9", 1_000_000) + "}",
		"tuples":              "\x80\x04](" + strings.Repeat(")", 60_000) + "e.",
		"memo far apart":      "\x80\x04]" + farPuts(50_000) + ".",
		"gzip of a long text": squeezed(strings.Repeat(" ", 50<<20)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := snapshot.Read(strings.NewReader(in), snapshot.Options{Size: int64(len(in))})
		if name == "lists that unfold" && (err != nil || s.Partial != nil || len(s.Traces[0].Extra(2999)) != 1) {
			t.Errorf("%s: not read: %v", name, err)
		}
		if err == nil {
			w := &counting{}
			if err := s.Write(w); err != nil || w.n > 100*int64(len(in))+10_000 {
				t.Errorf("%s: %d bytes are written as %d: %v", name, len(in), w.n, err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > readBound(len(in)) {
			t.Errorf("%s: %d bytes of input make it allocate %d (%v)", name, len(in), got, err)
		}
	}
}

// readBound returns what reading and writing n bytes may allocate.
func readBound(n int) uint64 { return 64<<20 + 1000*uint64(n) }

func farPuts(n int) string {
	var b strings.Builder
	for i := range n {
		at := uint32(i) << 14
		fmt.Fprintf(&b, "r%s", []byte{byte(at), byte(at >> 8), byte(at >> 16), byte(at >> 24)})
	}
	return b.String()
}

func squeezed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

const frame = `{"name": "main", "filename": "train.py", "line": 3}`

// round reads JSON text, writes it as a pickle and reads that: both must be
// equal.
func round(t *testing.T, text string) *snapshot.Snapshot {
	t.Helper()
	s := readJSON(t, text)
	again := reread(t, written(t, s))
	sameContent(t, "written and read", s, again)
	return again
}

func TestSynthetic113(t *testing.T) {
	s := round(t, `[{"device": 0, "address": 2097152, "total_size": 2097152, "allocated_size": 512, "active_size": 512,
		"stream": 0, "segment_type": "small", "blocks": [
		{"size": 512, "state": "active_allocated", "history": [{"addr": 2097152, "real_size": 500, "frames": [`+frame+`]},
			{"addr": 2097152, "real_size": 400}]},
		{"size": 2096640, "state": "inactive"}]}]`)
	if !s.Format.BareList || s.TorchVersion() != "1.13" {
		t.Errorf("format %+v, version %s", s.Format, s.TorchVersion())
	}
	b := s.Segments[0].Blocks
	if b[0].Addr != 2097152 || b[0].Requested != 500 || len(s.Stacks.Frames(b[0].Stack)) != 1 || b[1].Addr != 2097152+512 {
		t.Errorf("blocks %+v", b)
	}
	if text := string(written(t, s)); strings.Contains(text, "requested_size") || !strings.Contains(text, "history") {
		t.Error("the keys of 1.13 are not those written")
	}
}

func entry(more string) string {
	return `{"action": "alloc", "addr": 4096, "size": 512, "stream": 7, "time_us": 1700000000000000` + more + `}`
}

func trace(events ...string) string {
	return `{"segments": [], "device_traces": [[` + strings.Join(events, ",") + `]]}`
}

func TestSyntheticPools(t *testing.T) {
	s := round(t, trace(entry(`, "pool_id": [0, 0]`), entry(`, "pool_id": [0, 3]`), entry(``)))
	e := s.Traces[0].Events
	if len(e.Pool) != 3 || e.Pool[0] == 0 || s.PoolOf(e.Pool[1]) != (snapshot.Pool{User: 3}) || e.Pool[2] != 0 {
		t.Errorf("pools %v of %v", e.Pool, s.Pools)
	}
	if s.Stream(e.Stream[0]) != 7 {
		t.Errorf("streams %v of %v", e.Stream, s.Streams)
	}
}

func TestSyntheticHost(t *testing.T) {
	s := round(t, `{"segments": [], "device_traces": [[]], "host_segments": [{"device": 0, "address": 4096, "total_size": 512,
		"blocks": [{"address": 4096, "size": 512, "state": "inactive"}]}], "host_traces": [[`+entry("")+`]]}`)
	d := s.Devices()
	if len(d) != 1 || d[0].Index != snapshot.Host || len(s.Segments) != 1 || len(s.Segments[0].Blocks) != 1 || d[0].Trace.Len() != 1 {
		t.Errorf("devices %+v, segments %+v", d, s.Segments)
	}
	if s.Traces[0].Len() != 0 {
		t.Error("host memory is taken for the device's")
	}
}

func TestSyntheticAnnotate(t *testing.T) {
	s := round(t, trace(entry(""), `{"action": "annotate", "addr": 4096, "size": 0, "stream": 0, "user_metadata": "weights", "frames": []}`))
	e := s.Traces[0].Events
	if e.Action[1] != snapshot.Annotate || s.String(e.UserMetadata[1]) != "weights" || e.UserMetadata[0] != 0 {
		t.Errorf("%+v", e)
	}
	if e.Stack[0] != stack.None || e.Stack[1] != stack.Empty {
		t.Errorf("no frames and none recorded are the same: %v", e.Stack)
	}
}

func TestSyntheticForwardFrames(t *testing.T) {
	s := round(t, trace(entry(`, "forward_frames": ["File \"a.py\", line 1, in f"], "internal_metadata": "x"`)))
	want := []snapshot.Field{
		{Key: "forward_frames", Value: []any{`File "a.py", line 1, in f`}}, {Key: "internal_metadata", Value: "x"},
	}
	if got := s.Traces[0].Extra(0); !reflect.DeepEqual(got, want) || len(s.UnknownKeys) > 0 {
		t.Errorf("extra %v, unknown %q", got, s.UnknownKeys)
	}
}

func TestSyntheticFX(t *testing.T) {
	fx := `{"name": "forward", "filename": "<eval_with_key>.0", "line": 7, "fx_node_op": "call_function", "fx_node_name": "relu"}`
	s := round(t, trace(entry(`, "frames": [`+fx+`, `+frame+`]`), entry(`, "frames": [`+fx+`, `+frame+`]`)))
	e := s.Traces[0].Events
	ids := s.Stacks.Frames(e.Stack[0])
	if e.Stack[0] != e.Stack[1] || len(ids) != 2 || len(s.FrameExtra(ids[0])) != 2 || s.FrameExtra(ids[1]) != nil {
		t.Errorf("stacks %v with frames %v", e.Stack, ids)
	}
}

func TestSyntheticProfiler(t *testing.T) {
	s := round(t, `{"segments": [{"address": null, "device": 0, "total_size": 0, "stream": 0, "blocks": []},
		{"address": 4096, "device": 1, "total_size": 1024, "stream": 0, "blocks": [
			{"size": 512, "state": "inactive"}, {"address": 4608, "requested_size": 512, "size": 512, "state": "active_allocated"}]}],
		"device_traces": [[], [{"action": "alloc", "addr": 4608, "size": 512, "stream": 0, "category": "parameter",
			"frames": [{"name": "x", "filename": "none", "line": 0}]}]]}`)
	if s.TorchVersion() != "profiler" || s.String(s.Traces[1].Category[0]) != "parameter" || s.Traces[1].Time != nil {
		t.Errorf("version %s, events %+v", s.TorchVersion(), s.Traces[1].Events)
	}
	if b := s.Segments[1].Blocks; b[0].Addr != 4096 || b[1].Addr != 4608 {
		t.Errorf("blocks %+v", b)
	}
	if x := s.Segments[0].Extra; !reflect.DeepEqual(x, []snapshot.Field{{Key: "address", Value: nil}}) {
		t.Errorf("the address None is kept as %v", x)
	}
}

// An address of 2^63 or more is a long integer in Python's pickles and a
// negative one in those of C++.
func TestSyntheticHighAddress(t *testing.T) {
	const addr = 1<<63 | 4096
	for _, number := range []string{"9223372036854779904", "-9223372036854771712"} {
		s := round(t, strings.ReplaceAll(trace(entry("")), "4096", number))
		if got := s.Traces[0].Addr[0]; got != addr || len(s.Faults) > 0 {
			t.Errorf("%s is read as %d, %q", number, got, s.Faults)
		}
		in := string(written(t, s))
		if wide := strings.Contains(in, "\x8a\x09"); wide != (number[0] != '-') {
			t.Errorf("%s is not written as it was", number)
		}
	}
}

func TestSyntheticOOM(t *testing.T) {
	s := round(t, trace(`{"action": "oom", "device_free": 777, "size": 512, "stream": 0}`,
		`{"action": "oom", "addr": 5, "size": 512, "stream": 0}`,
		`{"action": "alloc", "addr": 5, "device_free": 6, "size": 512, "stream": 0}`,
		`{"action": "user_defined", "size": 0}`))
	tr := &s.Traces[0]
	if tr.DeviceFree(0) != 777 || tr.Action[3] != snapshot.OtherAction || len(tr.Extra(2)) != 1 || len(tr.Extra(0)) != 0 {
		t.Errorf("%+v", tr)
	}
}

// What is not a number, text or list where one is expected is kept and reported.
func TestSyntheticOddValues(t *testing.T) {
	s := round(t, `{"segments": [{"device": 0, "address": 4096, "total_size": "big", "stream": null, "is_expandable": 3,
		"segment_pool_id": [1], "frames": 5, "blocks": [{"address": "x", "size": 1.5, "state": "strange", "history": 1}]}],
		"device_traces": [[{"action": "alloc", "addr": null, "size": "1", "stream": [], "time_us": null, "frames": null,
			"user_metadata": {"a": 1}, "pool_id": 3}, `+entry("")+`]],
		"external_annotations": [{"name": 1, "stage": "MIDDLE"}]}`)
	if len(s.Faults) == 0 {
		t.Error("there is no note")
	}
	extra := s.Traces[0].Extra(0)
	if len(extra) != 7 {
		t.Errorf("kept of the event: %v", extra)
	}
}

func TestSyntheticDevices(t *testing.T) {
	s := round(t, `{"segments": [`+segmentJSON(1)+`,`+segmentJSON(3)+`], "device_traces": [[], [], [`+entry("")+`], []]}`)
	var got []int
	for _, d := range s.Devices() {
		got = append(got, d.Index)
	}
	if !reflect.DeepEqual(got, []int{1, 2, 3}) || len(s.Traces) != 4 {
		t.Errorf("devices %v", got)
	}
}

func segmentJSON(device int) string {
	return fmt.Sprintf(`{"device": %d, "address": 4096, "total_size": 512, "blocks": [{"address": 4096, "size": 512, "state": "inactive"}]}`, device)
}

// A user's own keys are kept, even where a value looks like a record.
func TestSyntheticUserKeys(t *testing.T) {
	s := round(t, `{"segments": [], "device_traces": [], "rank": 3, "name": "run", "stage": "train", "action": "go",
		"big": 123456789012345678901234567890, "ratio": 0.5, "list": [1, "a", null, true, []],
		"meta": {"name": "x", "filename": "y.pt"}, "state": {"state": "ok", "size": 3, "rank": 1},
		"old": {"device_traces": [[`+entry(`, "frames": [`+frame+`]`)+`]], "segments": [`+segmentJSON(0)+`]},
		"who": {"stage": "START", "name": "me"}, "empty": {}, "stack": [`+frame+`,`+frame+`]}`)
	got := map[any]any{}
	for _, f := range s.Extra {
		got[f.Key] = f.Value
	}
	n, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	sorted := func(v any) string { return fmt.Sprint(v) }
	for key, want := range map[string]any{
		"rank": int64(3), "name": "run", "stage": "train", "action": "go", "big": n, "ratio": 0.5,
		"list":  []any{int64(1), "a", nil, true, []any{}},
		"meta":  []snapshot.Field{{Key: "name", Value: "x"}, {Key: "filename", Value: "y.pt"}},
		"state": []snapshot.Field{{Key: "size", Value: int64(3)}, {Key: "state", Value: "ok"}, {Key: "rank", Value: int64(1)}},
		"who":   []snapshot.Field{{Key: "stage", Value: "START"}, {Key: "name", Value: "me"}},
		"empty": []snapshot.Field{},
	} {
		if sorted(got[key]) != sorted(want) && key != "state" || got[key] == nil {
			t.Errorf("%s is %v, not %v", key, got[key], want)
		}
	}
	if text := fmt.Sprint(got["old"], got["state"], got["stack"]); strings.Contains(text, "{}") || !strings.Contains(text, "train.py") ||
		!strings.Contains(text, "1700000000000000") || !strings.Contains(text, "ok") {
		t.Errorf("records among the user's keys are %s", text)
	}
}

func TestSyntheticHandMade(t *testing.T) {
	e := entry("")
	for name, text := range map[string]string{
		"time from the second event on": trace(`{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "x": 1}`, e),
		"time 0":                        trace(`{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "time_us": 0}`, e),
		"time of one device": `{"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1, "stream": 0}],
			[` + e + `], [{"action": "alloc", "addr": 2, "size": 1, "stream": 0}]]}`,
		"strange entries":      trace(e, `3`, e),
		"empty history":        `[{"device": 0, "address": 1, "total_size": 1, "blocks": [{"size": 1, "state": "inactive", "history": []}]}]`,
		"no blocks":            `[{"device": 0, "address": 1, "total_size": 1}]`,
		"awaiting":             `[{"device": 0, "total_size": 1, "blocks": [{"size": 1, "state": "active_awaiting_free"}]}]`,
		"history and frames":   `[{"device": 0, "total_size": 1, "blocks": [{"size": 1, "state": "inactive", "frames": [` + frame + `], "history": [{"addr": 1, "real_size": 1, "more": 2}]}]}]`,
		"no segments":          `{"device_traces": [[` + e + `]]}`,
		"settings of a kind":   `{"segments": [], "allocator_settings": {"max_split_size": 5, "new": [1]}}`,
		"settings are missing": `{"segments": [], "allocator_settings": null, "external_annotations": 5}`,
		"frame without a line": trace(entry(`, "frames": [{"name": "f", "filename": "a.py"}, {"name": null, "filename": "b", "line": "3"}]`)),
	} {
		t.Run(name, func(t *testing.T) { round(t, text) })
	}
}

// However slowly the input arrives, the same is read.
func TestReadInPieces(t *testing.T) {
	for _, name := range []string{"w21_writers.reference.train.pickle", "w21_writers.gzip.train.pickle.gz", "w21_writers.json.train.snapshot.json"} {
		in := testFile(t, name)
		s, err := snapshot.Read(iotest.OneByteReader(bytes.NewReader(in)), snapshot.Options{})
		if err != nil || s.Partial != nil {
			t.Fatal(name, err)
		}
		sameContent(t, name, reread(t, in), s)
	}
}

// TestOtherJSONIsNotHeld reads a log in JSON to where it is known to be no snapshot, and a
// segment whose blocks take as much.
func TestOtherJSONIsNotHeld(t *testing.T) {
	in := &io.LimitedReader{R: endless(`{"msg": "step 1 of 2, loss 1.25"}, `), N: 1 << 40}
	_, err := snapshot.Read(io.MultiReader(strings.NewReader(`{"cells": [`), in), snapshot.Options{})
	if !errors.Is(err, snapshot.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	if read := 1<<40 - in.N; read > 16<<20 {
		t.Errorf("%d bytes were read", read)
	}
	const blocks = 180_000
	segment := strings.Replace(segmentJSON(0), `"blocks": [`, `"blocks": [`+strings.Repeat(`{"address": 4096, "size": 0, "state": "inactive"},`, blocks), 1)
	s, err := snapshot.Read(strings.NewReader("["+segment+"]"), snapshot.Options{Size: 1 << 30})
	if err != nil || len(s.Segments) != 1 || s.Partial != nil {
		t.Errorf("a segment with many blocks: %v", err)
	}
}

// endless is a text over and over.
func endless(text string) io.Reader { return &repeat{text: text} }

type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
