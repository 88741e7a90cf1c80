//go:build unix

package cli

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// mutantFormats are the kinds of files that other tools and the live side write.
func mutantFormats(t *testing.T) []mutantKind {
	judged := []string{"diagnose FILE", "diagnose --json FILE", "inspect FILE", "view --html DIR/page.html FILE"}
	return []mutantKind{
		{file: "w.strandline", seeds: [][]byte{framedText(0x5E, watchText(rand.New(rand.NewPCG(1, 1))))}, forge: func(r *rand.Rand) []byte { return smallest(r, 0x5E, watchText) }, commands: judged},
		{file: "t.strandline", seeds: [][]byte{framedText(0x5D, traceText(rand.New(rand.NewPCG(1, 1))))}, forge: func(r *rand.Rand) []byte { return smallest(r, 0x5D, traceText) },
			commands: append(judged, "export --to folded -o DIR/out FILE", "export --to pprof -o DIR/out FILE")},
		{file: "rec/strandline.json", seeds: [][]byte{manifestText(rand.New(rand.NewPCG(1, 1)))}, forge: manifestText, commands: []string{"diagnose DIR/rec", "diagnose --json DIR/rec", "compare DIR/rec", "view --html DIR/page.html DIR/rec"}},
		{file: "n.sqlite", seeds: [][]byte{nsysDatabase(t)}, forge: func(r *rand.Rand) []byte { return linkedPages(r, nsysDatabase(t)) }, commands: judged},
		{file: "j.prof", seeds: seedsOf(t, "examples/jax/*.prof"), forge: forgedProfile, pack: true, commands: append(judged, "export --to folded -o DIR/out FILE", "export --to csv -o DIR/out FILE", "diagnose FILE FILE FILE")},
		{file: "k.json", seeds: [][]byte{kinetoText(rand.New(rand.NewPCG(1, 1)))}, forge: kinetoText, pack: true, commands: judged},
		{file: "l.csv", seeds: [][]byte{levelsText(rand.New(rand.NewPCG(1, 1)))}, forge: levelsText, pack: true, commands: judged},
		{file: "p.txt", seeds: [][]byte{[]byte(procText)}, pack: true, commands: judged},
	}
}

// number is one that breaks arithmetic, as JSON has it.
func number(r *rand.Rand) string { return numbers[r.IntN(len(numbers)-1)] }

// some is a list of up to so many items.
func some(r *rand.Rand, most int, item func() string) string {
	var out []string
	if r.IntN(4) == 0 { // the same again and again, which packs well
		out = append(out, strings.TrimSuffix(strings.Repeat(item()+",", 1+r.IntN(40*most)), ","))
	}
	for range r.IntN(most + 1) {
		out = append(out, item())
	}
	return "[" + strings.Join(out, ",") + "]"
}

// framedText is a recording of a kind, of one frame.
func framedText(kind byte, text []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x184D2A00|uint32(kind))
	b = append(binary.LittleEndian.AppendUint32(b, 10), "strandline"...)
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	defer z.Close()
	return z.EncodeAll(text, b)
}

// smallest packs texts until one is small enough.
func smallest(r *rand.Rand, kind byte, text func(*rand.Rand) []byte) []byte {
	for {
		if out := framedText(kind, text(r)); len(out) <= mutantSize {
			return out
		}
	}
}

// watchText is the text of a recording of a watch.
func watchText(r *rand.Rand) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"schema":"strandline.recording/3","of":"watch","run":%s}`+"\n", pick(r, "1", number(r)))
	pids := pick(r, 3, 3, 50, 3000)
	for i := range 1 + r.IntN(pick(r, 20, 60, 3000)) {
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, `{"at_seconds":%d}`+"\n", i/pick(r, 1, 1, 100))
			continue
		}
		process := func() string {
			return fmt.Sprintf(`{"pid":%d,"started_ticks":%d,"name":"a","command":"b","state":"s","group":"g%d","host":{"anonymous_bytes":%s},"devices":[{"device":%d,"used_bytes":%s}],"pausable":%s,"grown":{"classes":[{"class":"x","bytes":1}],"mappings":%s}}`,
				r.IntN(pids), r.IntN(2), r.IntN(3), pick(r, fmt.Sprint(i<<20), number(r)), r.IntN(3), pick(r, "1", fmt.Sprint(i<<20), number(r)), some(r, 1, func() string { return `{"tag":"w","held_bytes":` + number(r) + `}` }),
				some(r, 1, func() string {
					return `{"start":` + number(r) + `,"end":` + number(r) + `,"resident_bytes":` + number(r) + `}`
				}))
		}
		rest := fmt.Sprintf(`,"rest":{"devices":%s,"groups":%s,"machine":{"total_bytes":%s,"available_bytes":%s}}`,
			some(r, 2, func() string {
				return fmt.Sprintf(`{"device":%d,"used_bytes":%s,"total_bytes":%s,"processes":[{"pid":1,"used_bytes":%s}]}`, r.IntN(3), number(r), number(r), number(r))
			}),
			some(r, 2, func() string {
				return fmt.Sprintf(`{"name":"g%d","used_bytes":%d,"limit_bytes":%s,"oom_kills":%d}`, r.IntN(3), i<<20, number(r), i)
			}), number(r), number(r))
		fmt.Fprintf(&b, `{"time":"2026-11-28T01:03:03Z","at_seconds":%s,"processes":%s,"ended":%s%s%s}`+"\n", pick(r, fmt.Sprint(i), fmt.Sprint(i), number(r)), some(r, pick(r, 3, 30), process),
			some(r, 1, func() string { return fmt.Sprintf(`{"PID":%d,"Started":0}`, r.IntN(pids)) }), pick(r, "", rest), pick(r, "", "", `,"over":[{"name":"g1","oom_kills":9}]`))
		if b.Len() > 4<<20 {
			break
		}
	}
	return b.Bytes()
}

// traceText is the text of a recording of a trace.
func traceText(r *rand.Rand) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"schema":"strandline.recording/3","of":"trace","pid":%s,"name":"a","rung":"bpf","began_us":%s}`+"\n", number(r), number(r))
	for i := range 1 + r.IntN(pick(r, 10, 300)) {
		id := r.IntN(5)
		b.WriteString(pick(r,
			fmt.Sprintf(`{"stack":{"id":%d,"call":"mmap","frames":%s}}`, id, some(r, 20, func() string { return `{"function":"f` + fmt.Sprint(r.IntN(5)) + `","module":"m"}` })),
			fmt.Sprintf(`{"mark":{"at_seconds":%d,"rss_bytes":%s,"stacks":%s}}`, i, number(r), some(r, 5, func() string { return fmt.Sprintf(`{"id":%d,"live_bytes":%s}`, r.IntN(5), number(r)) })),
			fmt.Sprintf(`{"document":{"schema":"strandline.trace/1","pid":1,"duration_seconds":%s,"stacks":%s,"findings":%s,"processes":%s}}`, number(r),
				some(r, 5, func() string {
					return fmt.Sprintf(`{"id":%d,"live_bytes":%s,"live_count":%s,"trend":%s,"frames":%s}`, id, number(r), number(r), some(r, 5, func() string { return "1" }), some(r, 3, func() string { return `{"function":"f"}` }))
				}),
				some(r, 3, func() string {
					return `{"kind":"leak","severity":"problem","title":"x","bytes":` + number(r) + `,"evidence":{"stacks":[1,2]}}`
				}), some(r, 3, func() string { return `{"pid":1,"command":"x"}` })),
			fmt.Sprintf(`{"gpu":{"pids":[1],"devices":%s,"pieces":%s}}`, some(r, 2, func() string { return "{}" }), some(r, 5, func() string { return `{"bytes":` + number(r) + `}` })),
			fmt.Sprintf(`{"hand_over":{"began_seconds":%s,"ended_seconds":%s}}`, number(r), number(r))) + "\n")
		if b.Len() > 4<<20 {
			break
		}
	}
	return b.Bytes()
}

// manifestText is the manifest of a recording.
func manifestText(r *rand.Rand) []byte {
	file := func() string {
		return pick(r, "a.pickle", "a.pickle", "../rec/a.pickle", "/etc/passwd", "x/"+strings.Repeat("y", r.IntN(300)))
	}
	process := func() string {
		return fmt.Sprintf(`{"pid":%d,"rank":%s,"local_rank":%d,"world_size":%s,"role":"main","command":"x","devices":[{"index":0,"name":"a","total_bytes":%s,"uuid":"u"}],"recorded_since":"2026-11-28T01:03:03Z","out_of_memory":%s,"reclaims":%s,"dumps":%s}`,
			r.IntN(4), pick(r, "0", "1", number(r)), r.IntN(2), pick(r, "2", number(r)), number(r),
			some(r, 2, func() string {
				return `{"time":"2026-11-28T01:03:03Z","device":0,"request_bytes":` + number(r) + `,"device_total_bytes":` + number(r) + `}`
			}),
			some(r, 1, func() string { return `{"reason":"x","collected_bytes":` + number(r) + `}` }),
			some(r, 3, func() string {
				return `{"file":"` + file() + `","time":"2026-11-28T01:03:03Z","reason":"step","step":` + number(r) + `,"devices":[{"device":0,"reserved_bytes":` + number(r) + `}]}`
			}))
	}
	out := fmt.Sprintf(`{"schema":"strandline.record/1","command":["x"],"started":"2026-11-28T01:03:03Z","processes":%s,"readings":%s,"notes":%s}`, some(r, 3, process),
		some(r, 2, func() string {
			return `{"time":"2026-11-28T01:03:03Z","processes":[{"pid":1,"uuid":"u","bytes":` + number(r) + `}]}`
		}), some(r, 5, func() string { return fmt.Sprintf(`{"pid":%d,"command":"c","why":"w"}`, r.IntN(9)) }))
	return []byte(out)
}

// nsysDatabase is a small export of Nsight Systems.
func nsysDatabase(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "n.sqlite")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"PRAGMA page_size=512", "VACUUM",
		"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER)",
		"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, nameId INTEGER, returnValue INTEGER)", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 60) INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT i, 1, 0, i/2*4096, 4096, 2, i%2 FROM n",
		"INSERT INTO StringIds VALUES (1, 'cudaMalloc')", "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 1, 2)"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// linkedPages makes pages of a database lead to others, or to themselves.
func linkedPages(r *rand.Rand, data []byte) []byte {
	const size = 512
	pages := len(data) / size
	for range 1 + r.IntN(3) {
		page := data[(1+r.IntN(pages-1))*size:][:size]
		cells := 1 + r.IntN(70)
		clear(page)
		page[0] = pick(r, byte(5), 2)
		binary.BigEndian.PutUint16(page[3:], uint16(cells))
		binary.BigEndian.PutUint16(page[5:], size-5)
		binary.BigEndian.PutUint32(page[8:], uint32(1+r.IntN(pages+1)))
		for i := range cells {
			at := size - 5*(1+r.IntN(20))
			binary.BigEndian.PutUint16(page[12+2*i:], uint16(at))
			binary.BigEndian.PutUint32(page[at:], uint32(1+r.IntN(pages+1)))
		}
	}
	return data
}

// forgedProfile is a profile of JAX whose samples share locations.
func forgedProfile(r *rand.Rand) []byte {
	field := func(n int, body []byte) []byte {
		b := binary.AppendUvarint(nil, uint64(n<<3|2))
		return append(binary.AppendUvarint(b, uint64(len(body))), body...)
	}
	varint := func(n int, v uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3)), v) }
	texts := []string{"", "allocations", "count", "space", "bytes", "device", "kind", "buffer", "f", "/home/u/a.py"}
	out := append(field(1, append(varint(1, 1), varint(2, 2)...)), field(1, append(varint(1, 3), varint(2, 4)...))...)
	for i := range uint64(1 + r.IntN(pick(r, 5, 100))) { // functions and locations
		out = append(out, field(5, append(varint(1, i+1), append(varint(2, 8), varint(4, 9)...)...))...)
		var lines []byte
		for range 1 + r.IntN(pick(r, 1, 20)) {
			lines = append(lines, field(4, append(varint(1, 1+uint64(r.IntN(int(i)+1))), varint(2, uint64(r.IntN(100)))...))...)
		}
		out = append(out, field(4, append(varint(1, i+1), lines...))...)
	}
	for i := range r.IntN(pick(r, 10, 400)) {
		var where []byte
		for range r.IntN(pick(r, 4, 100)) {
			where = append(where, varint(1, 1+uint64(r.IntN(5)))...)
		}
		texts = append(texts, fmt.Sprintf("d%d", i))
		value := pick(r, uint64(1000), uint64(i)<<20, 1<<63, 1<<62)
		sample := append(where, field(2, binary.AppendUvarint(binary.AppendUvarint(nil, 1), value))...)
		sample = append(sample, field(3, append(varint(1, 5), varint(2, uint64(len(texts)-1))...))...)
		out = append(out, field(2, append(sample, field(3, append(varint(1, 6), varint(2, 7)...))...))...)
	}
	for _, s := range texts {
		out = append(out, field(6, []byte(s))...)
	}
	if len(out) > mutantSize {
		if out = packedSmall(out, false); len(out) > mutantSize {
			return out[:mutantSize]
		}
	}
	return out
}

// kinetoText is a trace of torch.profiler.
func kinetoText(r *rand.Rand) []byte {
	var events []string
	size := 0
	for i := 0; i < 1+r.IntN(pick(r, 20, 200)) && size < mutantSize-500; i++ {
		e := pick(r,
			fmt.Sprintf(`{"ph":"i","name":"[memory]","pid":7,"tid":7,"ts":%d,"args":{"Total Allocated":%s,"Bytes":%s,"Addr":%d,"Device Id":%s,"Device Type":%s}}`, i, number(r), pick(r, "512", "-512", number(r)), r.IntN(9), pick(r, "0", number(r)), pick(r, "1", number(r))),
			fmt.Sprintf(`{"ph":"X","cat":"%s","name":"f%d","pid":7,"tid":%d,"ts":%d,"dur":%s,"args":{"Call stack":"a.py(1): f;b.py(2): g"}}`, pick(r, "cpu_op", "python_function"), r.IntN(3), r.IntN(2), i, pick(r, "1", "100000", number(r))),
			fmt.Sprintf(`{"ph":"X","name":"ProfilerStep#%d","pid":7,"tid":7,"ts":%d,"dur":10}`, r.IntN(50), i))
		size += len(e)
		events = append(events, e)
	}
	text, _ := json.Marshal(map[string]any{"schemaVersion": 1})
	return []byte(strings.TrimSuffix(string(text), "}") + `,"traceEvents":[` + strings.Join(events, ",") + "]}")
}

// levelsText is a table of memory over time.
func levelsText(r *rand.Rand) []byte {
	columns := 1 + r.IntN(pick(r, 3, 200))
	out := "time,pid"
	for i := range columns {
		out += pick(r, ",rss_mb", ",x", ",memory.used [MiB]", ",total_bytes", fmt.Sprintf(",c%d", i))
	}
	for i := 0; len(out) < mutantSize-20*columns && i < 400; i++ {
		out += fmt.Sprintf("\n%s,%d", pick(r, fmt.Sprint(i), fmt.Sprint(i), number(r), "10:00"), r.IntN(pick(r, 1, 3, 4000)))
		for range columns {
			out += "," + pick(r, fmt.Sprint(i), fmt.Sprint(i<<20), number(r), "1 MiB / 2 GiB", "-5")
		}
	}
	return []byte(out + "\n")
}

// procText are texts of /proc and of tools that print it.
const procText = `== 10:00:00
Name:	python
Pid:	7
VmPeak:	  900 kB
VmRSS:	  800 kB
RssAnon:	  500 kB
Threads:	3
7f0000000000-7f0000200000 rw-p 00000000 00:00 0                          [heap]
Size:               2048 kB
Rss:                1024 kB
Pss:                1024 kB
Private_Dirty:      1024 kB
Swap:                  0 kB
VmFlags: rd wr mr mw me ac
7f0000400000-7f0000600000 r-xp 00000000 08:01 77                         /usr/lib/libc.so.6
Size:               2048 kB
Rss:                 512 kB
               total        used        free      shared  buff/cache   available
Mem:        32000000     1000000    30000000        1000      500000    30500000
anon 1048576
file 4096
kernel_stack 100
|    0   N/A  N/A      1234      C   python                                     1024MiB |
INFO 11-28 01:03:03 [loggers.py:118] Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.5%
`
