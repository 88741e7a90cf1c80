package pickle_test

import (
	"fmt"
	"math/big"
	"strings"

	"strandline/torch/pickle"
)

// A tree is the simplest handler: it keeps all that it receives.
type tree struct {
	texts    []string
	bytes    [][]byte
	bigs     []*big.Int
	lists    [][]pickle.Value
	dicts    [][]pickle.Value
	tuples   [][]pickle.Value
	salvaged []pickle.Value
}

func (t *tree) String(b []byte) (uint64, error) {
	t.texts = append(t.texts, string(b))
	return uint64(len(t.texts) - 1), nil
}

func (t *tree) Bytes(b []byte) (uint64, error) {
	t.bytes = append(t.bytes, append([]byte(nil), b...))
	return uint64(len(t.bytes) - 1), nil
}

func (t *tree) BigInt(b []byte) (uint64, error) {
	t.bigs = append(t.bigs, pickle.BigIntOf(b))
	return uint64(len(t.bigs) - 1), nil
}

func (t *tree) List() (uint64, error) {
	t.lists = append(t.lists, nil)
	return uint64(len(t.lists) - 1), nil
}

func (t *tree) Dict() (uint64, error) {
	t.dicts = append(t.dicts, nil)
	return uint64(len(t.dicts) - 1), nil
}

func (t *tree) Tuple(items []pickle.Value) (uint64, error) {
	t.tuples = append(t.tuples, append([]pickle.Value(nil), items...))
	return uint64(len(t.tuples) - 1), nil
}

func (t *tree) Append(list uint64, items []pickle.Value) error {
	t.lists[list] = append(t.lists[list], items...)
	return nil
}

func (t *tree) SetItems(dict uint64, pairs []pickle.Value) error {
	t.dicts[dict] = append(t.dicts[dict], pairs...)
	return nil
}

func (t *tree) Salvage(rest []pickle.Value) { t.salvaged = append([]pickle.Value(nil), rest...) }

// show is v as Python prints it.
func (t *tree) show(v pickle.Value) string {
	var b strings.Builder
	t.print(&b, v, 0)
	return b.String()
}

func (t *tree) print(b *strings.Builder, v pickle.Value, depth int) {
	const deepest, longest = 50, 1 << 16
	if depth > deepest || b.Len() > longest {
		b.WriteString("...")
		return
	}
	switch v.Kind {
	case pickle.None:
		b.WriteString("None")
	case pickle.Bool:
		b.WriteString([]string{"False", "True"}[v.N])
	case pickle.Int:
		fmt.Fprint(b, int64(v.N))
	case pickle.Uint:
		fmt.Fprint(b, v.N)
	case pickle.BigInt:
		fmt.Fprint(b, t.bigs[v.N])
	case pickle.Float:
		f, _ := v.Float64()
		fmt.Fprint(b, f)
	case pickle.String:
		fmt.Fprintf(b, "%q", t.texts[v.N])
	case pickle.Bytes:
		fmt.Fprintf(b, "b%q", t.bytes[v.N])
	case pickle.List:
		t.row(b, "[", t.lists[v.N], "]", depth)
	case pickle.Tuple:
		t.row(b, "(", t.tuples[v.N], ")", depth)
	case pickle.Dict:
		t.row(b, "{", t.dicts[v.N], "}", depth)
	case pickle.Mark:
		b.WriteString("mark")
	}
}

func (t *tree) row(b *strings.Builder, open string, items []pickle.Value, end string, depth int) {
	b.WriteString(open)
	for i, v := range items {
		if i > 0 {
			b.WriteByte(' ')
		}
		t.print(b, v, depth+1)
	}
	b.WriteString(end)
}

// write writes v again.
func (t *tree) write(e *pickle.Encoder, v pickle.Value) {
	items := func(list []pickle.Value) {
		for _, x := range list {
			t.write(e, x)
		}
	}
	switch v.Kind {
	case pickle.None:
		e.None()
	case pickle.Bool:
		e.Bool(v.N == 1)
	case pickle.Int:
		e.Int64(int64(v.N))
	case pickle.Uint:
		e.Uint64(v.N)
	case pickle.BigInt:
		e.BigInt(t.bigs[v.N])
	case pickle.Float:
		f, _ := v.Float64()
		e.Float(f)
	case pickle.String:
		e.String(t.texts[v.N])
	case pickle.Bytes:
		e.Bytes(t.bytes[v.N])
	case pickle.List:
		e.List(len(t.lists[v.N]))
		items(t.lists[v.N])
	case pickle.Tuple:
		e.Tuple(len(t.tuples[v.N]))
		items(t.tuples[v.N])
	case pickle.Dict:
		e.Dict(len(t.dicts[v.N]) / 2)
		items(t.dicts[v.N])
	}
}

// A sink numbers what it receives and keeps nothing, so that all allocations
// are the decoder's.
type sink struct{ n uint64 }

func (s *sink) next() (uint64, error)                 { s.n++; return s.n, nil }
func (s *sink) String([]byte) (uint64, error)         { return s.next() }
func (s *sink) Bytes([]byte) (uint64, error)          { return s.next() }
func (s *sink) BigInt([]byte) (uint64, error)         { return s.next() }
func (s *sink) List() (uint64, error)                 { return s.next() }
func (s *sink) Dict() (uint64, error)                 { return s.next() }
func (s *sink) Tuple([]pickle.Value) (uint64, error)  { return s.next() }
func (s *sink) Append(uint64, []pickle.Value) error   { return nil }
func (s *sink) SetItems(uint64, []pickle.Value) error { return nil }
func (s *sink) Salvage([]pickle.Value)                {}

// size returns what is left of a budget of values after v; negative where v unfolds
// to more, or too deep.
func (t *tree) size(v pickle.Value, left, depth int) int {
	var items []pickle.Value
	switch v.Kind {
	case pickle.List:
		items = t.lists[v.N]
	case pickle.Tuple:
		items = t.tuples[v.N]
	case pickle.Dict:
		items = t.dicts[v.N]
	}
	if depth == 0 {
		return -1
	}
	left--
	for _, x := range items {
		if left < 0 {
			break
		}
		left = t.size(x, left, depth-1)
	}
	return left
}

// loadable spells the texts as the encoder does.
func (t *tree) loadable() {
	for i, s := range t.texts {
		t.texts[i] = pickle.Loadable(s)
	}
}
