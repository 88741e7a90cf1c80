// Package nsys reads what `nsys export --type sqlite` makes of a recording of Nsight
// Systems: the driver's allocations by device and kind of memory, and the calls that
// failed. Tables and columns come and go between versions; what a file has no rows
// of has no table.
package nsys

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/internal/sqlite"
	"strandline/profiles"
	"strandline/units"
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
func Is(head []byte) bool { return sqlite.Is(head) }

// Read reads an export of so many bytes. Of one that is damaged it reads what can be read.
func Read(ctx context.Context, r io.ReaderAt, size int64) (*profiles.File, error) {
	db, err := sqlite.Open(ctx, r, size)
	if err != nil {
		return nil, err
	}
	e := export{db: db, file: &profiles.File{Format: "nsys"}, budget: budget.Of(size, budget.Plain)}
	if err := e.read(); err != nil {
		return nil, err
	}
	if db.Damage != nil && len(e.file.Levels)+len(e.file.Failed) == 0 {
		return nil, fmt.Errorf("an export of Nsight Systems that is damaged or cut off, and of which no event of memory can be read: %w", db.Damage)
	}
	e.file.Partial = db.Damage
	return e.file, nil
}

type export struct {
	db     *sqlite.DB
	file   *profiles.File
	budget *budget.Budget
}

func (e *export) read() error {
	t := e.db.Tables
	if t[events] == nil && t[calls] == nil && t[gpus] == nil {
		if e.db.Damage != nil {
			return e.db.Damage
		}
		return fmt.Errorf("a database of SQLite, not an export of Nsight Systems")
	}
	if err := e.version(); err != nil {
		return err
	}
	if !t[events].Has("start", "deviceId", "memKind", "memoryOperationType", "bytes", "address") {
		e.note("the file holds no memory events: `nsys profile --cuda-memory-usage=true` records them")
	} else if err := e.levels(); err != nil {
		return err
	}
	if t[calls].Has("returnValue", "nameId") && t[names].Has("id", "value") {
		if err := e.failed(); err != nil {
			return err
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

// version reads what wrote the file, as far as it states it.
func (e *export) version() error {
	const maxBytes = 100
	if !e.db.Tables[meta].Has("name", "value") {
		return nil
	}
	return e.db.Rows(e.db.Tables[meta], []string{"name", "value"}, func(v []sqlite.Value) {
		if e.file.Writer == "" && v[0].Text(maxBytes) == "EXPORT_PRODUCT_VERSION" {
			e.file.Writer = "Nsight Systems " + v[1].Text(maxBytes)
		}
	})
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
	const eventBytes = 56
	table := e.db.Tables[events]
	t := tally{live: map[piece]int64{}, sums: map[pool]*sum{}, budget: e.budget}
	columns := []string{"start", "deviceId", "memKind", "memoryOperationType", "bytes", "address"}
	if table.Has("globalPid") {
		columns = append(columns, "globalPid")
	}
	var all []event
	err := e.db.Rows(table, columns, func(v []sqlite.Value) {
		ok := true
		for i := range v {
			ok = ok && v[i].Kind == sqlite.Integer
		}
		if bytes := v[4].Int; !ok || bytes < 0 || bytes > 1<<50 || len(all) == maxEvents || e.budget.Spend(eventBytes, "events") != nil {
			t.strange++
			return
		}
		row := event{piece{pool{0, v[1].Int, v[2].Int}, v[5].Int}, v[0].Int, v[3].Int, v[4].Int}
		if len(v) == 7 {
			row.process = v[6].Int
		}
		all = append(all, row)
	})
	if err != nil {
		return err
	}
	sorts.StableBy(all, func(a, b event) int { return cmp.Compare(a.start, b.start) })
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
	return nil
}

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
	sorts.By(pools, func(a, b pool) int {
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
// memory and returned another error, by name; the errors of memory come first.
func (e *export) failed() error {
	type call struct{ name, status int64 }
	counts := map[call]int64{}
	err := e.db.Rows(e.db.Tables[calls], []string{"nameId", "returnValue"}, func(v []sqlite.Value) {
		c := call{v[0].Int, v[1].Int}
		if v[0].Kind != sqlite.Integer || v[1].Kind != sqlite.Integer || c.status == 0 || c.status == notReady {
			return
		}
		if counts[c] > 0 || len(counts) < maxPools {
			counts[c]++
		}
	})
	if err != nil {
		return err
	}
	const maxName = 200
	named := map[int64]string{}
	for c := range counts {
		named[c.name] = ""
	}
	err = e.db.Rows(e.db.Tables[names], []string{"id", "value"}, func(v []sqlite.Value) {
		if _, ok := named[v[0].Int]; ok && v[0].Kind == sqlite.Integer {
			named[v[0].Int] = v[1].Text(maxName)
		}
	})
	if err != nil {
		return err
	}
	for c, n := range counts {
		if name := named[c.name]; name != "" && (c.status == outOfMemory || allocates.MatchString(name)) {
			e.file.Failed = append(e.file.Failed, profiles.Call{Name: name, Status: c.status, Count: n})
		}
	}
	rank := func(c profiles.Call) int {
		if c.Status == outOfMemory {
			return 0
		}
		return 1
	}
	sorts.By(e.file.Failed, func(a, b profiles.Call) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name), cmp.Compare(a.Status, b.Status))
	})
	const some = 100
	e.file.Failed = e.file.Failed[:min(len(e.file.Failed), some)]
	return nil
}
