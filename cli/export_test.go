package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"strandline/face/api"
	"strandline/internal/test/live"
	"strandline/torch/snapshot"
)

const (
	oneDevice  = "../torch/snapshot/testdata/w07_streams_pools.default.mempool.pickle"
	twoDevices = "../torch/snapshot/testdata/w09_two_devices.default.end.pickle"
)

// exportFile runs the command with an output file and returns what it wrote there.
func exportFile(t *testing.T, args ...string) (s *snapshot.Snapshot, stdout, stderr string, code int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.pickle")
	stdout, stderr, code = run(append([]string{"export", "--to", "pickle", "-o", file}, args...)...)
	if code == exitOK || code == exitPartial {
		var err error
		if s, err = snapshot.Open(file, snapshot.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if names, _ := filepath.Glob(file + "?*"); names != nil {
		t.Errorf("left behind: %v", names)
	}
	return s, stdout, stderr, code
}

func TestExportCuts(t *testing.T) {
	live.Sequential(t)
	s, stdout, stderr, code := exportFile(t, "--events", "5:20", oneDevice)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, ": 15 events, ") {
		t.Fatalf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if n := s.Traces[0].Len(); n != 15 || s.Faults != nil {
		t.Errorf("%d events, %v", n, s.Faults)
	}
	at := func(file, event string) (out struct {
		At struct {
			Requested   int64 `json:"requested_bytes"`
			Reserved    int64 `json:"reserved_bytes"`
			Allocations int   `json:"allocations"`
		} `json:"at"`
	}) {
		stdout, stderr, _ := run("inspect", file, "--at", event, "--json")
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatal(err, stderr)
		}
		return out
	}
	file := filepath.Join(t.TempDir(), "part.pickle")
	stdout, stderr, _ = run("export", oneDevice, "--to", "pickle", "--events", "5:20", "--output", file, "--json")
	if got, want := at(file, "14"), at(oneDevice, "19"); got != want || got.At.Requested == 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var doc api.Export
	info, err := os.Stat(file)
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &doc)); err != nil {
		t.Fatal(err, stderr)
	}
	if want := (api.Export{Schema: "strandline.export/1", File: file, Format: "pickle", Events: 15, Segments: len(s.Segments), Bytes: info.Size()}); doc != want {
		t.Errorf("got %+v, want %+v", doc, want)
	}
}

func TestExportRanges(t *testing.T) {
	live.Sequential(t)
	for _, c := range []struct {
		args   string
		events [2]int // by device
	}{
		{"", [2]int{122, 150}},
		{"--device 1", [2]int{0, 150}},
		{"--device 0", [2]int{122, 0}},
		{"--device 1 --events 100:", [2]int{0, 50}},
		{"--device 1 --events :100", [2]int{0, 100}},
		{"--device 1 --events :", [2]int{0, 150}},
		{"--device 0 --events 122:", [2]int{0, 0}},
		{"--device 0 --events 7:7", [2]int{0, 0}},
	} {
		s, _, stderr, code := exportFile(t, append(strings.Fields(c.args), twoDevices)...)
		if code != exitOK {
			t.Errorf("%s: exit status %d: %s", c.args, code, stderr)
			continue
		}
		var got [2]int
		for i := range s.Traces {
			got[i] = s.Traces[i].Len()
		}
		if got != c.events || s.Faults != nil {
			t.Errorf("%s: events %v, want %v; %v", c.args, got, c.events, s.Faults)
		}
		for _, g := range s.Segments {
			if strings.Contains(c.args, "--device") && !strings.Contains(c.args, "--device "+string(rune('0'+g.Device))) {
				t.Errorf("%s: a segment of device %d", c.args, g.Device)
			}
		}
	}
}

func TestExportRefuses(t *testing.T) {
	live.Sequential(t)
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ args, want string }{
		{"", "--to FORMAT is missing; formats: pickle, pprof, folded, csv, sqlite, perfetto"},
		{"--to svg", "--to svg: unknown format; formats: pickle, pprof, folded, csv, sqlite, perfetto"},
		{"--to pickle", "-o FILE is missing"},
		{"--to pickle -o OUT --redact all", "--redact all: want paths, names or both"},
		{"--to sqlite -o -", "--to sqlite needs a file"},
		{"--to sqlite -o /dev/null", "/dev/null: not a regular file"},
		{"--to sqlite -o OUT/no/where", "no/where: there is no folder"},
		{"--to pickle -o - --json", "both write to standard output"},
		{"--to pickle -o OUT --events 3", "--events 3: want A:B"},
		{"--to pickle -o OUT --events 3:x", "--events 3:x: want A:B"},
		{"--to pickle -o OUT --events=-3:5", "--events -3:5: want A:B"},
		{"--to pickle -o OUT --events 9:5", "the last event is before the first"},
		{"--to pickle -o OUT --events 9:12", "has events of the devices 0, 1; choose one with --device"},
		{"--to pickle -o OUT --events 9:500 --device 1", "event 499 is outside the history of device 1, which has events 0 to 149"},
		{"--to pickle -o OUT --events 500: --device 1", "event 499 is outside the history of device 1, which has events 0 to 149"},
		{"--to pickle -o OUT --device 7", "has nothing about device 7"},
		{"--to pickle -o OUT --device -7", "devices are numbered from 0"},
		{"--to pickle -o OUT/no/where", "no/where: there is no folder"},
		{"--to pickle -o OUT ../torch/snapshot", "is a directory; export takes one file"},
	} {
		args := append([]string{"export"}, strings.Fields(strings.ReplaceAll(c.args, "OUT", out))...)
		if !strings.Contains(c.args, "../torch") {
			args = append(args, twoDevices)
		}
		stdout, stderr, code := run(args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %q, %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("it wrote a file")
	}
	if _, stderr, code := run("export", "--to", "pickle", "--events", "0:1", "-o", out,
		"../torch/snapshot/testdata/w21_writers.list.train.pickle"); code != exitUsage || !strings.Contains(stderr, "has no events") {
		t.Errorf("of a bare list: exit status %d, %q", code, stderr)
	}
}

func TestExportToStandardOutput(t *testing.T) {
	live.Sequential(t)
	var out, messages bytes.Buffer
	env := &Env{args: []string{"export", oneDevice, "--to", "pickle", "-o", "-"}, stdout: &out, stderr: &messages,
		getenv: func(string) string { return "" }}
	if code := Main(env); code != exitOK || messages.Len() > 0 {
		t.Fatalf("exit status %d: %s", code, messages.String())
	}
	if s, err := snapshot.Read(&out, snapshot.Options{}); err != nil || s.Traces[0].Len() == 0 {
		t.Error(err)
	}
	env.stdoutTerminal = true
	if code := Main(env); code != exitUsage || out.Len() > 0 || !strings.Contains(messages.String(), "terminal") {
		t.Errorf("on a terminal: exit status %d: %s", code, messages.String())
	}
}

// What is read in part is written whole.
func TestExportSalvages(t *testing.T) {
	live.Sequential(t)
	whole, err := os.ReadFile(oneDevice)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut.pickle")
	if err := os.WriteFile(file, whole[:len(whole)*2/3], 0o666); err != nil {
		t.Fatal(err)
	}
	s, stdout, stderr, code := exportFile(t, file)
	if code != exitPartial || !strings.Contains(stderr, "only partly readable") || !strings.Contains(stdout, "wrote") {
		t.Fatalf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if s.Partial != nil || s.Traces[0].Len() == 0 {
		t.Errorf("%v, %d events", s.Partial, s.Traces[0].Len())
	}
}

// Every form of a file becomes the same pickle, except for pool ids, which JSON
// has as lists.
func TestExportConverts(t *testing.T) {
	live.Sequential(t)
	for _, name := range []string{"json.train.snapshot.json", "json_gzip.train.snapshot.json.gz", "zstd.train.pickle.zst", "list.train.pickle"} {
		s, _, stderr, code := exportFile(t, "../torch/snapshot/testdata/w21_writers."+name)
		if code != exitOK || s.Format.String() != "pickle, protocol 4" || len(s.Segments) == 0 || s.Faults != nil {
			t.Errorf("%s: exit status %d: %+v, %s", name, code, s, stderr)
		}
	}
}

// An output that fails leaves what was there before.
func TestCreateLeavesNothing(t *testing.T) {
	live.Sequential(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	g := &globals{env: &Env{}}
	write := func(ctx context.Context, text string, fail error) (int64, error) {
		return g.create(ctx, file, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		})
	}
	if n, err := write(t.Context(), "before", nil); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	broken := errors.New("broken")
	if _, err := write(t.Context(), "after", broken); !errors.Is(err, broken) {
		t.Error(err)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	if _, err := write(interrupted, "after", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); string(text) != "before" {
		t.Errorf("%q, %v", text, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("out", link); err != nil {
		live.Missing(t, "symbolic links", err)
	}
	file = link
	if _, err := write(t.Context(), "after", nil); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out")); string(text) != "after" {
		t.Errorf("behind a link: %q, %v", text, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

// Every format is written, cut and redacted, and contains the same figures.
func TestExportFormats(t *testing.T) {
	live.Sequential(t)
	for _, f := range formats {
		for _, more := range []string{"", "--device 1 --events 10:100", "--redact both", "--device 0 --redact names"} {
			file := filepath.Join(t.TempDir(), "out")
			args := append([]string{"export", twoDevices, "--to", f.name, "-o", file, "--json"}, strings.Fields(more)...)
			stdout, stderr, code := run(args...)
			var doc api.Export
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exitOK {
				t.Fatalf("%v: exit status %d, %v, %s", args, code, err, stderr)
			}
			data, err := os.ReadFile(file)
			if err != nil || doc.Format != f.name || doc.Bytes != int64(len(data)) || len(data) == 0 {
				t.Errorf("%v: %+v, %d bytes, %v", args, doc, len(data), err)
			}
			if names, _ := filepath.Glob(file + "?*"); names != nil {
				t.Errorf("%v: left behind: %v", args, names)
			}
			if strings.HasSuffix(more, "both") && bytes.Contains(data, []byte("w09_two_devices")) {
				t.Errorf("%v: a path is left", args)
			}
		}
	}
}

// What is redacted is diagnosed as before.
func TestExportRedactedIsDiagnosedAlike(t *testing.T) {
	live.Sequential(t)
	verdicts := func(files ...string) (out struct {
		Verdict  string
		Findings []struct {
			Kind, Severity string
			Bytes          *int64
			Count          *int
		}
	}) {
		stdout, stderr, _ := run(append([]string{"diagnose", "--json"}, files...)...)
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatal(err, stderr)
		}
		return out
	}
	for _, example := range []string{"image-leak", "autograd-graph", "cache"} {
		files, _ := filepath.Glob("../examples/" + example + "/*.pickle*")
		var redacted []string
		dir := t.TempDir()
		for _, f := range files {
			name := filepath.Join(dir, filepath.Base(f))
			if _, stderr, code := run("export", f, "--to", "pickle", "--redact", "both", "-o", name); code != exitOK {
				t.Fatal(stderr)
			}
			redacted = append(redacted, name)
		}
		got, want := verdicts(redacted...), verdicts(files...)
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if len(files) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s: %s, want %s", example, a, b)
		}
	}
}

// shownQuery is a query that docs/export.md shows, and its answer.
var shownQuery = regexp.MustCompile("(?m)^\\$ sqlite3 step-4.db \"([^\"]*)\"\n((?:[^`$].*\n)*)")

// TestExportQueries asks the database what the documentation asks.
func TestExportQueries(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	page, err := os.ReadFile("docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "step-4.db")
	if _, stderr, code := run("export", "examples/image-leak/step-4.pickle", "--to", "sqlite", "-o", file); code != exitOK {
		t.Fatal(stderr)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	queries := shownQuery.FindAllStringSubmatch(string(page), -1)
	if len(queries) < 2 {
		t.Errorf("the page shows %d queries", len(queries))
	}
	for _, q := range queries {
		if got := answer(t, db, q[1]); got != q[2] {
			t.Errorf("%s: got\n%swant\n%s", q[1], got, q[2])
		}
	}
}

// answer returns what the sqlite3 program prints.
func answer(t *testing.T, db *sql.DB, query string) string {
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(query, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var out strings.Builder
	for rows.Next() {
		texts, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range texts {
			into[i] = &texts[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if i > 0 {
				out.WriteByte('|')
			}
			out.WriteString(text.String)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
