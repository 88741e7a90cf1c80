//go:build !arm64

package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/internal/test/live"
)

func TestEval(t *testing.T) {
	regs := func(i int) (uint64, bool) { return map[int]uint64{7: 1000, 16: 0x1b}[i], i == 7 || i == 16 }
	load := func(a uint64) (uint64, bool) { return a + 1, a < 5000 }
	// The expression of procedure linkage tables: rsp + 8 + ((rip & 15) >= 11) << 3.
	linkage := []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}
	for _, c := range []struct {
		name  string
		expr  []byte
		first []uint64
		want  uint64
		ok    bool
	}{
		{"linkage table", linkage, nil, 1016, true},
		{"load", []byte{0x77, 0x08, 0x06}, nil, 1009, true},
		{"load of what is not there", []byte{0x0a, 0xff, 0xff, 0x06}, nil, 0, false},
		{"first operand", []byte{0x23, 0x81, 0x01}, []uint64{1}, 130, true},
		{"constants", []byte{0x08, 200, 0x09, 0xff, 0x22, 0x12, 0x1c, 0x0c, 5, 0, 0, 0, 0x21}, nil, 5, true},
		{"unknown register", []byte{0x71, 0}, nil, 0, false},
		{"empty stack", []byte{0x22}, nil, 0, false},
		{"cut operand", []byte{0x0c, 1}, nil, 0, false},
		{"unknown operation", []byte{0x31, 0x31, 0xe0}, nil, 0, false},
		{"nothing", nil, nil, 0, false},
		{"endless", bytes.Repeat([]byte{0x31}, 1000), nil, 0, false},
	} {
		if got, ok := Eval(c.expr, regs, load, c.first...); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestRows(t *testing.T) {
	c := &cie{codeAlign: 1, dataAlign: -8, program: []byte{0x0c, 7, 8, 0x90, 1}} // CFA = rsp+8, return address at CFA-8
	d := &fde{cie: c, start: 100, end: 200, program: slices.Concat(c.program, []byte{
		0x41, 0x0e, 16, 0x86, 2, // 101: CFA = rsp+16, rbp saved
		0x43, 0x0d, 6, // 104: CFA = rbp+16
		0x0a, 0x02, 10, 0xc6, 0x0c, 7, 8, // 114: rbp restored
		0x41, 0x0b, 0x0f, 2, 0x77, 0, // 115: remembered state, CFA = what rsp+0 says
	})}
	for _, want := range []struct {
		at     uint64
		cfa    Rule
		rbp    Rule
		signal bool
	}{
		{100, Rule{Kind: InRegister, Reg: SP, Offset: 8}, Rule{}, false},
		{101, Rule{Kind: InRegister, Reg: SP, Offset: 16}, Rule{Kind: AtCFA, Offset: -16}, false},
		{103, Rule{Kind: InRegister, Reg: SP, Offset: 16}, Rule{Kind: AtCFA, Offset: -16}, false},
		{104, Rule{Kind: InRegister, Reg: FP, Offset: 16}, Rule{Kind: AtCFA, Offset: -16}, false},
		{114, Rule{Kind: InRegister, Reg: SP, Offset: 8}, Rule{}, false},
		{199, Rule{Kind: ValExpression, Offset: 24, length: 2}, Rule{Kind: AtCFA, Offset: -16}, false},
	} {
		var row Row
		if err := d.row(want.at, &row); err != nil {
			t.Fatalf("%d: %v", want.at, err)
		}
		if row.CFA != want.cfa || row.Regs[FP] != want.rbp || row.Regs[PC] != (Rule{Kind: AtCFA, Offset: -8}) {
			t.Errorf("%d: got %+v, want %+v", want.at, row, want)
		}
		if row.CFA.Kind == ValExpression && !bytes.Equal(row.Expression(row.CFA), []byte{0x77, 0}) {
			t.Errorf("got the expression %x", row.Expression(row.CFA))
		}
	}
	for _, broken := range [][]byte{{0x0b}, {0x0e}, {0x3f}, {0x0f, 9, 1}, bytes.Repeat([]byte{0x0a}, 100), {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}} {
		d := &fde{cie: c, start: 100, end: 200, program: slices.Concat(c.program, broken)}
		if err := d.row(150, &Row{}); !errors.Is(err, errFrame) {
			t.Errorf("program %x: got the error %v", broken, err)
		}
	}
}

const named = `
__attribute__((noinline, used)) static int hidden_one(int x) { return x * 3; }
int shown_one(int x) { volatile int y = hidden_one(x); return y; }
int main(int argc, char **argv) { return shown_one(argc); }
`

// addressOf returns where the compiler put a function.
func addressOf(t *testing.T, f *File, name string) uint64 {
	t.Helper()
	all, err := f.elf.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no symbol %s", name)
	return 0
}

// TestStripped finds the names that were stripped, wherever they were put.
func TestStripped(t *testing.T) {
	whole := live.Build(t, named, nil, "-rdynamic")
	f := openFile(t, whole)
	hidden, shown := addressOf(t, f, "hidden_one"), addressOf(t, f, "shown_one")
	if f.Stripped() || name(f, hidden+1) != "hidden_one" || name(f, shown+1) != "shown_one" {
		t.Fatalf("got the names %q and %q", name(f, hidden+1), name(f, shown+1))
	}
	dir := filepath.Dir(whole)
	tool(t, dir, "objcopy", "--only-keep-debug", whole, "names.debug")
	tool(t, dir, "strip", "-o", "stripped", whole)
	tool(t, dir, "objcopy", "--add-gnu-debuglink=names.debug", "stripped", "linked")
	f = openFile(t, filepath.Join(dir, "linked"))
	if !f.Stripped() || name(f, hidden+1) != "" || name(f, shown+1) != "shown_one" {
		t.Errorf("stripped: got the names %q and %q", name(f, hidden+1), name(f, shown+1))
	}
	link, _, ok := f.DebugLink()
	debug := openFile(t, filepath.Join(dir, "names.debug"))
	if !ok || link != "names.debug" || f.BuildID() == "" || f.BuildID() != debug.BuildID() {
		t.Errorf("got the link %q, the identity %q and that of the names, %q", link, f.BuildID(), debug.BuildID())
	}
	if f.Debug(debug); name(f, hidden+1) != "hidden_one" {
		t.Errorf("with its names in another file: got %q", name(f, hidden+1))
	}

	tool(t, dir, "xz", "-k", "names.debug")
	tool(t, dir, "objcopy", "--add-section", ".gnu_debugdata=names.debug.xz", "stripped", "mini")
	f = openFile(t, filepath.Join(dir, "mini"))
	small := Unpacking{100, time.Minute}
	if _, ok := f.MiniDebug(&small); ok || small.Left != 0 {
		t.Errorf("a table is decompressed beyond what all may take: %d bytes are left", small.Left)
	}
	if _, ok := f.MiniDebug(&Unpacking{1 << 30, 0}); ok {
		t.Error("a table is decompressed when the time is over")
	}
	mini, ok := f.MiniDebug(&Unpacking{1 << 30, time.Minute})
	if !ok {
		t.Fatal("the compressed names are not found")
	}
	if f.Debug(mini); name(f, hidden+1) != "hidden_one" {
		t.Errorf("with its names inside, compressed: got %q", name(f, hidden+1))
	}
}

// Exports are found with and without the table of hashes.
func TestData(t *testing.T) {
	exe := live.Build(t, named, nil, "-rdynamic")
	hashed := openFile(t, exe)
	tool(t, filepath.Dir(exe), "objcopy", "--rename-section", ".gnu.hash=.other", "main", "plain")
	plain := openFile(t, filepath.Join(filepath.Dir(exe), "plain"))
	for _, f := range []*File{hashed, plain} {
		if got, ok := f.Data("shown_one"); !ok || got != addressOf(t, hashed, "shown_one") {
			t.Errorf("shown_one is at %#x, %v", got, ok)
		}
		for _, none := range []string{"shown_on", "hidden_one", "", "__libc_start_main"} {
			if got, ok := f.Data(none); ok {
				t.Errorf("%q is found at %#x", none, got)
			}
		}
	}
}

// TestBudget reads the tables of two files as long as there is a budget for both.
func TestBudget(t *testing.T) {
	data := small(t)
	open := func(b *Budget) *File {
		f, err := Open(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		f.Limit(b)
		return f
	}
	b := NewBudget(1 << 20)
	first := open(b)
	at := addressOf(t, first, "hidden_one")
	if _, err := first.Dynamics(); err != nil || name(first, at) != "hidden_one" {
		t.Fatalf("%q, %v", name(first, at), err)
	}
	spent := 1<<20 - b.left.Load()
	if spent <= 0 {
		t.Fatal("nothing is counted")
	}
	if first.Dynamics(); 1<<20-b.left.Load() != spent {
		t.Error("what is kept is counted again")
	}
	b.left.Store(spent / 4)
	second := open(b)
	if got := name(second, at); got != "" {
		t.Errorf("%s is read without a budget", got)
	}
	b.left.Store(0)
	if _, err := second.Dynamics(); !errors.Is(err, errBudget) {
		t.Errorf("the dynamic symbols are read without a budget: %v", err)
	}
	first.Forget()
	second.Forget()
	if b.left.Load() < spent || name(first, at) != "hidden_one" {
		t.Errorf("%d bytes came back of %d", b.left.Load(), spent)
	}
}

func name(f *File, addr uint64) string {
	s, _ := f.Function(addr)
	return s.Name
}

func openFile(t testing.TB, path string) *File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	live.Tool(t, name)
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// A program without the sorted table gets the same steps.
func TestIndexFrames(t *testing.T) {
	f := openFile(t, live.Build(t, named, nil))
	sorted, err := f.readFrames()
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.indexFrames()
	if err != nil || len(made.entries) < len(sorted.entries) {
		t.Fatalf("%d bytes of entries, want %d: %v", len(made.entries), len(sorted.entries), err)
	}
	for _, s := range []string{"hidden_one", "shown_one", "main"} {
		addr := addressOf(t, f, s)
		a, err := sorted.find(f, addr)
		b, err2 := made.find(f, addr)
		if err != nil || err2 != nil || a.start != b.start || a.end != b.end || a.start != addr {
			t.Errorf("%s: got %+v and %+v, %v, %v", s, a, b, err, err2)
		}
	}
}

// probe asks a file everything.
func probe(f *File) {
	f.BuildID()
	f.DebugLink()
	if d, ok := f.MiniDebug(&Unpacking{1 << 30, time.Minute}); ok {
		f.Debug(d)
	}
	f.Slots()
	f.Dynamics()
	f.Data("x")
	f.InLinkage(4096)
	var row Row
	for _, s := range f.segments {
		for i := range min(s.Size, 64) {
			addr := s.Addr + s.Size/64*i
			f.Function(addr)
			f.IsCode(addr)
			if f.Step(addr, &row) == nil {
				for _, r := range append(row.Regs[:], row.CFA) {
					if r.Kind == AtExpression || r.Kind == ValExpression {
						Eval(row.Expression(r), func(i int) (uint64, bool) { return 1, true }, func(a uint64) (uint64, bool) { return a, true })
					}
				}
			}
		}
	}
}

// small is an ELF file of some kilobytes.
func small(t testing.TB) []byte {
	live.Linux(t)
	live.Tool(t, "gcc")
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte(strings.ReplaceAll(named, "main", "_start")), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "a.so")
	if out, err := exec.Command("gcc", "-O1", "-nostdlib", "-shared", "-fPIC", "-Wl,-z,noseparate-code", "-Wl,--build-id", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCorrupt damages a file at random: nothing in it is trusted.
func TestCorrupt(t *testing.T) {
	whole := small(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		data := slices.Clone(whole)
		for range 1 + r.IntN(8) {
			switch at := r.IntN(len(data)); r.IntN(3) {
			case 0:
				data[at] = byte(r.Uint32())
			case 1:
				data[at] ^= 1 << r.IntN(8)
			case 2:
				if at+8 <= len(data) {
					binary.LittleEndian.PutUint64(data[at:], r.Uint64()>>r.IntN(64))
				}
			}
		}
		if r.IntN(10) == 0 {
			data = data[:r.IntN(len(data))]
		}
		if f, err := Open(bytes.NewReader(data)); err == nil {
			probe(f)
		}
	}
	if _, err := Open(bytes.NewReader(whole[:4])); err == nil {
		t.Error("four bytes are taken for a file")
	}
	big := slices.Clone(whole)
	big[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	if _, err := Open(bytes.NewReader(big)); err == nil {
		t.Error("a big-endian file is taken")
	}
}

// holes is a file that continues with zeros without end, as one with holes does.
type holes []byte

func (h holes) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if at < int64(len(h)) {
		copy(b, h[at:])
	}
	return len(b), nil
}

// TestHuge has each part of a file claim to be as large as a file with holes
// can be. That is not read.
func TestHuge(t *testing.T) {
	whole := small(t)
	order := binary.LittleEndian
	sections, programs := int(order.Uint64(whole[40:])), int(order.Uint64(whole[32:]))
	number := int(order.Uint16(whole[60:]))
	huge := func(at int) func(b []byte) { return func(b []byte) { order.PutUint64(b[at:], 1<<50) } }
	cases := []func(b []byte){func(b []byte) {
		order.PutUint16(b[60:], 0) // the count of sections is in the first
		order.PutUint64(b[sections+32:], 1<<31)
	}}
	for i := range number {
		cases = append(cases, huge(sections+64*i+32))
	}
	for i := range int(order.Uint16(whole[56:])) {
		cases = append(cases, huge(programs+56*i+32))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, change := range cases {
		data := slices.Clone(whole)
		change(data)
		if f, err := Open(holes(data)); err == nil {
			probe(f)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 {
		t.Errorf("%d bytes were taken for %d files", took, len(cases))
	}
}

func FuzzFile(f *testing.F) {
	f.Add(small(f))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if f, err := Open(bytes.NewReader(data)); err == nil {
			probe(f)
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x0c, 7, 8, 0x90, 1}, []byte{0x41, 0x0e, 16, 0x86, 2, 0x0f, 2, 0x77, 0}, uint64(9))
	f.Fuzz(func(_ *testing.T, common, own []byte, at uint64) {
		c := &cie{codeAlign: 1, dataAlign: -8, program: common}
		d := &fde{cie: c, start: 0, end: ^uint64(0), program: slices.Concat(common, own)}
		if len(d.program) > maxProgram {
			return
		}
		var row Row
		if d.row(at, &row) == nil {
			for _, r := range append(row.Regs[:], row.CFA) {
				if r.Kind == AtExpression || r.Kind == ValExpression {
					Eval(row.Expression(r), func(i int) (uint64, bool) { return 1, true }, func(a uint64) (uint64, bool) { return a, true })
				}
			}
		}
	})
}
