package export_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	_ "modernc.org/sqlite" // the driver

	"strandline/face/export"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// eachSnapshot runs a test with each of the snapshots of real programs.
func eachSnapshot(t *testing.T, f func(t *testing.T, s *snapshot.Snapshot)) {
	t.Helper()
	files, err := filepath.Glob("../../torch/snapshot/testdata/w*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { f(t, open(t, filepath.Base(file))) })
	}
}

func open(t testing.TB, name string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open("../../torch/snapshot/testdata/"+name, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write returns what a format makes of a snapshot.
func write(t testing.TB, s *snapshot.Snapshot, format func(w *bytes.Buffer) error) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	if err := format(&out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// requested is the sum over the devices.
func requested(s *snapshot.Snapshot) (bytes int64) {
	for _, d := range timeline.FactsOf(s).Devices {
		bytes += d.RequestedBytes
	}
	return bytes
}

func TestPprof(t *testing.T) {
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		p, err := profile.Parse(write(t, s, func(w *bytes.Buffer) error { return export.Pprof(w, s) }))
		if err != nil {
			t.Fatal(err)
		}
		var got, want [4]int64
		for _, sample := range p.Sample {
			for i, v := range sample.Value {
				got[i] += v
			}
			if len(sample.Label["device"]) != 1 || len(sample.Label["stream"]) != 1 || len(sample.Location) == 0 {
				t.Errorf("sample %v", sample)
			}
		}
		for _, line := range timeline.FactsOf(s).Lines {
			want[0] += int64(len(line.Allocs))
			for i := range line.Allocs {
				want[1] += line.Size(i)
			}
		}
		for i := range s.Segments {
			for _, b := range s.Segments[i].Blocks {
				if b.State.Active() {
					want[2]++
				}
			}
		}
		want[3] = requested(s)
		if got != want {
			t.Errorf("sums %v, want %v", got, want)
		}
	})
}

func TestFolded(t *testing.T) {
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		var sum int64
		for line := range strings.Lines(write(t, s, func(w *bytes.Buffer) error { return export.Folded(w, s) }).String()) {
			i := strings.LastIndexByte(line, ' ')
			n, err := strconv.ParseInt(strings.TrimSpace(line[i:]), 10, 64)
			if err != nil || i < 1 {
				t.Errorf("line %q: %v", line, err)
			}
			sum += n
		}
		if want := requested(s); sum != want {
			t.Errorf("%d bytes, want %d", sum, want)
		}
	})
}

// hostile is a snapshot whose names have what formats part fields with.
func hostile() *snapshot.Snapshot {
	s := snapshot.New()
	frame := s.Stacks.Frame(stack.Frame{File: "a;b\n,\"c\".py", Line: 3, Function: "f;\xffg\r\n"}, nil)
	id := s.Stacks.Intern([]stack.FrameID{frame})
	s.Traces[0].Events = snapshot.Events{
		Action: []snapshot.Action{snapshot.SegmentAlloc, snapshot.Alloc, snapshot.OOM}, Addr: []uint64{1 << 63, 1 << 63, 77},
		Size: []int64{2 << 20, 1000, 5}, Stream: make([]snapshot.StreamID, 3), Stack: []stack.ID{stack.None, id, stack.Empty},
	}
	s.Segments = []snapshot.Segment{{Addr: 1 << 63, TotalSize: 2 << 20, Blocks: []snapshot.Block{
		{Addr: 1 << 63, Size: 1024, Requested: 1000, Stack: id, State: snapshot.Allocated},
		{Addr: 1<<63 + 1024, Size: 1024, Requested: 900, State: snapshot.Pending},
		{Addr: 1<<63 + 2048, Size: 2<<20 - 2048, Requested: 7},
	}}}
	return s
}

func TestHostileNames(t *testing.T) {
	s := hostile()
	const want = "f,\uFFFDg   (a,b ,\"c\".py:3) 1000\n(before the recording) 900\n"
	if got := write(t, s, func(w *bytes.Buffer) error { return export.Folded(w, s) }).String(); got != want {
		t.Errorf("folded %q, want %q", got, want)
	}
	rows := table(t, s)
	if r := rows[2]; r["function"] != "f;\uFFFDg\n" || r["file"] != "a;b\n,\"c\".py" || r["addr"] != "0x8000000000000000" || r["time_us"] != "" {
		t.Errorf("row %q", r)
	}
	if r := rows[3]; r["addr"] != "" || r["device_free"] != "77" || r["action"] != "oom" || r["file"] != "" || r["stack"] != "" {
		t.Errorf("row %q", r)
	}
	db := database(t, s)
	for query, want := range map[string]string{
		"select function from live_by_site limit 1":                     "f;\uFFFDg\r\n",
		"select bytes from live_by_site where file is null":             "900",
		"select count(*) from blocks where requested_size is null":      "1",
		"select count(*) from events where time_us is null":             "3",
		"select device_free from ooms":                                  "77",
		"select addr from events where action = 'alloc'":                "-9223372036854775808",
		"select free_bytes + largest + releasable from free_by_segment": strconv.Itoa(2 * (2<<20 - 2048)),
	} {
		if got := ask(t, db, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if _, err := profile.Parse(write(t, s, func(w *bytes.Buffer) error { return export.Pprof(w, s) })); err != nil {
		t.Error(err)
	}
}

// table is the CSV of a snapshot by line, the header left out, and by column.
func table(t testing.TB, s *snapshot.Snapshot) map[int]map[string]string {
	t.Helper()
	rows, err := csv.NewReader(write(t, s, func(w *bytes.Buffer) error { return export.CSV(w, s) })).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]map[string]string{}
	for i, row := range rows[1:] {
		out[i+1] = map[string]string{}
		for j, name := range rows[0] {
			out[i+1][name] = row[j]
		}
	}
	return out
}

func TestCSV(t *testing.T) {
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		rows := table(t, s)
		n := 0
		for _, d := range s.Devices() {
			for k := range d.Trace.Action {
				n++
				r := rows[n]
				if r["device"] != strconv.Itoa(d.Index) || r["event"] != strconv.Itoa(k) || r["action"] != d.Trace.Action[k].String() ||
					r["size"] != strconv.FormatInt(d.Trace.Size[k], 10) || r["file"] != s.Stacks.Site(d.Trace.Stack[k]).File {
					t.Fatalf("row %d: %q", n, r)
				}
			}
		}
		if len(rows) != n {
			t.Errorf("%d rows for %d events", len(rows), n)
		}
	})
}

// writeDatabase makes a file that is the snapshot as a database.
func writeDatabase(ctx context.Context, file string, s *snapshot.Snapshot) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	return export.SQLite(ctx, out, s)
}

// database is the snapshot as a database that is open.
func database(t testing.TB, s *snapshot.Snapshot) *sql.DB {
	t.Helper()
	file := filepath.Join(t.TempDir(), "100% of it? #1.db")
	if err := writeDatabase(t.Context(), file, s); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 || left[0] != file {
		t.Errorf("files %q", left)
	}
	in, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(plain, in, 0o666); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// ask is the one answer to a query, "" for null.
func ask(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var out sql.NullString
	if err := db.QueryRow(query).Scan(&out); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out.String
}

func TestSQLite(t *testing.T) {
	eachSnapshot(t, func(t *testing.T, s *snapshot.Snapshot) {
		db := database(t, s)
		if got := ask(t, db, "pragma integrity_check"); got != "ok" {
			t.Error(got)
		}
		number := func(query string) int64 {
			n, _ := strconv.ParseInt(ask(t, db, query), 10, 64)
			return n
		}
		for _, d := range timeline.FactsOf(s).Devices {
			at := " where device = " + strconv.Itoa(d.Device)
			events := 0
			if d.Events != nil {
				events = *d.Events
			}
			for query, want := range map[string]int64{
				"select sum(reserved_bytes) from totals" + at:  d.ReservedBytes,
				"select sum(allocated_bytes) from totals" + at: d.AllocatedBytes,
				"select sum(active_bytes) from totals" + at:    d.ActiveBytes,
				"select sum(requested_bytes) from totals" + at: d.RequestedBytes,
				"select sum(bytes) from live_by_site" + at:     d.RequestedBytes,
				"select sum(total_size) from segments" + at:    d.ReservedBytes,
				"select count(*) from blocks" + at:             int64(d.Blocks),
				"select count(*) from events" + at:             int64(events),
			} {
				if got := number(query); got != want {
					t.Errorf("%s: %d, want %d", query, got, want)
				}
			}
		}
		for query, want := range map[string]int64{
			"select count(*) from stacks":                                        int64(s.Stacks.Len() - 2),
			"select count(*) from stack_lines":                                   number("select sum(depth) from stacks"),
			"select count(*) from annotations":                                   int64(len(s.Annotations)),
			"select count(*) from free_by_segment where free_bytes > total_size": 0,
		} {
			if got := number(query); got != want {
				t.Errorf("%s: %d, want %d", query, got, want)
			}
		}
	})
}

// TestGolden compares small files with what they were.
func TestGolden(t *testing.T) {
	s := open(t, "w07_streams_pools.default.pending.pickle")
	for name, format := range map[string]func(w *bytes.Buffer) error{
		"pending.folded": func(w *bytes.Buffer) error { return export.Folded(w, s) },
		"pending.csv":    func(w *bytes.Buffer) error { return export.CSV(w, s) },
		"redacted.folded": func(w *bytes.Buffer) error {
			return export.Folded(w, export.Redact(s, export.Paths|export.Names))
		},
	} {
		got, file := write(t, s, format).Bytes(), filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, got\n%s", name, err, got)
		}
	}
}

// An interrupted export states so.
func TestSQLiteInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	file := filepath.Join(t.TempDir(), "out.db")
	if err := writeDatabase(ctx, file, hostile()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
