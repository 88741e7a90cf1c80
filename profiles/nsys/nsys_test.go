package nsys

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"strandline/internal/sqlite"
	"strandline/profiles"
)

// made is a database of these statements.
func made(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b%3f.sqlite") // a name that a URL must escape
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", " ", "%20").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

// read reads the file at a path.
func read(ctx context.Context, path string) (*profiles.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return Read(ctx, f, info.Size())
}

const (
	eventTable = "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL)"
	callTable  = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL)"
	nameTable  = "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
	metaTable  = "CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)"
)

// happens is an event; operation 0 allocates.
func happens(start, device, kind, operation, bytes, address int64) string {
	return fmt.Sprintf("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (%d, 16777216, %d, %d, %d, %d, %d)", start, device, address, bytes, kind, operation)
}

func TestRead(t *testing.T) {
	path := made(t, eventTable, callTable, nameTable, metaTable,
		"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.1.2')",
		happens(30, 0, 2, 1, 100, 4096), // out of order: the free of the first
		happens(10, 0, 2, 0, 100, 4096),
		happens(20, 0, 2, 0, 50, 8192),
		happens(40, 0, 2, 0, 70, 4096), // at the same address
		happens(50, 0, 2, 1, 9, 999),   // allocated before
		happens(60, 0, 1, 0, 1000, 4096),
		happens(70, 1, 5, 0, 8, 1),
		"INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020'), (2, 'cudaEventQuery_v3020')",
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 1, 0), (2, 1, 2), (3, 1, 2), (4, 2, 600), (5, 2, 700), (6, 1, 700), (7, 1, 2)",
	)
	f, err := read(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range f.Levels {
		got = append(got, fmt.Sprintf("%s %s %d %d %d", l.Device, l.Kind, *l.Live, *l.Count, *l.Peak))
	}
	want := "cuda:0 pinned 1000 1 1000; cuda:0 device 120 2 150; cuda:1 device-static 8 1 8"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("levels %s, want %s", s, want)
	}
	if failed := []profiles.Call{{Name: "cudaMalloc_v3020", Status: 2, Count: 3}, {Name: "cudaMalloc_v3020", Status: 700, Count: 1}}; !slices.Equal(f.Failed, failed) {
		t.Errorf("failed calls: %v, want %v", f.Failed, failed)
	}
	if f.Writer != "Nsight Systems 2025.1.2" || !strings.Contains(strings.Join(f.Notes, " "), "1 free of memory that was allocated before") {
		t.Errorf("%s, notes %q", f.Writer, f.Notes)
	}
}

func TestUnknownDatabases(t *testing.T) {
	forever := "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS deviceId, x AS memKind, x AS memoryOperationType, x AS bytes, x AS address FROM n"
	for name, statements := range map[string][]string{
		"other":  {"CREATE TABLE t (x)"},
		"view":   {"CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS " + forever},
		"column": {"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, deviceId, memKind, memoryOperationType, address, bytes AS (length(printf('%.*c', 1000000, 'x'))))", "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 1, 1, 1, 1)"},
	} {
		f, err := read(context.Background(), made(t, statements...))
		if err == nil && len(f.Levels) > 0 {
			t.Errorf("%s: levels %v", name, f.Levels)
		}
		if name != "column" && (err == nil || !strings.Contains(err.Error(), "not an export of Nsight Systems")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := read(context.Background(), made(t, eventTable, happens(1, 0, 2, 0, 5, 5), "CREATE TABLE StringIds (id INTEGER, value)", "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (nameId INTEGER, returnValue INTEGER)",
		"INSERT INTO StringIds VALUES (1, zeroblob(2000000))", "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2)"))
	if err != nil || len(f.Levels) != 1 || len(f.Failed) != 0 {
		t.Errorf("a name of bytes: %v, %+v", err, f)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := read(ctx, made(t, eventTable)); err == nil {
		t.Error("a context that has ended")
	}
}

// TestDamaged reads exports that were cut off, and one with a page of noise: what is before
// that counts, and is called partial.
func TestDamaged(t *testing.T) {
	const events = 400
	statements := []string{"PRAGMA page_size = 512", nameTable, callTable, "INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020')", "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 1, 2), (2, 1, 700)", eventTable}
	all := happens(events, 0, 2, 0, 10, 0)
	for i := range int64(events - 1) { // the last comes first
		all += strings.TrimPrefix(happens(events-1-i, 0, 2, 0, 10, i+1), "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES")
		all = strings.Replace(all, ") (", "), (", 1)
	}
	whole, err := os.ReadFile(made(t, append(statements, all)...))
	if err != nil {
		t.Fatal(err)
	}
	noise := slices.Clone(whole)
	for i := range noise[len(noise)-2048 : len(noise)-1024] {
		noise[len(noise)-2048+i] = byte(i * 7)
	}
	for name, data := range map[string][]byte{"most": whole[:len(whole)*9/10], "half": whole[:len(whole)/2], "noise": noise} {
		path := filepath.Join(t.TempDir(), "cut.sqlite")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := read(context.Background(), path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []profiles.Call{{Name: "cudaMalloc_v3020", Status: 2, Count: 1}, {Name: "cudaMalloc_v3020", Status: 700, Count: 1}}
		if f.Partial == nil || len(f.Levels) != 1 || *f.Levels[0].Count < events/4 || *f.Levels[0].Count >= events || !slices.Equal(f.Failed, want) {
			t.Errorf("%s: partial: %v, %+v", name, f.Partial, f)
		}
	}
	path := filepath.Join(t.TempDir(), "little.sqlite")
	if err := os.WriteFile(path, whole[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(context.Background(), path); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("almost nothing: %v", err)
	}
}

// circular is a database whose table of events has a page that leads, as often as it can, to
// the next of so many pages like it, and the last to the rows.
func circular(t *testing.T, levels int) string {
	t.Helper()
	path := made(t, "PRAGMA page_size=512", "VACUUM", eventTable, happens(1, 0, 2, 0, 4096, 1), happens(2, 0, 2, 1, 4096, 1))
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size, root, cells = 512, 2, 70
	rows := slices.Clone(raw[(root-1)*size : root*size])
	interior := func(below int) []byte {
		page := make([]byte, size)
		page[0] = 5 // above other pages
		binary.BigEndian.PutUint16(page[3:], cells)
		binary.BigEndian.PutUint16(page[5:], size-5*cells)
		binary.BigEndian.PutUint32(page[8:], uint32(below))
		for i := range cells {
			at := size - 5*cells + 5*i
			binary.BigEndian.PutUint16(page[12+2*i:], uint16(at))
			binary.BigEndian.PutUint32(page[at:], uint32(below))
			page[at+4] = 1
		}
		return page
	}
	next := len(raw)/size + 1
	copy(raw[(root-1)*size:], interior(next))
	for range levels - 1 {
		next++
		raw = append(raw, interior(next)...)
	}
	raw = append(raw, rows...)
	binary.BigEndian.PutUint32(raw[28:], uint32(len(raw)/size))
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSharedPages checks that a table that visits its pages again and again is not read.
func TestSharedPages(t *testing.T) {
	if f, err := read(t.Context(), circular(t, 2)); !errors.Is(err, sqlite.ErrShared) {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzRead(f *testing.F) {
	seed, err := os.ReadFile(made(f, "PRAGMA page_size = 512", eventTable, happens(1, 0, 2, 0, 5, 5)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:700])
	f.Add([]byte("SQLite format 3\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 32<<10 {
			return
		}
		file, err := Read(context.Background(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, l := range file.Levels {
			if *l.Live < 0 || *l.Count < 0 || *l.Peak < *l.Live {
				t.Errorf("%s: %d live, peak %d", l.Kind, *l.Live, *l.Peak)
			}
		}
	})
}
