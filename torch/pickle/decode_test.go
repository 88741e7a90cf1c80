package pickle_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"strandline/torch/pickle"
)

func decode(in string) (string, error) {
	t := &tree{}
	v, err := pickle.Decode(strings.NewReader(in), t)
	if err != nil {
		return "", err
	}
	return t.show(v), nil
}

// TestDecode is long because it is one table of pickles and their values.
//
// long: one row a pickle
func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"none", "N.", "None"},
		{"true", "\x88.", "True"},
		{"false", "\x89.", "False"},
		{"protocol 2", "\x80\x02N.", "None"},
		{"protocol 5", "\x80\x05N.", "None"},
		{"frame", "\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N.", "None"},
		{"after the end", "N.\x00\x00\x00", "None"},

		{"int of 1 byte", "K\xff.", "255"},
		{"int of 2 bytes", "M\xff\xff.", "65535"},
		{"int of 4 bytes", "J\xff\xff\xff\x7f.", "2147483647"},
		{"negative int of 4 bytes", "J\xff\xff\xff\xff.", "-1"},
		{"long of 0 bytes", "\x8a\x00.", "0"},
		{"long of 1 byte", "\x8a\x01\x80.", "-128"},
		{"long of 3 bytes", "\x8a\x03\x00\x00\x80.", "-8388608"},
		{"long of 6 bytes", "\x8a\x06\x00\x00\x00\x00\x00\x7a.", "134140418588672"},
		{"long of 8 bytes", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"},
		{"negative long of 8 bytes", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808"},
		{"unsigned long of 9 bytes", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "9223372036854775808"},
		{"long of 9 bytes with room", "\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00.", "1"},
		{"negative long of 9 bytes with room", "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff.", "-1"},
		{"negative long of 9 bytes", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff.", "-18446744073709551616"},
		{"long of 10 bytes", "\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01.", "4722366482869645213696"},
		{"long of 12 bytes with room", "\x8a\x0c\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00.", "5"},
		{"long4", "\x8b\x02\x00\x00\x00\x00\x01.", "256"},
		{"int as text", "I-12\n.", "-12"},
		{"bool as text", "(lI01\naI00\na.", "[True False]"},
		{"long as text", "L18446744073709551615L\n.", "18446744073709551615"},
		{"huge long as text", "L-18446744073709551617L\n.", "-18446744073709551617"},
		{"float", "G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5"},
		{"float as text", "F-2.5\n.", "-2.5"},
		{"infinity as text", "F1e999\n.", "+Inf"},

		{"short text", "\x8c\x02hi.", `"hi"`},
		{"text", "X\x02\x00\x00\x00hi.", `"hi"`},
		{"long text", "\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", `"hi"`},
		{"unicode line", "Va\\u20ac\\U0001f600\xe9\n.", `"a€😀é"`},
		{"quoted line", "S'a\\n\\x41\\''\n.", `"a\nA'"`},
		{"str of Python 2", "U\x02hi.", `"hi"`},
		{"long str of Python 2", "T\x02\x00\x00\x00hi.", `"hi"`},
		{"short bytes", "C\x02hi.", `b"hi"`},
		{"bytes", "B\x02\x00\x00\x00hi.", `b"hi"`},
		{"long bytes", "\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi.", `b"hi"`},
		{"bytearray", "\x96\x02\x00\x00\x00\x00\x00\x00\x00hi\x98.", `b"hi"`},

		{"empty list", "].", "[]"},
		{"append", "]K\x01a.", "[1]"},
		{"appends", "](K\x01K\x02e.", "[1 2]"},
		{"appends of none", "](e.", "[]"},
		{"two batches", "](K\x01e(K\x02K\x03e.", "[1 2 3]"},
		{"list", "(K\x01K\x02l.", "[1 2]"},
		{"empty dict", "}.", "{}"},
		{"setitem", "}K\x01K\x02s.", "{1 2}"},
		{"setitems", "}(K\x01K\x02K\x03K\x04u.", "{1 2 3 4}"},
		{"setitems of none", "}(u.", "{}"},
		{"dict", "(K\x01K\x02d.", "{1 2}"},
		{"empty tuple", ").", "()"},
		{"tuple", "(K\x01K\x02t.", "(1 2)"},
		{"tuple1", "K\x01\x85.", "(1)"},
		{"tuple2", "K\x01K\x02\x86.", "(1 2)"},
		{"tuple3", "K\x01K\x02K\x03\x87.", "(1 2 3)"},
		{"set", "\x8f(K\x01K\x02\x90.", "[1 2]"},
		{"frozenset", "(K\x01\x91.", "[1]"},
		{"nested", "](](K\x01e}K\x02]s]e.", "[[1] {2 []} []]"},

		{"pop", "K\x01K\x020.", "1"},
		{"pop of a mark", "K\x01(0.", "1"},
		{"pop to the mark", "K\x01(K\x02K\x031.", "1"},
		{"dup", "](K\x012e.", "[1 1]"},

		{"memo by index", "]K\x07q\x05ah\x05a.", "[7 7]"},
		{"memo by long index", "](K\x07r\x00\x01\x00\x00j\x00\x01\x00\x00e.", "[7 7]"},
		{"memo as text", "(lp0\nI7\np1\nag1\na.", "[7 7]"},
		{"memo in order", "](K\x07\x94K\x08\x94h\x00h\x01e.", "[7 8 7 8]"},
		{"memo in order after an index", "](K\x07q\x00K\x08\x94h\x01e.", "[7 8 8]"},
		{"sparse memo", "](K\x07r\xff\xff\xff\xffK\x08\x94j\xff\xff\xff\xffh\x01e.", "[7 8 7 8]"},
		{"memo overwritten", "](K\x07q\x00K\x08q\x00h\x00K\x09\x94h\x01e.", "[7 8 8 9 9]"},
		{"wide number in the memo", "](\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80\x94h\x00e.", "[-9223372036854775808 -9223372036854775808]"},
		{"memo after the contents", "](](K\x01eq\x00h\x00e.", "[[1] [1]]"},
		{"list inside itself", "]\x94h\x00a.", strings.Repeat("[", 51) + "..." + strings.Repeat("]", 51)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(c.in)
			if err != nil || got != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in string
		offset   int64
		want     string
	}{
		{"nothing on the stack", ".", 0, "too little on the stack"},
		{"append to a number", "K\x01K\x02a.", 4, "added to a int"},
		{"setitem to a list", "]K\x01K\x02s.", 5, "added to a list"},
		{"append over a mark", "](K\x01a.", 4, "too little on the stack"},
		{"tuple over a mark", "K\x01(K\x02\x86.", 5, "too little on the stack"},
		{"items without a mark", "]K\x01e.", 3, "no mark"},
		{"a key alone", "}(K\x01u.", 4, "no value"},
		{"pop of nothing", "0.", 0, "too little on the stack"},
		{"unknown memo", "h\x05.", 0, "memo entry 5"},
		{"unknown long memo", "j\x00\x00\x01\x00.", 0, "memo entry 65536"},
		{"memo of nothing", "\x94.", 0, "too little on the stack"},
		{"no opcode", "\xff.", 0, "0xff is not a pickle opcode"},
		{"protocol 6", "\x80\x06N.", 0, "protocol 6"},
		{"long text of 2^60 bytes", "N\x8d\x00\x00\x00\x00\x00\x00\x00\x10x.", 1, "at most"},
		{"bytes of 2^60 bytes", "\x8e\x00\x00\x00\x00\x00\x00\x00\x10x.", 0, "at most"},
		{"text of 2^32-1 bytes", "X\xff\xff\xff\xffx.", 0, "at most"},
		{"text of 200 MB", "X\x00\x00\x00\x0cx.", 0, "ends in the middle"},
		{"long of 2^31 bytes", "\x8b\x00\x00\x00\x80x.", 0, "at most"},
		{"not a number", "Ix\n.", 0, "not an integer"},
		{"no float", "Fx\n.", 0, "not a number"},
		{"no quotes", "Sx\n.", 0, "not quoted"},
		{"no memo index", "g-1\n.", 0, "not an index"},
		{"million digits", "L" + strings.Repeat("9", 1_000_000) + "L\n.", 0, "at most 10000 digits"},
		{"nothing", "", 0, "ends in the middle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(c.in)
			var syntax *pickle.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error is %v", err)
			}
			if syntax.Offset != c.offset || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q at byte %d", err, c.want, c.offset)
			}
		})
	}
}

func TestDecodeRefusesCode(t *testing.T) {
	for op, name := range map[byte]string{
		'c': "GLOBAL", 'R': "REDUCE", 'b': "BUILD", 'i': "INST", 'o': "OBJ", 'P': "PERSID", 'Q': "BINPERSID",
		0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4",
		0x92: "NEWOBJ_EX", 0x93: "STACK_GLOBAL", 0x97: "NEXT_BUFFER",
	} {
		_, err := decode("\x80\x04NN" + string([]byte{op}) + "os\nsystem\n.")
		var unsafe *pickle.UnsafeError
		var syntax *pickle.SyntaxError
		if !errors.As(err, &unsafe) || unsafe.Opcode != name {
			t.Errorf("%s: error is %v", name, err)
		} else if !errors.As(err, &syntax) || syntax.Offset != 4 {
			t.Errorf("%s: no offset in %v", name, err)
		}
	}
}

// Every opcode byte is either read, refused as code or no opcode at all.
func TestDecodeKnowsEveryByte(t *testing.T) {
	for op := range 256 {
		_, err := decode("(N" + string([]byte{byte(op)}) + strings.Repeat("\x00", 40))
		if err == nil && op != '.' {
			t.Errorf("opcode %#x ends the pickle", op)
		}
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bound returns what decoding n bytes may allocate: windows and stacks that double,
// and some words for each opcode.
func bound(n int) uint64 { return 4<<20 + 100*uint64(n) }

func TestDecodeBoundsMemory(t *testing.T) {
	put := func(step uint32) string { // memo entries far from each other
		var b []byte
		b = append(b, "K\x01"...)
		for i := uint32(0); i < 1<<16; i++ {
			b = binary.LittleEndian.AppendUint32(append(b, 'r'), i*step)
		}
		return string(b) + "."
	}
	for _, c := range []struct{ name, in string }{
		{"marks", strings.Repeat("(", 1_000_000)},
		{"lists in lists", strings.Repeat("]", 1_000_000)},
		{"marked lists", strings.Repeat("](", 1_000_000)},
		{"tuples in tuples", ")" + strings.Repeat("\x85", 1_000_000) + "."},
		{"numbers that wait", strings.Repeat("N", 5_000_000)},
		{"duplicates that wait", "N" + strings.Repeat("2", 5_000_000)},
		{"memo pages", put(1 << pageBits)},
		{"memo pages less one", put(1<<pageBits - 1)},
		{"sparse memo", put(0xffff)},
		{"memo of one value", "N" + strings.Repeat("\x94", 1_000_000) + "."},
		{"wide memo", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80" + strings.Repeat("\x94", 1_000_000) + "."},
		{"longs", strings.Repeat("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x010", 200_000)},
		{"text that is not there", "X\x00\x00\x00\x0fx"},
		{"line without end", "I" + strings.Repeat("1", 3_000_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := allocated(func() { pickle.Decode(strings.NewReader(c.in), &sink{}) })
			if got > bound(len(c.in)) {
				t.Errorf("%d bytes of input make it allocate %d", len(c.in), got)
			}
		})
	}
}

const pageBits = 13 // of the memo

// small is a real snapshot of 465 bytes.
func small(t testing.TB) []byte {
	b, err := os.ReadFile(filepath.Join("../snapshot/testdata", "w10_nothing.default.empty.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeTruncated(t *testing.T) {
	in := small(t)
	for n := range in {
		h := &tree{}
		_, err := pickle.Decode(bytes.NewReader(in[:n]), h)
		if !errors.Is(err, pickle.ErrTruncated) {
			t.Fatalf("%d of %d bytes: error is %v", n, len(in), err)
		}
	}
}

func TestDecodeDamaged(t *testing.T) {
	in := small(t)
	for i := range in {
		for _, mask := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255, '(' ^ in[i], 0x94 ^ in[i], 'e' ^ in[i]} {
			damaged := bytes.Clone(in)
			damaged[i] ^= mask
			h := &tree{}
			if v, err := pickle.Decode(bytes.NewReader(damaged), h); err == nil {
				h.show(v)
			}
		}
	}
	damaged := bytes.Clone(in)
	for i := range in {
		damaged[i] ^= 0xff
		if got := allocated(func() { pickle.Decode(bytes.NewReader(damaged), &sink{}) }); got > bound(len(in)) {
			t.Errorf("byte %d flipped: %d bytes are allocated", i, got)
		}
		damaged[i] ^= 0xff
	}
}

// However the input arrives, the same comes out.
func TestDecodeInPieces(t *testing.T) {
	in := small(t)
	whole := &tree{}
	v, err := pickle.Decode(bytes.NewReader(in), whole)
	if err != nil {
		t.Fatal(err)
	}
	want := whole.show(v)
	for name, r := range map[string]io.Reader{
		"byte by byte":      iotest.OneByteReader(bytes.NewReader(in)),
		"in halves":         iotest.HalfReader(bytes.NewReader(in)),
		"with the end":      iotest.DataErrReader(bytes.NewReader(in)),
		"behind a long gap": io.MultiReader(strings.NewReader("\x80\x04"+strings.Repeat("N0", 400_000)), bytes.NewReader(in)),
	} {
		h := &tree{}
		v, err := pickle.Decode(r, h)
		if err != nil || h.show(v) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeReadError(t *testing.T) {
	broken := errors.New("the disk is on fire")
	_, err := pickle.Decode(io.MultiReader(strings.NewReader("](K\x01"), iotest.ErrReader(broken)), &tree{})
	var syntax *pickle.SyntaxError
	if !errors.Is(err, broken) || errors.As(err, &syntax) {
		t.Errorf("error is %v", err)
	}
}

func TestSalvage(t *testing.T) {
	h := &tree{}
	if _, err := pickle.Decode(strings.NewReader("}(\x8c\x01a](K\x01K\x02"), h); err == nil {
		t.Fatal("no error")
	}
	var got []string
	for _, v := range h.salvaged {
		got = append(got, h.show(v))
	}
	if s := strings.Join(got, " "); s != `{} mark "a" [] mark 1 2` {
		t.Errorf("salvaged %s", s)
	}
}

func TestValueNumbers(t *testing.T) {
	for _, c := range []struct {
		v   pickle.Value
		n   int64
		u   uint64
		f   float64
		isN bool
		isU bool
		isF bool
	}{
		{pickle.IntValue(-1), -1, math.MaxUint64, -1, true, true, true},
		{pickle.BoolValue(true), 1, 1, 1, true, true, true},
		{pickle.FloatValue(3), 3, 3, 3, true, true, true},
		{pickle.FloatValue(3.5), 0, 0, 3.5, false, false, true},
		{pickle.FloatValue(math.Inf(1)), 0, 0, math.Inf(1), false, false, true},
		{pickle.Value{Kind: pickle.Uint, N: 1 << 63}, 0, 1 << 63, 1 << 63, false, true, true},
		{pickle.Value{Kind: pickle.None}, 0, 0, 0, false, false, false},
	} {
		n, isN := c.v.Int64()
		u, isU := c.v.Uint64()
		f, isF := c.v.Float64()
		if n != c.n || u != c.u || f != c.f || isN != c.isN || isU != c.isU || isF != c.isF {
			t.Errorf("%v: %d %v, %d %v, %g %v", c.v, n, isN, u, isU, f, isF)
		}
	}
}
