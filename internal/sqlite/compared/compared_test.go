// Package compared compares package sqlite with SQLite itself. It is apart because fuzzing
// counts the branches of all that a package's tests import.
package compared

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // SQLite itself

	"strandline/internal/sqlite"
)

// statements is a database that SQLite makes.
func statements(t testing.TB, statements ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range slices.Concat(statements, []string{"COMMIT"}) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	db.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rows are the rows of a table, as text.
func rows(db *sqlite.DB, table string, columns ...string) (out []string, err error) {
	t := db.Tables[table]
	if !t.Has(columns...) {
		return nil, fmt.Errorf("no %s with %q", table, columns)
	}
	err = db.Rows(t, columns, func(row []sqlite.Value) {
		var b strings.Builder
		for _, v := range row {
			switch v.Kind {
			case sqlite.Integer:
				fmt.Fprintf(&b, "%d ", v.Int)
			case sqlite.Text:
				fmt.Fprintf(&b, "%q ", v.Text(math.MaxInt))
			default:
				b.WriteString("- ")
			}
		}
		out = append(out, strings.TrimSpace(b.String()))
	})
	return out, err
}

// integersOf are integers of all lengths.
func integersOf() (out []int64) {
	for bits := range 64 {
		n := int64(1) << bits
		out = append(out, n-1, n, -n, -n-1)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestRead reads what SQLite writes, with pages and texts of many sizes.
func TestRead(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, pragma := range []string{"page_size = 512", "page_size = 4096", "page_size = 65536", "encoding = 'UTF-16le'", "encoding = 'UTF-16be'", "auto_vacuum = full"} {
		list := []string{"PRAGMA " + pragma, "BEGIN", "CREATE TABLE t (a, id INTEGER PRIMARY KEY, b TEXT)"}
		var want []string
		for i, n := range integersOf() {
			text := long[:i*19]
			list = append(list, fmt.Sprintf("INSERT INTO t VALUES (%d, %d, 'ä%s')", n, 3*i+1, text))
			want = append(want, fmt.Sprintf("%q %d %d", "ä"+text, n, 3*i+1))
		}
		list = append(list, "INSERT INTO t VALUES (1.5, 100000, x'00')", "ALTER TABLE t ADD COLUMN late")
		data := statements(t, list...)
		db, err := sqlite.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := rows(db, "t", "b", "a", "id", "late")
		for i := range want {
			want[i] += " -"
		}
		want = append(want, "- - 100000 -")
		if err != nil || db.Damage != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, %d rows:\n%.300q\n%.300q", pragma, err, db.Damage, len(got), got, want)
		}
	}
}

// TestWrite has SQLite check what is written, and compares the rows.
func TestWrite(t *testing.T) {
	const many = 20_000
	r := rand.New(rand.NewPCG(1, 2))
	text := func(i int) string { return strings.Repeat("é", r.IntN(40)+max(0, i%500-490)*3000) }
	var want [3][]string
	path := filepath.Join(t.TempDir(), "x.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := sqlite.NewWriter(file)
	w.Table("create table none (id integer primary key)", func(func(...any)) {})
	w.Table("create table keyed (id integer primary key, n integer, s text)", func(add func(...any)) {
		for i := range many {
			s := text(i)
			want[0] = append(want[0], fmt.Sprintf("%d|%d|%s", 7*i-90, i, s))
			add(7*i-90, int64(i), s)
		}
	})
	w.Table("create table pairs (a integer, b integer, s text, f, z, primary key (a, b)) without rowid", func(add func(...any)) {
		for i := range many {
			s := text(i)
			want[1] = append(want[1], fmt.Sprintf("%d|%d|%s|%d|", i/100, i%100, s, i%2))
			add(i/100, i%100, s, i%2 == 1, nil)
		}
	})
	w.Table("create table numbers (n integer primary key, m) without rowid", func(add func(...any)) {
		for _, n := range integersOf() {
			want[2] = append(want[2], fmt.Sprintf("%d|%d", n, n))
			add(n, n)
		}
	})
	w.View("create view sums as select a, sum(b) from pairs group by a")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ask(t, db, map[string][]string{
		"pragma integrity_check":                                                                {"ok"},
		"select count(*) from none":                                                             {"0"},
		"select id || '|' || n || '|' || s from keyed":                                          want[0],
		"select id || '|' || n || '|' || s from keyed order by n":                               want[0],
		"select a || '|' || b || '|' || s || '|' || f || '|' || ifnull(z, '') from pairs":       want[1],
		"select n || '|' || m from numbers":                                                     want[2],
		"select s = (select s from keyed where id = 7 * 18990 - 90) from keyed where n = 18990": {"1"},
		"select count(*) from pairs where a = 77 and b = 99":                                    {"1"},
		"select count(*) from sums":                                                             {"200"},
	})
	if _, err := db.Exec("insert into keyed values (null, 1, 'x'); insert into pairs values (0, -1, 'x', 1, 2); delete from pairs where a > 50"); err != nil {
		t.Error(err)
	}
	var ok string
	if err := db.QueryRow("pragma integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Error("after changes:", ok, err)
	}
	again, err := sqlite.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rows(again, "keyed", "id"); err != nil || again.Damage != nil || len(got) != many {
		t.Error(len(got), err, again.Damage)
	}
}

// ask compares the answers to queries.
func ask(t *testing.T, db *sql.DB, answers map[string][]string) {
	t.Helper()
	for query, want := range answers {
		var got []string
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(query, err)
		}
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if rows.Err() != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v: %d rows, want %d: %.200q", query, rows.Err(), len(got), len(want), got)
		}
	}
}
