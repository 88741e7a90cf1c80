package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"

	"strandline/torch/pickle"
)

// decodeJSON drives b with JSON text, which begins at byte from, as
// pickle.Decode does with a pickle.
func decodeJSON(r io.Reader, from int64, b *builder) (pickle.Value, error) {
	d := jsonDecoder{dec: json.NewDecoder(r), b: b}
	d.dec.UseNumber()
	v, err := d.run()
	if err == nil {
		return v, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = pickle.ErrTruncated
	}
	b.Salvage(d.rest())
	var syntax *json.SyntaxError
	offset := d.dec.InputOffset()
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	return pickle.Value{}, &pickle.SyntaxError{Offset: from + offset, Err: err}
}

const (
	maxDepth  = 1 << 10
	listBatch = 1000
)

type jsonDecoder struct {
	dec   *json.Decoder
	b     *builder
	open  []jsonOpen
	items []pickle.Value // of all open containers, one after another
}

// jsonOpen is a container that is being read; its items begin at from.
type jsonOpen struct {
	v    pickle.Value
	from int
}

func (d *jsonDecoder) run() (pickle.Value, error) {
	for {
		tok, err := d.dec.Token()
		if err != nil {
			return pickle.Value{}, err
		}
		var v pickle.Value
		switch t := tok.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				if err := d.begin(t == '['); err != nil {
					return v, err
				}
				continue
			}
			if v, err = d.end(); err != nil {
				return v, err
			}
		case string:
			n, err := d.b.String([]byte(t))
			if err != nil {
				return v, err
			}
			v = pickle.Value{Kind: pickle.String, N: n}
		case json.Number:
			if v, err = d.number(t.String()); err != nil {
				return v, err
			}
		case bool:
			v = pickle.BoolValue(t)
		}
		if len(d.open) == 0 {
			return v, nil
		}
		d.items = append(d.items, v)
		if top := d.open[len(d.open)-1]; top.v.Kind == pickle.List && len(d.items)-top.from == listBatch {
			if err := d.flush(); err != nil {
				return v, err
			}
		}
	}
}

func (d *jsonDecoder) begin(list bool) (err error) {
	if len(d.open) == maxDepth {
		return fmt.Errorf("containers are nested more than %d deep", maxDepth)
	}
	v := pickle.Value{Kind: pickle.Dict}
	if list {
		v.Kind = pickle.List
		v.N, err = d.b.List()
	} else {
		v.N, err = d.b.Dict()
	}
	d.open = append(d.open, jsonOpen{v, len(d.items)})
	return err
}

func (d *jsonDecoder) end() (pickle.Value, error) {
	top := d.open[len(d.open)-1]
	err := d.flush()
	d.open = d.open[:len(d.open)-1]
	return top.v, err
}

// flush hands the items read so far to the innermost container.
func (d *jsonDecoder) flush() (err error) {
	top := d.open[len(d.open)-1]
	if items := d.items[top.from:]; len(items) > 0 {
		if top.v.Kind == pickle.List {
			err = d.b.Append(top.v.N, items)
		} else {
			err = d.b.SetItems(top.v.N, items)
		}
		d.items = d.items[:top.from]
	}
	return err
}

// rest returns what is pending, in the order in which pickle's machine would hold it.
func (d *jsonDecoder) rest() (out []pickle.Value) {
	for i, o := range d.open {
		end := len(d.items)
		if i+1 < len(d.open) {
			end = d.open[i+1].from
		}
		out = append(append(out, o.v, pickle.Value{Kind: pickle.Mark}), d.items[o.from:end]...)
	}
	return out
}

func (d *jsonDecoder) number(s string) (pickle.Value, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return pickle.IntValue(n), nil
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return pickle.Value{Kind: pickle.Uint, N: n}, nil
	}
	const maxDigits = 10_000
	if len(s) <= maxDigits {
		if x, ok := new(big.Int).SetString(s, 10); ok {
			if err := d.b.budget.Spend(textBytes+len(s), "large integers"); err != nil {
				return pickle.Value{}, err
			}
			d.b.bigInts = append(d.b.bigInts, x)
			return pickle.Value{Kind: pickle.BigInt, N: uint64(len(d.b.bigInts) - 1)}, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return pickle.Value{}, fmt.Errorf("%q is not a number", clip([]byte(s)))
	}
	return pickle.FloatValue(f), nil
}
