// Package proc reads saved texts about a process or a machine: smaps,
// smaps_rollup, status, the output of pmap and free, meminfo, and memory.stat of a
// cgroup. A text can hold several of one kind, in the order of time, with the time before
// each.
package proc

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/profiles"
	"strandline/times"
	"strandline/units"
)

// A form is one kind of text.
type form struct {
	name string
	// first is the line with which a block of this form begins, so of the next one;
	// later is in one of the lines that follow, if a line like first can be anything.
	first, later *lazyregexp.Regexp
	parse        func(lines []string) (*profiles.Host, error)
}

var forms = []form{
	{"smaps_rollup", lazyregexp.New(`^[0-9a-f]+-[0-9a-f]+ .*\[rollup\]$`), nil, smaps},
	{"smaps", lazyregexp.New(`^[0-9a-f]{4,16}-[0-9a-f]{4,16}( |$)`), lazyregexp.New(`(?m)^Rss: +\d+ kB`), smaps},
	{"status", lazyregexp.New(`^(Name|Vm[A-Z][A-Za-z]+|RssAnon):\t`), lazyregexp.New(`(?m)^VmRSS:\s`), status},
	{"pmap", lazyregexp.New(`^ *Address +(Kbytes +RSS|Perm +Offset) `), nil, pmap},
	{rowForm, mappingRow, nil, rows},
	{"free", lazyregexp.New(`^ +total +used +free +shared `), lazyregexp.New(`(?m)^Mem: `), free},
	{"meminfo", lazyregexp.New(`^MemTotal: +\d+ kB$`), nil, meminfo},
	{"memory.stat", lazyregexp.New(`^(anon|cache) \d+$`), lazyregexp.New(`(?m)^(file|rss|kernel_stack|slab|mapped_file) \d+\r?$`), memoryStat},
}

// formOf is the form of a text that begins with head, nil for others. The command
// line that pmap prints, or a prompt, may be before it.
func formOf(head string) *form {
	const before = 3
	lines := strings.SplitN(head, "\n", before+2)
	for i := range min(len(lines), before) {
		line := strings.TrimRight(lines[i], "\r ")
		for k := range forms {
			f := &forms[k]
			if f.first.MatchString(line) && (f.later == nil || f.later.MatchString(head)) {
				return f
			}
		}
	}
	return nil
}

// Is reports whether a text that begins with head is of a form that is read.
func Is(head []byte) bool { return formOf(string(head)) != nil }

// maxText is the largest part of a text that is read.
const maxText = 256 << 20

// Read reads a text. Of several blocks the last is the file's, and the others are
// earlier ones. A block that cannot be read ends the reading.
func Read(r io.Reader) (*profiles.File, error) {
	in := bufio.NewReaderSize(io.LimitReader(r, maxText), 64<<10)
	head, _ := in.Peek(64 << 10)
	form := formOf(string(head))
	if form == nil {
		return nil, profiles.ErrOther
	}
	f := &profiles.File{Format: form.name}
	b := blocks{form: form, file: f}
	s := bufio.NewScanner(in)
	s.Buffer(nil, 64<<10)
	for s.Scan() && f.Partial == nil {
		b.add(strings.TrimRight(s.Text(), "\r"))
	}
	b.end()
	if f.Host != nil && len(f.Moments) != len(f.Earlier)+1 {
		f.Moments = nil
	}
	if len(f.Mappings) != len(f.Earlier)+1 {
		f.Mappings = nil
	}
	if err := s.Err(); err != nil && f.Partial == nil {
		f.Partial = fmt.Errorf("line %d: %w", b.line+1, err)
	}
	if f.Host == nil {
		return nil, fmt.Errorf("a text of %s that cannot be read: %w", form.name, f.Partial)
	}
	return f, nil
}

// failed is what a command prints of a process that has ended, or may not be read.
var failed = lazyregexp.New(`: (No such (file or directory|process)|Permission denied|Operation not permitted)$`)

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

// blocks collects the lines of a block.
type blocks struct {
	form    *form
	file    *profiles.File
	lines   []string
	from    int // the line before the block
	line    int
	address uint64 // of the last mapping
	key     string // the first name of a block of memory.stat or status
	clock   times.Clock
	rows    rowBlock
	pid     int      // that pmap prints before a block
	at      *float64 // the time before the block
}

func (b *blocks) add(line string) {
	if b.begins(line) {
		b.end()
		b.from = b.line
	}
	b.line++
	if strings.TrimSpace(line) == "" {
		return
	}
	if at, ok := b.clock.Alone(line); ok {
		b.end()
		b.from, b.at = b.line, &at
		return
	}
	if m := pmapHead.FindStringSubmatch(line); m != nil && b.form.name == "pmap" {
		b.end()
		b.from, b.pid = b.line, number(m[1])
		return
	}
	if failed.MatchString(line) || b.form.name != "pmap" && !strings.ContainsFunc(line, alphanumeric) {
		b.end()
		b.from, b.at = b.line, nil
		return
	}
	if len(b.lines) > 0 || b.form.first.MatchString(line) || b.form.name == rowForm && sumRow.MatchString(line) {
		b.lines = append(b.lines, line)
	} else {
		b.from = b.line
	}
}

// begins reports whether a line is the first of another block.
func (b *blocks) begins(line string) bool {
	if b.form.name == rowForm {
		return b.rows.begins(line)
	}
	if !b.form.first.MatchString(line) {
		return false
	}
	switch b.form.name {
	case "smaps": // every mapping begins so: the addresses of a block rise
		from, _, _ := strings.Cut(line, "-")
		address, err := strconv.ParseUint(from, 16, 64)
		lower := err == nil && address < b.address
		b.address = address
		return lower
	case "memory.stat", "status": // which may be some of its lines
		key, _, _ := strings.Cut(line, " ")
		if b.key == "" {
			b.key = key
		}
		return key == b.key
	}
	return true
}

// end reads the block that is complete.
func (b *blocks) end() {
	if len(b.lines) == 0 || b.file.Partial != nil {
		return
	}
	h, err := b.form.parse(b.lines)
	if err != nil {
		b.file.Partial = fmt.Errorf("in the part that begins on line %d: %w", b.from+1, err)
		return
	}
	if b.file.Host != nil {
		b.file.Earlier = append(b.file.Earlier, *b.file.Host)
	}
	if names := mappingsOf(b.form.name, b.lines); names != nil {
		b.file.Mappings = append(b.file.Mappings, names)
	}
	if b.at != nil {
		b.file.Moments = append(b.file.Moments, *b.at)
	}
	if b.pid > 0 {
		h.PID = b.pid
	}
	b.file.Host, b.lines, b.at, b.pid = h, nil, nil, 0
}

// pmapHead is the line with which pmap begins: the number of the process and its command.
var pmapHead = lazyregexp.New(`^(\d+): `)

// number is a process ID; 0 if it is none.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// bytes is a size as the model holds it.
func bytes(n uint64) *int64 {
	size := int64(min(n, 1<<62))
	return &size
}

// smaps sums mappings. A rollup has one for all.
func smaps(lines []string) (*profiles.Host, error) {
	list, err := procfs.ParseSmaps(reader(lines))
	if err != nil {
		return nil, err
	}
	h := summed(list)
	if len(list) != 1 || list[0].Path != "[rollup]" {
		return h, nil
	}
	h = &profiles.Host{RSS: h.RSS, Anonymous: h.Anonymous, HugePages: h.HugePages, Swap: h.Swap, Pinned: h.Pinned, PrivateDirty: h.PrivateDirty, SharedDirty: h.SharedDirty}
	k := kilobytes(lines)
	h.Shared = k["Pss_Shmem"] // its share of them: the kernel states no other figure
	if h.Shared != nil {
		rest := max(*h.RSS-*h.Anonymous-*h.Shared, 0)
		h.File = &rest
	}
	return h, nil
}

func reader(lines []string) io.Reader { return strings.NewReader(strings.Join(lines, "\n")) }

// kilobytes are the lines "Name: 123 kB".
func kilobytes(lines []string) map[string]*int64 {
	out := map[string]*int64{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		number, ok := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if n, err := strconv.ParseUint(number, 10, 52); ok && err == nil {
			out[name] = bytes(n << 10)
		}
	}
	return out
}

// status reads /proc/PID/status. A kernel thread has no memory.
func status(lines []string) (*profiles.Host, error) {
	k := kilobytes(lines)
	h := &profiles.Host{
		RSS: k["VmRSS"], Peak: k["VmHWM"], Anonymous: k["RssAnon"], File: k["RssFile"], Shared: k["RssShmem"], Swap: k["VmSwap"], Kernel: k["VmPTE"],
		Pinned: larger(k["VmLck"], k["VmPin"]), Writable: k["VmData"], Threads: threads(lines),
	}
	if h.RSS == nil {
		return nil, fmt.Errorf("it states no VmRSS: a kernel thread, a process that ended, or a text that is cut off")
	}
	for _, line := range lines {
		if pid, ok := strings.CutPrefix(line, "Pid:"); ok {
			h.PID = number(pid)
		}
	}
	return h, nil
}

// free reads the row of memory. Columns are named, as they differ by release.
func free(lines []string) (*profiles.Host, error) {
	names := columns.FindAllString(lines[0], -1)
	for _, line := range lines[1:] {
		row, ok := strings.CutPrefix(line, "Mem:")
		if !ok {
			continue
		}
		cells := columns.FindAllString(row, -1)
		unit, at := unitOf(cells), map[string]*int64{}
		for i, cell := range cells[:min(len(cells), len(names))] {
			if n, err := units.ParseBytes(cell + unit); err == nil {
				at[names[i]] = &n
			}
		}
		if at["total"] == nil {
			break
		}
		return &profiles.Host{Total: at["total"], Available: at["available"], Shared: at["shared"]}, nil
	}
	return nil, fmt.Errorf("the row of memory is missing")
}

// unitOf is the unit that numbers of free without a letter have, inferred from the
// size of the machine: KiB, or MiB, GiB and bytes with -m, -g and -b.
func unitOf(cells []string) string {
	if len(cells) == 0 {
		return ""
	}
	switch n, err := strconv.ParseInt(cells[0], 10, 64); {
	case err != nil: // it has a letter
		return ""
	case n < 1<<10:
		return "GiB"
	case n < 1<<21:
		return "MiB"
	case n < 1<<33:
		return "KiB"
	}
	return "B"
}

// larger is the larger of two sizes that a text may state.
func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// threads is how many there are, of a status.
func threads(lines []string) *int64 {
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "Threads:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32); err == nil && n > 0 {
				return &n
			}
		}
	}
	return nil
}

func meminfo(lines []string) (*profiles.Host, error) {
	k := kilobytes(lines)
	h := &profiles.Host{
		Total: k["MemTotal"], Available: k["MemAvailable"], Anonymous: k["AnonPages"], Shared: k["Shmem"], Kernel: k["Slab"], HugePages: k["AnonHugePages"],
		Cache: subtract(k["Cached"], k["Shmem"]), Pinned: k["Mlocked"],
	}
	h.File = h.Cache
	return h, nil
}

// with is the sum of two sizes of which the second may not be stated.
func with(a, b *int64) *int64 {
	if a == nil || b == nil {
		return a
	}
	sum := units.Sum(*a, *b)
	return &sum
}

// subtract is a size without a part of it, where both are stated.
func subtract(all, part *int64) *int64 {
	if all == nil || part == nil {
		return all
	}
	rest := max(*all-*part, 0)
	return &rest
}

// memoryStat reads memory.stat of either hierarchy. The cache counts shared memory
// too in both; rss of the older one is anonymous memory alone.
func memoryStat(lines []string) (*profiles.Host, error) {
	stat := map[string]*int64{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseUint(value, 10, 62); err == nil {
			stat[name] = bytes(n)
		}
	}
	pick := func(names ...string) *int64 {
		for _, name := range names {
			if stat[name] != nil {
				return stat[name]
			}
		}
		return nil
	}
	h := &profiles.Host{
		Anonymous: pick("anon", "total_rss", "rss"), Shared: pick("shmem", "total_shmem"), Pinned: pick("total_unevictable", "unevictable"),
		Kernel: with(pick("kernel", "slab"), stat["sock"]), HugePages: pick("anon_thp", "total_rss_huge", "rss_huge"), Swap: pick("total_swap", "swap"),
	}
	if h.Anonymous == nil {
		return nil, fmt.Errorf("it states no anonymous memory")
	}
	h.Cache = subtract(pick("file", "total_cache", "cache"), h.Shared)
	h.File = h.Cache
	return h, nil
}
