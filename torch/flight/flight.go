// Package flight reads what PyTorch's flight recorder, which keeps the last collectives of a rank,
// wrote: in goes a file in pickle or JSON, out comes a [Dump] with the state of each process group.
package flight

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/budget"
	"strandline/torch/pickle"
)

// A Dump is what PyTorch's flight recorder kept of the collectives of a rank.
type Dump struct {
	Name   string
	Rank   int // by the file's name
	Groups map[string]*Group
}

// A Group is a process group as a rank saw it. Numbers of collectives are -1 where none is known.
type Group struct {
	Members  uint64 // a hash of the ranks that it has, 0 if they are not stated
	World    int    // the highest of these, plus one
	Enqueued int64  // the last collective
	Waiting  int64  // the first one that did not end
	Since    int64  // when that was enqueued, in ns since 1970 by the clock of the rank; 0 if unknown
}

// errNoDump is the error for a file that is none of the flight recorder.
var errNoDump = errors.New("this is not a dump of the flight recorder")

var dumpName = regexp.MustCompile(`rank_?(\d{1,6})(?:\.json|\.pkl|\.pickle)?$`)

// RankOf is the rank that a file is named after, as the flight recorder names its dumps.
func RankOf(name string) (rank int, ok bool) {
	m := dumpName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	rank, _ = strconv.Atoi(m[1])
	return rank, true
}

// Read reads a dump, in pickle or JSON. A file that begins as something else is left early.
func Read(r io.Reader, name string) (*Dump, error) {
	rank, ok := RankOf(name)
	if !ok {
		return nil, errNoDump
	}
	counted, b := budget.Reader(r, budget.Plain)
	in := bufio.NewReader(counted)
	head, _ := in.Peek(1)
	t := &tree{budget: b}
	var root pickle.Value
	var err error
	if string(head) == "{" {
		d := json.NewDecoder(in)
		d.UseNumber()
		root, err = t.json(d, 0)
	} else {
		root, err = pickle.Decode(in, t)
	}
	if err != nil {
		return nil, err
	}
	d := &Dump{Name: name, Rank: rank, Groups: map[string]*Group{}}
	d.configured(t, root)
	for _, e := range t.items(t.get(root, "entries")) {
		d.entry(t, e)
	}
	if len(d.Groups) == 0 {
		return nil, errNoDump
	}
	return d, nil
}

const (
	maxGroups = 1 << 12
	maxRankNo = 1 << 20
)

// group is the group of a name, nil if there are too many.
func (d *Dump) group(name string) *Group {
	g := d.Groups[name]
	if g == nil && name != "" && len(d.Groups) < maxGroups {
		g = &Group{Enqueued: -1, Waiting: -1}
		d.Groups[name] = g
	}
	return g
}

// configured takes the groups with their members, and the last collective of each.
func (d *Dump) configured(t *tree, root pickle.Value) {
	type members struct {
		hash  uint64
		world int
		has   bool // the rank of the dump
	}
	known := map[pickle.Value]members{} // many groups may have one text
	for name, config := range t.dict(t.get(root, "pg_config")) {
		v := t.get(config, "ranks")
		m, ok := known[v]
		if !ok {
			for _, n := range t.ranks(v) {
				m.hash = (m.hash ^ uint64(n+1)) * 1099511628211
				m.world, m.has = max(m.world, n+1), m.has || n == d.Rank
			}
			known[v] = m
		}
		if m.hash != 0 && !m.has {
			continue
		}
		if g := d.group(name); g != nil {
			g.Members, g.World = m.hash, m.world
		}
	}
	for name, status := range t.dict(t.get(root, "pg_status")) {
		if last, ok := t.number(t.get(status, "last_enqueued_collective")); ok {
			if g := d.group(name); g != nil {
				g.Enqueued = max(g.Enqueued, last)
			}
		}
	}
}

// entry takes a collective.
func (d *Dump) entry(t *tree, e pickle.Value) {
	seq, ok := t.number(t.get(e, "collective_seq_id"))
	if p2p, _ := t.number(t.get(e, "is_p2p")); !ok || p2p != 0 {
		return
	}
	name := ""
	if of := t.items(t.get(e, "process_group")); len(of) > 0 {
		name = t.text(of[0])
	}
	g := d.group(name)
	if g == nil {
		return
	}
	g.Enqueued = max(g.Enqueued, seq)
	retired, _ := t.number(t.get(e, "retired"))
	if state := t.text(t.get(e, "state")); state == "completed" || state == "" || retired != 0 {
		return
	}
	if g.Waiting < 0 || seq < g.Waiting {
		g.Waiting = seq
		g.Since, _ = t.number(t.get(e, "time_created_ns"))
	}
}

// A tree is a pickle or a JSON value in memory; it is a [pickle.Handler].
type tree struct {
	budget *budget.Budget
	texts  []string
	lists  [][]pickle.Value
	dicts  []map[string]pickle.Value
}

// firstKeys are those with which a dump can begin.
var firstKeys = []string{"version", "entries", "pg_config", "pg_status", "nccl_version", "comm_lib_version", "nccl_comm_state", "rank", "host_name"}

const perThing = 64 // bytes, more than a value, or a key in a map, takes

// String implements [pickle.Handler].
func (t *tree) String(b []byte) (uint64, error) {
	if len(t.texts) == 0 && !slices.Contains(firstKeys, string(b)) {
		return 0, errNoDump
	}
	if err := t.budget.Spend(len(b)+perThing, "texts"); err != nil {
		return 0, err
	}
	t.texts = append(t.texts, string(b))
	return uint64(len(t.texts) - 1), nil
}

// Bytes implements [pickle.Handler]: a dump has none that count.
func (t *tree) Bytes([]byte) (uint64, error) { return 0, nil }

// BigInt implements [pickle.Handler].
func (t *tree) BigInt([]byte) (uint64, error) { return 0, nil }

// List implements [pickle.Handler].
func (t *tree) List() (uint64, error) { return t.Tuple(nil) }

// Tuple implements [pickle.Handler].
func (t *tree) Tuple(items []pickle.Value) (uint64, error) {
	if err := t.budget.Spend((len(items)+1)*perThing, "lists"); err != nil {
		return 0, err
	}
	t.lists = append(t.lists, slices.Clone(items))
	return uint64(len(t.lists) - 1), nil
}

// Append implements [pickle.Handler].
func (t *tree) Append(list uint64, items []pickle.Value) error {
	if err := t.budget.Spend(len(items)*perThing, "items"); err != nil {
		return err
	}
	t.lists[list] = append(t.lists[list], items...)
	return nil
}

// Dict implements [pickle.Handler].
func (t *tree) Dict() (uint64, error) {
	if err := t.budget.Spend(2*perThing, "dicts"); err != nil {
		return 0, err
	}
	t.dicts = append(t.dicts, map[string]pickle.Value{})
	return uint64(len(t.dicts) - 1), nil
}

// SetItems implements [pickle.Handler].
func (t *tree) SetItems(dict uint64, pairs []pickle.Value) error {
	if err := t.budget.Spend(len(pairs)*perThing, "items"); err != nil {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if key := pairs[i]; key.Kind == pickle.String {
			t.dicts[dict][t.texts[key.N]] = pairs[i+1]
		}
	}
	return nil
}

// Salvage implements [pickle.Handler]: a dump that is cut tells nothing for sure.
func (t *tree) Salvage([]pickle.Value) {}

// json reads a value.
func (t *tree) json(d *json.Decoder, depth int) (v pickle.Value, err error) {
	const maxDepth = 64
	token, err := d.Token()
	if err != nil || depth > maxDepth {
		return v, errors.Join(err, errNoDump)
	}
	switch x := token.(type) {
	case string:
		v.Kind = pickle.String
		v.N, err = t.String([]byte(x))
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return pickle.IntValue(n), nil
		}
	case bool:
		return pickle.BoolValue(x), nil
	case json.Delim:
		if x == '[' {
			v.Kind = pickle.List
			v.N, err = t.List()
		} else {
			v.Kind = pickle.Dict
			v.N, err = t.Dict()
		}
		var pair []pickle.Value
		for err == nil && d.More() {
			var item pickle.Value
			if item, err = t.json(d, depth+1); err != nil {
				break
			}
			switch pair = append(pair, item); {
			case v.Kind == pickle.List:
				err, pair = t.Append(v.N, pair), pair[:0]
			case len(pair) == 2:
				err, pair = t.SetItems(v.N, pair), pair[:0]
			}
		}
		if err == nil {
			_, err = d.Token()
		}
	}
	return v, err
}

func (t *tree) dict(v pickle.Value) map[string]pickle.Value {
	if v.Kind != pickle.Dict {
		return nil
	}
	return t.dicts[v.N]
}

func (t *tree) get(v pickle.Value, key string) pickle.Value { return t.dict(v)[key] }

func (t *tree) items(v pickle.Value) []pickle.Value {
	if v.Kind != pickle.List && v.Kind != pickle.Tuple {
		return nil
	}
	return t.lists[v.N]
}

func (t *tree) text(v pickle.Value) string {
	if v.Kind != pickle.String {
		return ""
	}
	return t.texts[v.N]
}

// number is an integer, which JSON has as a text in some places.
func (t *tree) number(v pickle.Value) (int64, bool) {
	if v.Kind == pickle.String {
		n, err := strconv.ParseInt(t.texts[v.N], 10, 64)
		return n, err == nil
	}
	return v.Int64()
}

// ranks reads the members of a group: "[0, 1]", or a list.
func (t *tree) ranks(v pickle.Value) (out []int) {
	for _, x := range t.items(v) {
		if n, ok := x.Int64(); ok && n >= 0 && n < maxRankNo {
			out = append(out, int(n))
		}
	}
	for _, s := range strings.FieldsFunc(t.text(v), func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(s); err == nil && n < maxRankNo {
			out = append(out, n)
		}
	}
	return out
}
