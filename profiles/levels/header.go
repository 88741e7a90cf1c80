package levels

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/units"
)

// A header states what the columns of a table are.
type header struct {
	names  []string
	time   int // the column of times, -1 if there is none
	clock  clock
	unit   string // what that column counts, if it holds no times
	groups []int  // columns that name a process or a device
	levels []level
	reason error // why there are no levels, where it is clear what is missing
}

// A level is a column of sizes.
type level struct {
	name     string
	column   int
	factor   float64 // bytes of a number without a unit
	capacity int     // the column that states the most it can be; -1 if there is none
	left     bool    // the column states what is left of the capacity
	memory   bool    // its name or a unit says that it is memory
	maxPlain float64 // bytes of a number without a unit in that column
}

var (
	timeName  = lazyregexp.New(`(?i)^(t|ts|time|date|timestamp|elapsed|uptime|clock|sec|secs|seconds|epoch_?(s|sec|secs|seconds|ms)|unix.*|datetime|.*[ _.-]?time(stamp)?|(t|time|elapsed|timestamp|uptime)[ _.(\[-].*)$`)
	groupName = lazyregexp.New(`(?i)^(pid|process|process[ _]?name|command|comm|name|index|gpu|gpu[ _]?(id|index|uuid|name)|uuid|device|host|hostname|node|pod|container|rank|instance|job|namespace|role|worker|service|id|pci\.bus_id|user)$`)
	// otherName are columns of numbers that are not sizes.
	otherName = lazyregexp.New(`(?i)(%|percent|pct|cpu|util|temp|power|watt|clock|\bfan|thread|\bfds?\b|count|\bnum|iteration|\biter|step|epoch|loss|\blr\b|latency|requests?|qps|rps|tokens?|faults|voluntary|switch|duration|speed|pstate|version|status|state|port|throughput|bandwidth|/s\b)`)
	// memoryName are columns that are sizes of memory.
	memoryName   = lazyregexp.New(`(?i)(mem|rss|pss|uss|vms|vsz|virt|\bres\b|swap|heap|anon|cache|shared|alloc|reserved|used|usage|working|resident|private|hbm|vram|footprint|bytes|\b[kmgt]i?b\b|_[kmgt]i?b\b)`)
	freeName     = lazyregexp.New(`(?i)(free|avail)`)
	capacityName = lazyregexp.New(`(?i)(total|limit|capacity)`)
	unitName     = lazyregexp.New(`(?i)(?:^|[\[( _.,-])(bytes?|b|[kmgt](?:i?b)?|kilobytes|megabytes|gigabytes)[\])]*$`)
)

// factors are the units that a header can name. Those who write KB or MB above a column
// of memory divide by 1024: psutil, ps and nvidia-smi do.
var factors = map[byte]float64{'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

// factorOf is the unit that a name states, 1 if none.
func factorOf(name string) float64 {
	if m := unitName.FindStringSubmatch(name); m != nil {
		return factors[strings.ToLower(m[1])[0]]
	}
	return 1
}

// kibibytes are the columns of ps and pidstat that are in KiB without saying so, where other
// names that they print stand beside them.
func kibibytes(names []string) map[string]bool {
	of := func(name string) bool { return slices.Contains(names, name) }
	if of("RSS") && slices.ContainsFunc([]string{"VSZ", "%MEM", "%CPU", "TTY", "STAT", "CMD", "COMMAND", "Command"}, of) {
		return map[string]bool{"RSS": true, "VSZ": true}
	}
	return nil
}

// unnamed reports whether the first line of a table is a row already: nothing in it is
// a name.
func unnamed(cells []string) bool {
	if _, ok := parseClock(cells[0]); !ok {
		return false
	}
	for _, c := range cells[1:] {
		if _, _, ok := parseSize(c, 1); !ok {
			return false
		}
	}
	return len(cells) > 1
}

// ofMemory reports whether all levels are in columns without a name, or in one whose
// name suggests memory: words that blanks separate may be any text.
func (h *header) ofMemory() bool {
	return !slices.ContainsFunc(h.levels, func(l level) bool {
		return !memoryName.MatchString(l.name) && !strings.HasPrefix(l.name, unnamedColumn)
	})
}

// unnamedColumn begins the name of a column that has none.
const unnamedColumn = "column "

// headerOf finds out what the columns are, from their names, if there are any, and a row.
func headerOf(names, row []string) header {
	h := header{names: names, time: -1}
	if names == nil {
		h.names = make([]string, len(row))
		for i := range h.names {
			h.names[i] = unnamedColumn + strconv.Itoa(i+1)
		}
	}
	h.findTime(row)
	if h.time < 0 {
		return h
	}
	h.clock = clock{factor: 1, unit: h.unit}
	if h.unit == "" {
		h.clock = clockOf(h.names[h.time], row[h.time])
	}
	var sizes, plain []int
	capacity, left := -1, -1
	for i, name := range h.names {
		if i == h.time || i >= len(row) {
			continue
		}
		_, _, number := parseSize(row[i], 1)
		switch {
		case groupName.MatchString(name):
			h.groups = append(h.groups, i)
		case !number || otherName.MatchString(name) && !strings.Contains(strings.ToLower(name), "byte"):
		case capacityName.MatchString(name) && memoryName.MatchString(name):
			capacity = i
		case freeName.MatchString(name): // what is left, not what is held
			if memoryName.MatchString(name) {
				left = i
			}
		case memoryName.MatchString(name):
			sizes = append(sizes, i)
		default:
			plain = append(plain, i)
		}
	}
	if len(sizes) == 0 && left >= 0 {
		h.fromLeft(left, capacity)
		return h
	}
	if len(sizes) == 0 {
		// names such as "value", or those of the processes
		sizes = plain
		if len(sizes) == 0 && capacity >= 0 {
			sizes, capacity = []int{capacity}, -1 // such as total_rss
		}
	}
	most, plainFactor := 1.0, 1.0
	if capacity >= 0 {
		if most = factorOf(h.names[capacity]); most == 1 && wholeDevice(row[capacity]) {
			most, plainFactor = 1<<20, 1<<20
		}
	}
	small := kibibytes(h.names)
	for _, i := range sizes {
		l := level{name: h.names[i], column: i, factor: factorOf(h.names[i]), capacity: capacity, maxPlain: most, memory: memoryName.MatchString(h.names[i])}
		switch {
		case small[l.name]:
			l.factor = 1 << 10
		case l.factor == 1:
			l.factor = plainFactor
		}
		h.levels = append(h.levels, l)
	}
	return h
}

// wholeDevice reports whether a total without a unit is the size of a GPU in MiB, as nvidia-smi
// and NVML's tools print it.
func wholeDevice(cell string) bool {
	const minMiB, maxMiB = 2000, 1 << 20
	n, err := strconv.ParseInt(cell, 10, 64)
	return err == nil && n >= minMiB && n <= maxMiB
}

// fromLeft is what a table states that has no more than what is left, and of what.
func (h *header) fromLeft(left, capacity int) {
	if capacity < 0 {
		h.reason = fmt.Errorf("the column %q states what is left, not what is held: add what is in use (memory.used of nvidia-smi), or the total beside it", h.names[left])
		return
	}
	name := h.names[capacity] + " less " + h.names[left]
	h.levels = []level{{name: name, column: left, factor: factorOf(h.names[left]), capacity: capacity, maxPlain: factorOf(h.names[capacity]), left: true, memory: true}}
}

// smiTime is how nvidia-smi --query-gpu writes times.
var smiTime = lazyregexp.New(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}$`)

// smiHeader is the header of a table that nvidia-smi wrote without one. Columns whose cells
// state a size are levels, but for the largest of several, which is taken for the total;
// what is a small number or a name is that of a device.
func smiHeader(row []string) header {
	h := header{names: make([]string, len(row)), clock: clockOf("", row[0])}
	total, most := -1, 0.0
	var sizes []int
	for i, cell := range row {
		h.names[i] = unnamedColumn + strconv.Itoa(i+1)
		if i == 0 {
			continue
		}
		x, _, ok := parseSize(cell, 1)
		_, err := strconv.Atoi(cell)
		switch {
		case ok && strings.HasSuffix(cell, "iB"):
			if sizes = append(sizes, i); x > most {
				total, most = i, x
			}
		case err == nil && len(cell) < 3, !ok && !strings.ContainsAny(cell, "%[") && !strings.HasSuffix(cell, " W") && !strings.HasSuffix(cell, "MHz"):
			h.names[i] = "device"
			h.groups = append(h.groups, i)
		}
	}
	if len(sizes) < 2 {
		total = -1
	}
	for _, i := range sizes {
		if i != total {
			h.levels = append(h.levels, level{name: "GPU memory, " + h.names[i], column: i, factor: 1, capacity: total, maxPlain: 1, memory: true})
		}
	}
	if len(h.levels) == 0 {
		h.reason = fmt.Errorf("its columns, %d of them, have neither names nor units: let nvidia-smi write them, with --format=csv instead of noheader and nounits", len(row))
	}
	return h
}

// findTime finds the column of times: the first, or one that is named so.
func (h *header) findTime(row []string) {
	for i, name := range h.names {
		if i < len(row) && timeName.MatchString(name) {
			if _, ok := parseClock(row[i]); ok {
				h.time = i
				return
			}
		}
	}
	if len(row) == 0 || len(h.names) > 0 && groupName.MatchString(h.names[0]) && len(row) > 1 && !strings.Contains(row[0], ":") {
		return
	}
	if c, ok := parseClock(row[0]); ok {
		h.time = 0
		// Unless they are seconds since 1970, whatever they are called.
		if m := countName.FindStringSubmatch(h.names[0]); m != nil && c == (clock{factor: 1}) && !since1970(row[0]) {
			h.unit = unitOfCount(m[1])
		}
	}
}

// listedEvents is why a table that `nsys stats` or Nsight Compute wrote has no levels; nil if
// it is another one.
func listedEvents(names string) error {
	for _, report := range []struct{ words, what string }{
		{"Start (ns),Duration (ns)", "a list of kernels and copies"},
		{"Total Time (ns)", "sums of times"},
		{"Total (MB),Count,Avg (MB)", "sums of copies by direction"},
	} {
		if strings.Contains(names, report.words) {
			return fmt.Errorf("this table of `nsys stats` is %s, not levels of memory: run `nsys export --type sqlite REPORT.nsys-rep` on a report of `nsys profile --cuda-memory-usage=true`, and give strandline the .sqlite file", report.what)
		}
	}
	return nil
}

// repeats reports whether a row is the header once more.
func (h *header) repeats(cells []string) bool { return slices.Equal(cells, h.names) }

// A cell is what a row states of a level, in bytes: NaN is missing.
type cell struct{ bytes, limit float64 }

// read reads the levels of a row into out. It reports whether all are sizes.
func (h *header) read(cells []string, out []cell) bool {
	for i := range h.levels {
		l := &h.levels[i]
		out[i] = cell{math.NaN(), math.NaN()}
		if l.column >= len(cells) {
			continue
		}
		v, limit, ok := parseSize(cells[l.column], l.factor)
		if !ok {
			return false
		}
		out[i] = cell{v, limit}
		if v > 0 && !l.memory {
			_, err := strconv.ParseFloat(cells[l.column], 64)
			l.memory = err != nil // it has a unit
		}
		if l.capacity >= 0 && l.capacity < len(cells) {
			if v, _, ok := parseSize(cells[l.capacity], l.maxPlain); ok {
				out[i].limit = v
			}
		}
		if l.left {
			out[i].bytes = out[i].limit - out[i].bytes
		}
	}
	return true
}

// parseSize reads a size; a number without a unit is of factor bytes. Two sizes with a
// slash between them, as docker stats prints, are a level and its limit. What states that
// it is missing is NaN.
func parseSize(cell string, factor float64) (bytes, limit float64, ok bool) {
	limit = math.NaN()
	if x, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsInf(x, 0) { // NaN is missing
		const missing = -1 // as many programs write it
		if x == missing {
			x = math.NaN()
		}
		return x * factor, limit, true
	}
	switch strings.ToLower(strings.Trim(cell, "[]")) {
	case "", "?", "-", "--", "na", "n/a", "nan", "null", "none", "not supported", "not available", "unknown error", "insufficient permissions":
		return math.NaN(), limit, true
	}
	if a, b, two := strings.Cut(cell, "/"); two {
		bytes, _, ok = parseSize(strings.TrimSpace(a), factor)
		if ok {
			limit, _, ok = parseSize(strings.TrimSpace(b), factor)
		}
		return bytes, limit, ok
	}
	n, err := units.ParseBytes(cell)
	return float64(n), limit, err == nil
}
