// Package nsys reads what `nsys export --type sqlite` makes of a recording of Nsight
// Systems: the driver's allocations by device and kind of memory, and the calls that
// failed. Tables and columns come and go between versions; what a file has no rows
// of has no table.
package nsys

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"

	"strandline/internal/budget"
	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
	"strandline/profiles"
	"strandline/units"
)

// patience is how long one file is read: a made-up one may hold expressions that
// never end.
const patience = 2 * time.Minute

// A made-up file may also hold values of a gigabyte: longest is how many bytes one may
// have. limitLength is SQLite's number for that limit, SQLITE_LIMIT_LENGTH.
const (
	limitLength = 0
	longest     = 1 << 20
)

// The tables and the columns that are read.
const (
	events = "CUDA_GPU_MEMORY_USAGE_EVENTS"
	calls  = "CUPTI_ACTIVITY_KIND_RUNTIME"
	names  = "StringIds"
	meta   = "META_DATA_EXPORT"
	gpus   = "TARGET_INFO_GPU"
)

// Is reports whether a file begins as a database of SQLite does.
func Is(head []byte) bool { return strings.HasPrefix(string(head), "SQLite format 3\x00") }

// Read reads an export, of one that is damaged what can be read. The file stays as it is: it is opened read-only, as a file that
// is not changed meanwhile, and without what its schema could run.
func Read(ctx context.Context, path string) (*profiles.File, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it could not be read within %s", units.Duration(patience)))
	defer stop()
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, err := safefile.Open(full, safefile.Unbounded)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	tree, err := pagesOf(file, info.Size())
	if err != nil {
		return nil, err
	}
	f, err := readFrom(ctx, full, tree, false)
	if ctx.Err() == nil && isDamaged(err) {
		switch some, again := readFrom(ctx, full, tree, true); {
		case again == nil && len(some.Levels)+len(some.Failed) > 0:
			return some, nil
		case again == nil:
			err = fmt.Errorf("an export of Nsight Systems that is damaged or cut off, and of which no event of memory can be read: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return f, err
}

// isDamaged reports whether an error of SQLite is that the file is not what its header and
// its pages say of it, as where it was cut off.
func isDamaged(err error) bool {
	const corrupt = 11 // SQLITE_CORRUPT, the lowest byte of such codes
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == corrupt
}

// readFrom reads an export; damaged states to read what can be read of one that SQLite refuses.
func readFrom(ctx context.Context, path string, tree *pages, damaged bool) (*profiles.File, error) {
	clear(tree.seen)
	const schema = 1 // its root
	if err := tree.check(schema); err != nil {
		return nil, err
	}
	query := "mode=ro&immutable=1&_pragma=trusted_schema(0)&_pragma=query_only(1)"
	if damaged { // with this, SQLite opens a file that has fewer pages than its header states
		query += "&_pragma=writable_schema(1)"
	} else {
		query += "&_pragma=cell_size_check(1)"
	}
	source := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := sqlite.Limit(conn, limitLength, longest); err != nil {
		return nil, err
	}
	e := export{ctx: ctx, db: conn, tree: tree, file: &profiles.File{Format: "nsys"}, damaged: damaged}
	if damaged {
		e.file.Partial = errors.New("the database is damaged or cut off")
	}
	if err := e.read(); err != nil {
		return nil, err
	}
	return e.file, nil
}

type export struct {
	ctx    context.Context
	db     *sql.Conn
	tree   *pages
	tables map[string][]string // columns of those that are read, by name
	file   *profiles.File

	damaged bool // rows are read as they come, as SQLite sorts none of a table that ends in an error
}

func (e *export) read() error {
	if err := e.schema(); err != nil {
		return err
	}
	if !e.has(events) && !e.has(calls) && !e.has(gpus) {
		return fmt.Errorf("a database of SQLite, not an export of Nsight Systems")
	}
	e.version()
	if !e.has(events, "start", "deviceId", "memKind", "memoryOperationType", "bytes", "address") {
		e.note("the file holds no memory events: `nsys profile --cuda-memory-usage=true` records them")
	} else if err := e.levels(); err != nil && (e.ctx.Err() != nil || len(e.file.Levels) == 0) {
		return err
	} else if err != nil {
		e.note(fmt.Sprintf("the memory events can be read only in part: %v", err))
	}
	if e.has(calls, "returnValue", "nameId") && e.has(names, "id", "value") {
		if err := e.failed(); e.ctx.Err() != nil {
			return err
		} else if err != nil {
			e.note(fmt.Sprintf("the calls that failed cannot be read: %v", err))
		}
	}
	if len(e.file.Levels) > 0 {
		e.note("places are not known: the call chains of an export (`nsys profile --cudabacktrace=all`) are not read")
	}
	e.note("what was allocated before the recording is not in it, nor what PyTorch's allocator made of its segments; " +
		"what lives at the end of a recording is not in itself a leak")
	return nil
}

func (e *export) note(text string) { e.file.Notes = append(e.file.Notes, text) }

// schema finds the tables that are read. Views and virtual tables of these names
// are not: they run what the file's author wrote.
func (e *export) schema() error {
	e.tables = map[string][]string{}
	if err := e.checkPages(); err != nil {
		return err
	}
	for _, table := range []string{events, calls, names, meta, gpus} {
		var n int
		err := e.db.QueryRowContext(e.ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?", table).Scan(&n)
		if err != nil {
			return fmt.Errorf("not a database that SQLite can read: %w", err)
		}
		if n != 1 {
			continue
		}
		columns, err := e.columns(table)
		if err != nil {
			return err
		}
		e.tables[table] = columns
	}
	return nil
}

// checkPages checks that the tables and their indexes end. What the schema says of a table's
// name is what SQLite holds it to, except in a damaged file.
func (e *export) checkPages() error {
	rows, err := e.db.QueryContext(e.ctx, "SELECT DISTINCT rootpage FROM sqlite_schema WHERE rootpage > 1 AND (? OR tbl_name COLLATE NOCASE IN (?, ?, ?, ?, ?))",
		e.damaged, events, calls, names, meta, gpus)
	if err != nil {
		return err
	}
	defer rows.Close()
	var roots []uint32
	for rows.Next() {
		var root uint32
		if err := rows.Scan(&root); err != nil {
			return err
		}
		roots = append(roots, root)
	}
	return cmp.Or(rows.Err(), e.tree.check(roots...))
}

// columns are the stored columns of a table; generated ones are expressions.
func (e *export) columns(table string) (out []string, err error) {
	rows, err := e.db.QueryContext(e.ctx, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 LIMIT 1000", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// has reports whether a table was found, with these columns.
func (e *export) has(table string, columns ...string) bool {
	found, ok := e.tables[table]
	for _, c := range columns {
		ok = ok && slices.Contains(found, c)
	}
	return ok
}

// version reads what wrote the file, as far as it states it.
func (e *export) version() {
	if !e.has(meta, "name", "value") {
		return
	}
	var version string
	if e.db.QueryRowContext(e.ctx, "SELECT substr(value, 1, 100) FROM "+meta+" WHERE name = 'EXPORT_PRODUCT_VERSION' LIMIT 1").Scan(&version) == nil {
		e.file.Writer = "Nsight Systems " + version
	}
}

// kinds are the names of ENUM_CUDA_MEM_KIND as strandline writes them.
var kinds = map[int64]string{
	0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device-static", 6: "managed-static",
}

// An event of these types allocates, or frees.
const allocation, deallocation = 0, 1

// maxEvents is how many events are read of a file.
const maxEvents = 50_000_000

// maxPools is how many kinds of memory, of devices and processes, are distinguished.
const maxPools = 4096

// pool is what one process holds of one kind of memory.
type pool struct {
	process, device, kind int64
}

// piece is one allocation.
type piece struct {
	pool
	address int64
}

// sum is what lives of a kind.
type sum struct{ live, count, peak int64 }

// levels adds up events in the order of time. Addresses are used again: a free is of
// the last allocation there.
func (e *export) levels() error {
	process := "0"
	if e.has(events, "globalPid") {
		process = "globalPid"
	}
	order, limit := " ORDER BY 1", maxEvents
	if e.damaged {
		order, limit = "", maxSorted
	}
	rows, err := e.db.QueryContext(e.ctx, "SELECT "+integers("start", process, "deviceId", "memKind", "memoryOperationType", "bytes", "address")+" FROM "+events+order+" LIMIT ?", limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	t := tally{live: map[piece]int64{}, sums: map[pool]*sum{}, budget: budget.Of(e.tree.bytes, budget.Plain)}
	var all []event
	for rows.Next() {
		var v event
		if err := rows.Scan(&v.start, &v.process, &v.device, &v.kind, &v.operation, &v.bytes, &v.address); err != nil || v.bytes < 0 || v.bytes > 1<<50 {
			t.strange++
		} else if e.damaged && (v.bytes == 0 || v.kind == 0) { // SQLite reads zeros where a page was cut off
			t.strange++
		} else if e.damaged {
			all = append(all, v)
		} else {
			t.add(&v)
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.start, b.start) })
	for i := range all {
		t.add(&all[i])
	}
	if t.strange > 0 {
		e.note(fmt.Sprintf("%s left out, whose figures cannot be", units.Plural(t.strange, "event")))
	}
	if t.unknown > 0 {
		e.note(fmt.Sprintf("%s of memory that was allocated before the recording", units.Plural(t.unknown, "free")))
	}
	e.file.Levels = levelsOf(t.sums)
	return rows.Err()
}

// maxSorted is how many events are kept of a damaged file, to be put in order.
const maxSorted = 2_000_000

// event is a row of the events.
type event struct {
	piece
	start, operation, bytes int64
}

// tally adds up events.
type tally struct {
	live             map[piece]int64
	budget           *budget.Budget
	sums             map[pool]*sum
	strange, unknown int64 // events left out, frees of what was there before
}

func (t *tally) add(v *event) {
	s := t.sums[v.pool]
	if s == nil {
		if len(t.sums) == maxPools {
			t.strange++
			return
		}
		s = &sum{}
		t.sums[v.pool] = s
	}
	switch old, ok := t.live[v.piece]; {
	case v.operation == allocation:
		const pieceBytes = 80
		if !ok && t.budget.Spend(pieceBytes, "allocations") != nil {
			t.strange++
			return
		}
		if ok {
			s.live, s.count = s.live-old, s.count-1
		}
		t.live[v.piece] = v.bytes
		s.live, s.count = s.live+v.bytes, s.count+1
		s.peak = max(s.peak, s.live)
	case v.operation == deallocation && ok:
		delete(t.live, v.piece)
		s.live, s.count = s.live-old, s.count-1
	case v.operation == deallocation:
		t.unknown++
	}
}

// levelsOf are the sums by process, device and kind.
func levelsOf(sums map[pool]*sum) (out []profiles.Level) {
	var pools []pool
	processes := map[int64]bool{}
	for p := range sums {
		pools = append(pools, p)
		processes[p.process] = true
	}
	slices.SortFunc(pools, func(a, b pool) int {
		return slices.Compare([]int64{a.process, a.device, a.kind}, []int64{b.process, b.device, b.kind})
	})
	for _, p := range pools {
		s := sums[p]
		kind, ok := kinds[p.kind]
		if !ok {
			kind = "unknown"
		}
		device := fmt.Sprintf("cuda:%d", p.device)
		if len(processes) > 1 {
			device += fmt.Sprintf(" of process %d", p.process>>24&0xffffff)
		}
		out = append(out, profiles.Level{Device: device, Kind: kind, Live: &s.live, Count: &s.count, Peak: &s.peak})
	}
	return out
}

// outOfMemory is CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation.
const outOfMemory = 2

// notReady is cudaErrorNotReady, with which a query answers that work continues.
const notReady = 600

// allocates is in the names of calls that allocate memory or pin it.
var allocates = lazyregexp.New(`(?i)alloc|memcreate|hostregister`)

// failed counts the calls that returned an error of memory, and those that allocate
// memory and returned another error, by name; the errors of memory come first. Of a damaged
// file, it counts those whose rows and names can be read.
func (e *export) failed() error {
	type call struct{ name, status int64 }
	rows, err := e.db.QueryContext(e.ctx, "SELECT "+integers("nameId", "returnValue")+" FROM "+calls+" WHERE "+integers("returnValue")+" NOT IN (0, ?) LIMIT ?", notReady, maxEvents)
	if err != nil {
		return err
	}
	defer rows.Close()
	counts := map[call]int64{}
	for rows.Next() {
		var c call
		if rows.Scan(&c.name, &c.status) == nil && (counts[c] > 0 || len(counts) < maxPools) {
			counts[c]++
		}
	}
	if err := rows.Err(); err != nil && !e.damaged {
		return err
	}
	named, err := e.named(slices.Collect(func(yield func(int64) bool) {
		for c := range counts {
			if !yield(c.name) {
				return
			}
		}
	}))
	for c, n := range counts {
		if name, ok := named[c.name]; ok && (c.status == outOfMemory || allocates.MatchString(name)) {
			e.file.Failed = append(e.file.Failed, profiles.Call{Name: name, Status: c.status, Count: n})
		}
	}
	rank := func(c profiles.Call) int {
		if c.Status == outOfMemory {
			return 0
		}
		return 1
	}
	slices.SortFunc(e.file.Failed, func(a, b profiles.Call) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name), cmp.Compare(a.Status, b.Status))
	})
	const some = 100
	e.file.Failed = e.file.Failed[:min(len(e.file.Failed), some)]
	if e.damaged {
		return e.ctx.Err()
	}
	return err
}

// named are the names of functions with these numbers, read in one pass.
func (e *export) named(ids []int64) (map[int64]string, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := e.db.QueryContext(e.ctx, "SELECT id, substr(value, 1, 200) FROM "+names+" WHERE id IN (SELECT value FROM json_each(?)) LIMIT ?", string(list), maxPools)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]string{}
	for rows.Next() {
		var id int64
		var name string
		if rows.Scan(&id, &name) == nil {
			out[id] = name
		}
	}
	return out, rows.Err()
}

// integers are columns as they are selected: values that are not integers are NULL, and not
// read, however long they are.
func integers(columns ...string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = "CASE typeof(" + c + ") WHEN 'integer' THEN " + c + " END"
	}
	return strings.Join(out, ", ")
}
