package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestColumns(t *testing.T) {
	for statement, want := range map[string]string{
		"CREATE TABLE t (a, b)": "a b -1 true",
		"CREATE TABLE \"a (b\" (\"x\"\"y\" INTEGER PRIMARY KEY, [z w] text default (1, 2), 'q', `r`)":  "x\"y z w q r 0 true",
		"create table t(id integer not null primary key autoincrement, v decimal(10,5) check (v > 0))": "id v 0 true",
		"create table t(a int primary key, b)":                                                         "a b -1 true",
		"create table t(a integer primary key desc, b)":                                                "a b -1 true",
		"create table t(a unsigned integer primary key)":                                               "a -1 true",
		"create table t(a integer, b, constraint k primary key (a))":                                   "a b 0 true",
		"create table t(a, b integer, primary key (a, b))":                                             "a b -1 true",
		"create table t(a, b as (a+1), c generated always as (a) stored, d)":                           "a  d -1 true",
		"create table t(a primary key) without rowid":                                                  " 0 false",
		"create table t(a, -- one, two\n b /* three, */, c) strict":                                    "a b c -1 true",
		"create table t(primary_key, \"unique\", check_it)":                                            "primary_key unique check_it -1 true",
		"create table t": " -1 false",
		"(":              " -1 false", "('": " -1 false", "(,)": " -1 false", ")": " -1 false",
	} {
		columns, key, ok := columnsOf(statement)
		if got := fmt.Sprint(strings.Join(columns, " "), " ", key, " ", ok); got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}

// A file in memory.
type memory struct{ data []byte }

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if end := int(at) + len(b); end > len(m.data) {
		m.data = append(m.data, make([]byte, end-len(m.data))...)
	}
	return copy(m.data[at:], b), nil
}

// TestRefused writes what cannot be a database.
func TestRefused(t *testing.T) {
	for name, fill := range map[string]func(add func(...any)){
		"order": func(add func(...any)) { add(2); add(1) },
		"key":   func(add func(...any)) { add("x") },
	} {
		w := NewWriter(&memory{})
		w.Table("create table t (id integer primary key)", fill)
		if err := w.Close(); err == nil {
			t.Error(name, "is written")
		}
	}
	w := NewWriter(&memory{})
	w.View("create view v as select '" + strings.Repeat("x", written) + "'")
	if err := w.Close(); err == nil {
		t.Error("a schema that is too long is written")
	}
}

// readAll reads every column of every table.
func readAll(t *testing.T, data []byte) {
	db, err := Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	total := 0
	for name, table := range db.Tables {
		columns := slices.DeleteFunc(slices.Clone(table.columns), func(c string) bool { return c == "" })
		if !table.Has(columns...) {
			t.Errorf("no %s with %q", name, columns)
			continue
		}
		err := db.Rows(table, columns, func(row []Value) {
			total++
			for _, v := range row {
				_ = v.Text(math.MaxInt)
			}
		})
		if err != nil && !errors.Is(err, ErrShared) {
			t.Error(err)
		}
	}
	if total > len(data) {
		t.Errorf("%d rows of %d bytes", total, len(data))
	}
}

// seeds are small databases, which SQLite made.
func seeds(t testing.TB) (out [][]byte) {
	t.Helper()
	for _, name := range []string{"pages.db", "utf16.db"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// TestMutants reads databases in which bytes changed.
func TestMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, seed := range seeds(t) {
		for range 2000 {
			data := slices.Clone(seed)
			for range 1 + r.IntN(20) {
				at := r.IntN(len(data))
				if r.IntN(2) == 0 { // headers of pages
					at = at&^511 + r.IntN(24)
				}
				data[min(at, len(data)-1)] = byte(r.IntN(256) >> r.IntN(8))
			}
			readAll(t, data[:len(data)-r.IntN(2)*r.IntN(len(data))])
		}
	}
}

// FuzzOpen is fast with -fuzzminimizetime 10x; else it minimizes each input for a minute.
func FuzzOpen(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(readAll)
}
