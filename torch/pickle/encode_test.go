package pickle_test

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"

	"strandline/torch/pickle"
)

func encode(f func(*pickle.Encoder)) (string, error) {
	var b bytes.Buffer
	e := pickle.NewEncoder(&b)
	f(e)
	err := e.Close()
	return b.String(), err
}

func number(s string) *big.Int {
	x, _ := new(big.Int).SetString(s, 0)
	return x
}

// The bytes are those of CPython's pickle.dumps(…, 4), except for frames and for
// what is put in the memo and never fetched.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(*pickle.Encoder)
		want  string
	}{
		{"none", func(e *pickle.Encoder) { e.None() }, "N"},
		{"true", func(e *pickle.Encoder) { e.Bool(true) }, "\x88"},
		{"255", func(e *pickle.Encoder) { e.Int64(255) }, "K\xff"},
		{"256", func(e *pickle.Encoder) { e.Int64(256) }, "M\x00\x01"},
		{"65536", func(e *pickle.Encoder) { e.Int64(65536) }, "J\x00\x00\x01\x00"},
		{"-1", func(e *pickle.Encoder) { e.Int64(-1) }, "J\xff\xff\xff\xff"},
		{"2^31", func(e *pickle.Encoder) { e.Int64(1 << 31) }, "\x8a\x05\x00\x00\x00\x80\x00"},
		{"-2^39", func(e *pickle.Encoder) { e.Int64(-1 << 39) }, "\x8a\x05\x00\x00\x00\x00\x80"},
		{"2^39", func(e *pickle.Encoder) { e.Int64(1 << 39) }, "\x8a\x06\x00\x00\x00\x00\x80\x00"},
		{"-2^63", func(e *pickle.Encoder) { e.Int64(-1 << 63) }, "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"},
		{"2^63", func(e *pickle.Encoder) { e.Uint64(1 << 63) }, "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"},
		{"2^63 as a big one", func(e *pickle.Encoder) { e.BigInt(number("0x8000000000000000")) }, "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00"},
		{"-2^71", func(e *pickle.Encoder) { e.BigInt(number("-0x800000000000000000")) }, "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80"},
		{"float", func(e *pickle.Encoder) { e.Float(1.5) }, "G\x3f\xf8\x00\x00\x00\x00\x00\x00"},
		{"bytes", func(e *pickle.Encoder) { e.Bytes([]byte("hi")) }, "C\x02hi"},
		{"text", func(e *pickle.Encoder) { e.String("hi") }, "\x8c\x02hi\x94"},
		{"text of 256 bytes", func(e *pickle.Encoder) { e.String(strings.Repeat("x", 256)) }, "X\x00\x01\x00\x00" + strings.Repeat("x", 256) + "\x94"},
		{"text that is not UTF-8", func(e *pickle.Encoder) { e.String("a\xff") }, "\x8c\x04a\xed\xb3\xbf\x94"},
		{"lone surrogate", func(e *pickle.Encoder) { e.String("\xed\xa0\x80") }, "\x8c\x03\xed\xa0\x80\x94"},
		{"no items", func(e *pickle.Encoder) { e.List(0) }, "]"},
		{"one item", func(e *pickle.Encoder) { e.List(1); e.None() }, "]Na"},
		{"two items", func(e *pickle.Encoder) { e.List(2); e.None(); e.None() }, "](NNe"},
		{"one key", func(e *pickle.Encoder) { e.Dict(1); e.Int64(1); e.Int64(2) }, "}K\x01K\x02s"},
		{"two keys", func(e *pickle.Encoder) { e.Dict(2); e.Int64(1); e.None(); e.Int64(2); e.None() }, "}(K\x01NK\x02Nu"},
		{"tuples", func(e *pickle.Encoder) {
			e.List(5)
			for n := range 5 {
				e.Tuple(n)
				for range n {
					e.None()
				}
			}
		}, "]()N\x85NN\x86NNN\x87(NNNNte"},
		{"the same text", func(e *pickle.Encoder) { e.List(2); e.String("a"); e.String("a") }, "](\x8c\x01a\x94h\x00e"},
		{"shared list", func(e *pickle.Encoder) { e.List(2); r := e.SharedList(1); e.None(); e.Get(r) }, "](]\x94Nah\x00e"},
		{"shared tuple", func(e *pickle.Encoder) {
			var r pickle.Ref
			e.List(2)
			e.SharedTuple(1, &r)
			e.None()
			e.Get(r)
		}, "](N\x85\x94h\x00e"},
		{"1001 items", func(e *pickle.Encoder) {
			e.List(1001)
			for range 1001 {
				e.None()
			}
		}, "](" + strings.Repeat("N", 1000) + "eNa"},
		{"1001 keys", func(e *pickle.Encoder) {
			e.Dict(1001)
			for range 2002 {
				e.None()
			}
		}, "}(" + strings.Repeat("N", 2000) + "uNNs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := encode(c.write)
			if want := "\x80\x04" + c.want + "."; err != nil || got != want {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestEncodeLongMemo(t *testing.T) {
	got, err := encode(func(e *pickle.Encoder) {
		e.List(300)
		var last pickle.Ref
		for range 299 {
			last = e.SharedList(0)
		}
		e.Get(last)
	})
	if want := "]\x94j\x2a\x01\x00\x00e."; err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("got …%q, %v", got[len(got)-12:], err)
	}
}

func TestEncodeErrors(t *testing.T) {
	if _, err := encode(func(e *pickle.Encoder) { e.List(2); e.Dict(1); e.None() }); err == nil {
		t.Error("containers that lack items are closed")
	}
	e := pickle.NewEncoder(full{})
	for range 100_000 {
		e.Int64(1 << 40)
	}
	if err := e.Close(); !errors.Is(err, errFull) {
		t.Errorf("error is %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
