package promql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/profiles"
)

// A series is one of an answer.
type series struct {
	Metric map[string]string `json:"metric"`
	Values points            `json:"values"` // of a range: seconds, and a number as a string
	Value  []any             `json:"value"`  // of a moment
}

// points are those of a series: no more than a store gives.
type points [][]any

func (p *points) UnmarshalJSON(data []byte) error {
	if n := bytes.Count(data, []byte("[")) - 1; n > 2*limitPoints {
		return fmt.Errorf("a series of %d points, which is more than was asked for", n)
	}
	return json.Unmarshal(data, (*[][]any)(p))
}

var (
	// errMany is the error for more series than are judged.
	errMany = errors.New("too many series")
	// errOther is the error for an answer that is not one of the API.
	errOther = errors.New("what answers at this address is not the API of Prometheus")
)

// An answer is read as a stream, series by series, so that one of any size takes little
// memory.
type answer struct {
	each func(s *series) error

	in       *json.Decoder
	kind     string // of the error, empty if there is none
	text     string
	warnings []string
	results  bool
}

// read reads an answer. The error is the store's, or that of each.
func (a *answer) read(r io.Reader) error {
	limited := &io.LimitedReader{R: r, N: maxBytes}
	a.in = json.NewDecoder(&squeezer{r: limited})
	err := a.object(func(name string) error {
		switch name {
		case "data":
			return a.data()
		case "errorType":
			return a.in.Decode(&a.kind)
		case "error":
			return a.in.Decode(&a.text)
		case "warnings":
			return a.in.Decode(&a.warnings)
		}
		return a.skip()
	})
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case limited.N <= 0:
		return fmt.Errorf("the answer is larger than %d MiB: ask for less, by a longer --step, a shorter --since, or fewer series", maxBytes>>20)
	case errors.Is(err, io.ErrUnexpectedEOF) && a.results:
		return errors.New("the answer ends early: the connection to the store was lost")
	case errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errOther
	case err != nil:
		return err
	case a.text != "":
		return storeError(a.kind, a.text)
	case !a.results:
		return errOther
	}
	return nil
}

// object reads an object, member by member.
func (a *answer) object(member func(name string) error) error {
	if err := a.delimiter('{'); err != nil {
		return err
	}
	for a.in.More() {
		name, err := a.in.Token()
		if err != nil {
			return err
		}
		if err := member(fmt.Sprint(name)); err != nil {
			return err
		}
	}
	_, err := a.in.Token()
	return err
}

func (a *answer) delimiter(want json.Delim) error {
	t, err := a.in.Token()
	if err == nil && t != want {
		err = errOther
	}
	return err
}

func (a *answer) skip() error {
	var x json.RawMessage
	return a.in.Decode(&x)
}

func (a *answer) data() error {
	return a.object(func(name string) error {
		switch name {
		case "resultType":
			var kind string
			if err := a.in.Decode(&kind); err != nil {
				return err
			}
			if kind != "matrix" && kind != "vector" {
				return fmt.Errorf("the query gives a %s, not series: ask for levels, such as container_memory_working_set_bytes", kind)
			}
			return nil
		case "result":
			return a.result()
		}
		return a.skip()
	})
}

func (a *answer) result() error {
	if err := a.delimiter('['); err != nil {
		return err
	}
	a.results = true
	for a.in.More() {
		var s series
		if err := a.in.Decode(&s); err != nil {
			return err
		}
		if err := a.each(&s); err != nil {
			return err
		}
	}
	_, err := a.in.Token()
	return err
}

// columns are the levels of series, which are named by the labels that differ; malformed
// is how many points are not a time and a number.
func columns(expr string, all []series, factor float64) (out []profiles.Column, malformed int) {
	all = slices.DeleteFunc(all, func(s series) bool { return len(s.Values) == 0 }) // nothing but native histograms
	constant := map[string]bool{}
	for name, value := range first(all) {
		constant[name] = true
		for _, s := range all {
			constant[name] = constant[name] && s.Metric[name] == value
		}
	}
	for _, s := range all {
		c := profiles.Column{Name: nameOf(expr, s.Metric, constant)}
		for _, p := range s.Values {
			at, x, ok := point(p)
			if !ok {
				malformed++
				continue
			}
			if x *= factor; !(x >= 0) || math.IsInf(x, 0) {
				x = math.NaN()
			}
			c.Times, c.Bytes = append(c.Times, at), append(c.Bytes, x)
		}
		if len(c.Times) == 0 {
			continue
		}
		for start, i := c.Times[0], 0; i < len(c.Times); i++ {
			c.Times[i] -= start
		}
		out = append(out, c)
	}
	return out, malformed
}

// point is a time in seconds and a value, which is a string.
func point(p []any) (at, value float64, ok bool) {
	if len(p) != 2 {
		return 0, 0, false
	}
	at, isTime := p[0].(float64)
	text, isText := p[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	return at, value, isTime && isText && err == nil
}

func first(all []series) map[string]string {
	if len(all) == 0 {
		return nil
	}
	return all[0].Metric
}

// nameOf is a series as Prometheus writes it, without the labels that all have in common.
func nameOf(expr string, labels map[string]string, constant map[string]bool) string {
	name := expr + " "
	if metric := selected(expr); metric != "" {
		name = metric
	}
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		if !constant[l] && l != "__name__" {
			parts = append(parts, fmt.Sprintf("%s=%q", l, labels[l]))
		}
	}
	if len(parts) == 0 {
		return strings.TrimSpace(name)
	}
	return name + "{" + strings.Join(parts, ", ") + "}"
}
