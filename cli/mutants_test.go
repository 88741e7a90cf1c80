//go:build unix

package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"strandline/internal/test/live"
)

// What a command may take on a file of 20 kB.
const (
	mutantSize   = 20_000
	mutantTime   = 2 * time.Second
	mutantMemory = 500 << 20
	mutantOutput = 5 << 20
)

// TestMutants runs every command on damaged and made-up files of at most 20 kB of
// every kind that is read, and reports those that panic, take more than 2 s or
// 500 MB, or print more than 5 MB. It is run by hand:
//
//	STRANDLINE_MUTANTS=0:400 go test ./cli -run TestMutants -timeout 2h -v
//
// runs the mutants 0 to 399; each is made of its number alone. A process should run
// some hundred, as libraries keep the flags of each command. With
// STRANDLINE_MUTANTS_BINARY, that program runs the commands. Those that fail
// stay in STRANDLINE_MUTANTS_KEEP, by default a folder beside the temporary files.
// A panic ends the test: the number and the command of the mutant under way are in
// the file "current" there.
func TestMutants(t *testing.T) {
	var from, to int
	if _, err := fmt.Sscanf(live.Given(t, "STRANDLINE_MUTANTS"), "%d:%d", &from, &to); err != nil {
		t.Fatal(err)
	}
	keep := os.Getenv("STRANDLINE_MUTANTS_KEEP")
	if keep == "" {
		keep = filepath.Join(os.TempDir(), "strandline-mutants")
	}
	if err := os.MkdirAll(keep, 0o777); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kinds := slices.Concat(mutantKinds(t), mutantFormats(t), mutantAnswers(t, dir))
	if err := os.Mkdir(filepath.Join(dir, "rec"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rec", "a.pickle"), kinds[0].seeds[0], 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMeter(t)
	var worst struct {
		took   time.Duration
		memory uint64
		output int
	}
	codes := map[int]int{}
	for i := from; i < to; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		k := &kinds[r.IntN(len(kinds))]
		data := k.make(r)
		if len(data) > mutantSize {
			data = data[:mutantSize]
		}
		file := filepath.Join(dir, k.file)
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		args := k.command(r, file, dir)
		os.WriteFile(filepath.Join(keep, "current"), fmt.Appendf(nil, "%d %s\n", i, strings.Join(args, " ")), 0o666)
		os.WriteFile(filepath.Join(keep, "current.data"), data, 0o666)
		ctx, cancel := context.WithTimeout(t.Context(), 60*mutantTime) // on a machine that does much else
		exported := args != nil && args[0] == "export"
		code, output, took, memory := m.run(ctx, k, args, file)
		late := ctx.Err() != nil
		cancel()
		codes[code]++
		worst.took, worst.memory = max(worst.took, took), max(worst.memory, memory)
		if !exported {
			worst.output = max(worst.output, output)
		}
		if took > mutantTime || memory > mutantMemory || !exported && output > mutantOutput || code < 0 || code > exitPartial {
			os.WriteFile(filepath.Join(keep, fmt.Sprintf("%d-%s", i, filepath.Base(k.file))), data, 0o666)
			t.Errorf("mutant %d: %s: exit status %d, %v, %d MB, %d bytes of output", i, strings.Join(args, " "), code, took, memory>>20, output)
		}
		if late {
			stacks := make([]byte, 1<<20)
			t.Fatalf("it does not end:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	t.Logf("%d mutants, at most %v, %d MB, %d bytes of output; exit statuses %v", to-from, worst.took, worst.memory>>20, worst.output, codes)
}

// run runs a command, or has the kind of a file ask for it.
func (m *meter) run(ctx context.Context, k *mutantKind, args []string, file string) (code, output int, took time.Duration, memory uint64) {
	var out counted
	m.begin()
	binary := os.Getenv("STRANDLINE_MUTANTS_BINARY")
	switch {
	case args == nil:
		k.ask(ctx)
	case binary != "":
		c := exec.CommandContext(ctx, binary, args...)
		c.Stdout, c.Stderr = &out, &out
		_ = c.Run() // its status is returned
		return c.ProcessState.ExitCode(), out.n, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), uint64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
	default:
		code = Main(&Env{args: args, stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }, context: ctx})
	}
	took, memory = m.end()
	return code, out.n, took, memory
}

// counted is an output of which only the length counts.
type counted struct{ n int }

func (c *counted) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

// A meter measures the time and the memory of this process.
type meter struct {
	began time.Time
	cpu   time.Duration
	most  atomic.Uint64
}

func newMeter(t *testing.T) *meter {
	m, done := &meter{}, make(chan bool)
	t.Cleanup(func() { done <- true })
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				if n := heap(); n > m.most.Load() {
					m.most.Store(n)
				}
			}
		}
	}()
	return m
}

// heap is the bytes that are taken from the system.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// spent is the processor time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *meter) begin() {
	if heap() > 200<<20 {
		debug.FreeOSMemory()
	}
	m.most.Store(0)
	m.began, m.cpu = time.Now(), spent()
}

// end is the time, on a machine that does nothing else, and the most memory.
func (m *meter) end() (time.Duration, uint64) {
	return min(time.Since(m.began), spent()-m.cpu), max(m.most.Load(), heap())
}

// A mutantKind is a kind of file, with its seeds and the commands that read it.
type mutantKind struct {
	file     string
	seeds    [][]byte
	forge    func(*rand.Rand) []byte // a made-up one
	pack     bool                    // it may be compressed
	commands []string                // FILE is the mutant, DIR its folder
	ask      func(context.Context)   // reads it as the answer of another program, in place of a command
}

func (k *mutantKind) command(r *rand.Rand, file, dir string) []string {
	if len(k.commands) == 0 || k.ask != nil && r.IntN(20) > 0 {
		return nil
	}
	args := strings.Fields(k.commands[r.IntN(len(k.commands))])
	for i := range args {
		args[i] = strings.NewReplacer("FILE", file, "DIR", dir).Replace(args[i])
	}
	return args
}

func (k *mutantKind) make(r *rand.Rand) []byte {
	if k.forge != nil && r.IntN(3) == 0 {
		return k.forge(r)
	}
	data := slices.Clone(k.seeds[r.IntN(len(k.seeds))])
	for range 1 + r.IntN(4) {
		if r.IntN(2) == 0 && json.Valid(data) {
			data = mutateTree(r, data)
		} else {
			data = mutate(r, data, k.seeds)
		}
	}
	if k.pack && r.IntN(4) == 0 {
		data = packedSmall(data, r.IntN(2) == 0)
	}
	return data
}

// numbers are those that break arithmetic.
var numbers = []string{"-1", "0", "1", "127", "128", "4096", "2147483648", "17592186044416", "9223372036854775807",
	"9223372036854775808", "18446744073709551615", "18446744073709547520", "1e308", "-9223372036854775808", "0.5", "null", "NaN"}

// mutate changes one thing.
func mutate(r *rand.Rand, data []byte, seeds [][]byte) []byte {
	if len(data) == 0 {
		return []byte("{}")
	}
	at := r.IntN(len(data))
	end := min(len(data), at+1+r.IntN(64))
	switch r.IntN(11) {
	case 0: // a bit
		data[at] ^= 1 << r.IntN(8)
	case 1: // a byte
		data[at] = byte(r.Uint32())
	case 2: // cut off
		data = data[:at]
	case 3: // a length or size
		lengths := []uint64{0, 1, 0x7f, 0xff, 1 << 16, 1<<31 - 1, 1 << 32, 1 << 44, 1 << 62, 1<<63 - 1, 1<<64 - 1, 1<<64 - 4096}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], lengths[r.IntN(len(lengths))])
		copy(data[at:], word[:1<<r.IntN(4)])
	case 4: // a number in text
		if from := bytes.IndexAny(data[at:], "0123456789"); from >= 0 {
			to := at + from
			for to < len(data) && data[to] >= '0' && data[to] <= '9' {
				to++
			}
			data = slices.Replace(data, at+from, to, []byte(numbers[r.IntN(len(numbers))])...)
		}
	case 5: // a part again and again
		data = slices.Insert(data, end, bytes.Repeat(data[at:end], 1+r.IntN(40))...)
	case 6: // a part is gone
		data = slices.Delete(data, at, end)
	case 7: // a part of another
		other := seeds[r.IntN(len(seeds))]
		from := r.IntN(len(other))
		data = slices.Insert(data, at, other[from:min(len(other), from+r.IntN(256))]...)
	case 8: // deep nests
		nest := []string{"[", "{\"a\":", "(", "]", "}(", "](", "((", "\x85"}[r.IntN(8)]
		data = slices.Insert(data, at, bytes.Repeat([]byte(nest), 1+r.IntN(2000))...)
	case 9: // two parts change places
		if b := r.IntN(len(data)); b >= end && b+end-at <= len(data) {
			part := slices.Clone(data[at:end])
			copy(data[at:end], data[b:])
			copy(data[b:], part)
		}
	case 10: // a long text
		data = slices.Insert(data, at, bytes.Repeat([]byte{byte('a' + r.IntN(26))}, 1+r.IntN(6000))...)
	}
	return data
}

// packedSmall compresses.
func packedSmall(data []byte, z bool) []byte {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if z {
		w, _ = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	}
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// forgedSnapshot returns a snapshot of many equal parts, packed to at most 20 kB.
func forgedSnapshot(r *rand.Rand) []byte {
	for n := 1 << (3 + r.IntN(13)); ; n /= 2 {
		seed := r.Uint64()
		text := forgedText(rand.New(rand.NewPCG(seed, 1)), n)
		if data := packedSmall(text, r.IntN(2) == 0); len(data) <= mutantSize || n == 1 {
			return data
		}
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// forgedText returns a snapshot with about n parts of some kind.
func forgedText(r *rand.Rand, n int) []byte { // 10 MB at most, unpacked
	const base = uint64(0x7f0000000000)
	name := strings.Repeat("n", pick(r, 1, 1, 10, 1000, 20_000))
	depth := pick(r, 1, 1, 3, 300, 2000)
	step := pick(r, uint64(512), 1<<20, 2<<20, 20<<20, 1<<44, 0)
	size := pick[any](r, 512, 1000, 2<<20, 2<<20, int64(1)<<44, int64(1)<<43, -1, uint64(1)<<63)
	devices, streams, pools := pick(r, 1, 1, 1, 2, n), pick(r, 1, 1, 3, n), pick(r, 1, 1, 2, n)
	distinct := pick(r, 1, 3, n)
	depth = min(depth, max(1, 40_000/n), max(1, 1_000_000/len(name)))
	n = max(1, min(n, 10_000_000/(depth*(2*len(name)+40)+3*len(name)+200)))
	type d = map[string]any
	frames := func(i int) []d {
		out := make([]d, depth)
		for k := range out {
			out[k] = d{"name": name, "filename": "/u/" + name + ".py", "line": k}
		}
		out[0]["name"] = fmt.Sprint(pick(r, "f", "forward", "backward", name), i%distinct)
		return out
	}
	actions := pick(r, []string{"alloc"}, []string{"alloc", "free_requested", "free_completed"}, []string{"segment_alloc", "alloc"},
		[]string{"segment_map", "segment_unmap"}, []string{"segment_alloc", "segment_free"}, []string{"alloc", "oom"}, []string{"alloc", "free_completed", "snapshot", "what"})
	traces := make([][]d, min(devices, 5000))
	events := pick(r, 0, n, n, 2*n)
	for i := range events {
		e := d{"action": actions[i%len(actions)], "addr": base + uint64(i/len(actions))*step, "size": size, "stream": i % streams, "time_us": i, "frames": frames(i)}
		if pools > 1 {
			e["pool_id"] = []int{0, i % pools}
		}
		if len(name) > 10 {
			e["user_metadata"], e["compile_context"] = name, name
		}
		traces[i%len(traces)] = append(traces[i%len(traces)], e)
	}
	var segments, notes []d
	many := pick(r, 0, 1, n, n)
	each := pick(r, 0, 1, 2, n/max(many, 1))
	for i := range many {
		var blocks []d
		for k := range each {
			blocks = append(blocks, d{"address": base + uint64(i)*step + uint64(k)*512, "size": pick[any](r, 512, size), "requested_size": 500,
				"state": pick(r, "active_allocated", "inactive", "active_pending_free"), "frames": frames(k)})
		}
		segments = append(segments, d{"device": i % devices, "address": base + uint64(i)*step, "total_size": size, "allocated_size": size, "active_size": size,
			"requested_size": 5, "stream": i % streams, "segment_type": pick(r, "small", "large"), "segment_pool_id": []int{i % 2, i % pools},
			"is_expandable": pick(r, true, false), "blocks": blocks, "frames": []d{}})
	}
	for i := range pick(r, 0, n) {
		notes = append(notes, d{"name": fmt.Sprint(pick(r, "ProfilerStep#", "step ", "Optimizer.step#", name), i%distinct), "stage": pick(r, "START", "END"), "device": i % devices, "time_us": i})
	}
	text, _ := json.Marshal(d{"segments": segments, "device_traces": traces, "external_annotations": notes, "allocator_settings": d{"PYTORCH_CUDA_ALLOC_CONF": name}})
	return text
}

// seedsOf are the files of patterns, of which long ones are cut after a line.
func seedsOf(t *testing.T, patterns ...string) (out [][]byte) {
	t.Helper()
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join("..", p))
		if err != nil || len(names) == 0 {
			t.Fatalf("no file is like %s (%v)", p, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > mutantSize {
				data = data[:mutantSize]
				if i := bytes.LastIndexByte(data, '\n'); i > 0 && !strings.Contains(p, "pickle") {
					data = data[:i+1]
				}
			}
			if len(data) > 0 {
				out = append(out, data)
			}
		}
	}
	return out
}

// snapshotCommands are those that read a snapshot.
var snapshotCommands = []string{"diagnose FILE", "diagnose FILE", "diagnose --json FILE", "diagnose --capacity 80GiB FILE", "inspect FILE", "inspect --json FILE",
	"inspect --at 5 FILE", "inspect --at -1 --pools FILE", "inspect --alloc 3 FILE", "simulate FILE", "simulate --search FILE", "simulate --set expandable_segments:True FILE",
	"simulate --set garbage_collection_threshold:0.5 --capacity 80GiB FILE", "simulate --empty-cache every=50events FILE", "compare FILE FILE", "compare --runs FILE FILE",
	"view --html DIR/page.html FILE", "view --redact both --html DIR/page.html FILE", "export --to pickle -o DIR/out FILE", "export --to pprof -o DIR/out FILE",
	"export --to folded -o DIR/out FILE", "export --to csv -o DIR/out FILE", "export --to sqlite -o DIR/out FILE", "export --to perfetto -o DIR/out FILE",
	"export --to pickle --redact both -o DIR/out FILE", "export --to pickle --events 2:5 --device 0 -o DIR/out FILE",
	"plan --model Llama-3.1-8B --gpu H100 --check FILE", "plan train --model Llama-3.1-8B --gpu H100 --gpus 8 --check FILE"}

// mutantKinds are the kinds of all files that are read.
func mutantKinds(t *testing.T) []mutantKind {
	texts := []string{"diagnose FILE", "diagnose --json FILE", "diagnose --capacity 80GiB FILE", "plan --model Llama-3.1-8B --gpu H100 --check FILE",
		"plan train --model Llama-3.1-8B --gpu H100 --gpus 8 --check FILE", "inspect FILE"}
	models := []string{"plan --model FILE --gpu H100", "plan --json --model FILE --gpu H100 --engine sglang --gpus 8", "plan --model FILE --gpu H100 --solve context", "plan train --model FILE --gpu H100 --gpus 8",
		"plan train --model FILE --gpu H100 --gpus 8 --lora 16 --tp 2", "plan rl --model FILE --gpu H100 --gpus 8"}
	folders := make([]string, len(models))
	for i, c := range models {
		folders[i] = strings.ReplaceAll(c, "FILE", "DIR")
	}
	config := []byte(smallConfig)
	experts := []byte(`{"model_type":"deepseek_v3","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100,"n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,"first_k_dense_replace":1,"q_lora_rank":16,"kv_lora_rank":8,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}}`)
	header := `{"__metadata__":{"format":"pt"},"model.embed_tokens.weight":{"dtype":"BF16","shape":[100,64],"data_offsets":[0,12800]},"model.layers.0.mlp.up_proj.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[12800,12824]}}`
	tensors := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	return []mutantKind{
		{file: "a.pickle", seeds: seedsOf(t, "torch/snapshot/testdata/*.pickle", "examples/*/*.pickle"), forge: forgedSnapshot, pack: true, commands: snapshotCommands},
		{file: "b.json", seeds: seedsOf(t, "torch/snapshot/testdata/*.json", "torch/replay/testdata/*.json"), forge: forgedSnapshot, pack: true, commands: snapshotCommands},
		{file: "c.gz", seeds: seedsOf(t, "torch/snapshot/testdata/*.gz", "torch/snapshot/testdata/*.zst", "torch/replay/testdata/*.zst"), forge: forgedSnapshot, commands: snapshotCommands},
		{file: "d.trace", seeds: seedsOf(t, "examples/*/server.trace"), forge: forgedRecording, commands: []string{"diagnose FILE", "diagnose --json FILE",
			"export --to folded -o DIR/out FILE", "export --to pprof -o DIR/out FILE", "view --html DIR/page.html FILE", "inspect FILE"}},
		{file: "e.log", seeds: seedsOf(t, "logs/testdata/*.txt", "examples/*/*.log", "cli/testdata/logs/*"), pack: true, commands: texts},
		{file: "f.gguf", seeds: [][]byte{mutantGGUF()}, commands: models},
		{file: "config.json", seeds: [][]byte{config, experts}, commands: append(models, folders...)},
		{file: "model.safetensors", seeds: [][]byte{tensors}, commands: folders},
		{file: "g.csv", seeds: seedsOf(t, "plan/observed/testdata/*.csv", "examples/plan/*.csv"), commands: []string{"plan --against FILE", "plan --against FILE --json"}},
		{file: "h.yaml", seeds: seedsOf(t, "examples/plan/*.yaml"), commands: []string{"plan rl --phases FILE", "plan rl --phases FILE --json", "plan rl --phases FILE --yaml"}},
		{file: "i.json", seeds: [][]byte{[]byte(`{"meta-llama/Meta-Llama-3-8B":` + smallConfig + `}`)}, commands: []string{"plan --against ../examples/plan/observed.csv --models FILE"}},
	}
}

// forgedRecording returns a recording of many equal parts.
func forgedRecording(r *rand.Rand) []byte {
	number := func() string { return numbers[r.IntN(len(numbers)-4)] }
	many := func(item string) string {
		return strings.TrimSuffix(strings.Repeat(item+",", 1+r.IntN(mutantSize/2/len(item))), ",")
	}
	out := `{"schema":"strandline.recording/3","of":"trace","pid":` + number() + `,"name":"a","rung":"bpf","began_us":` + number() + "}\n"
	for len(out) < mutantSize/2 {
		id := r.IntN(5)
		out += pick(r,
			fmt.Sprintf(`{"stack":{"id":%d,"call":"mmap","frames":[%s]}}`, id, many(`{}`)),
			fmt.Sprintf(`{"stack":{"id":%d,"call":"mmap","frames":[{"function":"%s"}]}}`, id, many(`a`)),
			fmt.Sprintf(`{"mark":{"at_seconds":%s,"rss_bytes":%s,"stacks":[%s]}}`, number(), number(), many(fmt.Sprintf(`{"id":%d,"live_bytes":%s}`, id, number()))),
			many(`{"mark":{"at_seconds":3}}`+"\n"),
			fmt.Sprintf(`{"document":{"schema":"strandline.trace/1","duration_seconds":%s,"rss_growth_bytes":%s,"stacks":[%s],"findings":[%s]}}`, number(), number(), many(`{}`), many(`{}`)),
			fmt.Sprintf(`{"document":{"gpu":{"stacks":[%s],"owners":[%s],"devices":[{}]},"stacks":[{"live_bytes":%s,"trend":[%s]}]}}`, many(`{}`), many(`{}`), number(), many(`1`)),
			fmt.Sprintf(`{"gpu":{"pids":[%s],"pieces":[%s]}}`, many(`1`), many(`{"bytes":`+number()+`}`))) + "\n"
	}
	return []byte(strings.ReplaceAll(out, "\n,", "\n"))
}

// mutantGGUF is the header of a small model.
func mutantGGUF() []byte {
	var g bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if s, ok := v.(string); ok {
				binary.Write(&g, binary.LittleEndian, uint64(len(s)))
				v = []byte(s)
			}
			binary.Write(&g, binary.LittleEndian, v)
		}
	}
	g.WriteString("GGUF")
	const number, text, array = uint32(4), uint32(8), uint32(9)
	put(uint32(3), uint64(2), uint64(8), "general.architecture", text, "llama")
	for _, key := range []string{"block_count", "embedding_length", "context_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"} {
		put("llama."+key, number, uint32(4))
	}
	put("tokenizer.ggml.tokens", array, text, uint64(2), "a", "b")
	for _, name := range []string{"token_embd.weight", "blk.0.attn_k.weight"} {
		put(name, uint32(2), []uint64{256, 2}, uint32(12), uint64(0))
	}
	return g.Bytes()
}
