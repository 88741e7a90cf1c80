package promql

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"

	"github.com/VictoriaMetrics/metricsql"

	"strandline/internal/lazyregexp"
)

// A unit is the unit of the values of an expression.
type unit struct {
	kind kind
	// bytes is how many bytes one of a size is.
	bytes float64
	// name is the metric that a counter or a share is of, and n a number's value.
	name string
	n    float64
}

// A kind says of an expression whether it can be a level of memory.
type kind int

const (
	size    kind = iota // in bytes, or in a unit that a metric's name states
	unnamed             // a level in a unit that nothing states, which counts as bytes
	constant
	share
	counter
)

// maxPercent is the largest number by which a share is still a share.
const maxPercent = 1000

// ofBytes is the unit of an expression without one.
var ofBytes = unit{kind: unnamed, bytes: 1}

// unitOf is how many bytes one of an expression's values is. The error states why the
// expression is no level of memory.
func (c *client) unitOf(ctx context.Context, e metricsql.Expr) (unit, error) {
	switch e := e.(type) {
	case *metricsql.NumberExpr:
		return unit{kind: constant, bytes: 1, n: e.N}, nil
	case *metricsql.MetricExpr:
		name := nameOfMetric(e)
		if name == "" {
			return ofBytes, nil
		}
		return c.unitOfMetric(ctx, name)
	case *metricsql.RollupExpr:
		return c.unitOf(ctx, e.Expr)
	case *metricsql.AggrFuncExpr:
		if noSizes[strings.ToLower(e.Name)] {
			return unit{}, fmt.Errorf("%s() gives a number of series or their spread, not a size of memory: ask for sum, max or avg", e.Name)
		}
		return c.unitOfArguments(ctx, e.Args)
	case *metricsql.FuncExpr:
		if changes[strings.ToLower(e.Name)] {
			return unit{}, fmt.Errorf("%s() gives how fast something changes, not a level of memory: ask for a gauge, such as process_resident_memory_bytes", e.Name)
		}
		if noSizes[strings.ToLower(e.Name)] {
			return unit{}, fmt.Errorf("%s() gives no size of memory: ask for a gauge, such as process_resident_memory_bytes", e.Name)
		}
		return c.unitOfArguments(ctx, e.Args)
	case *metricsql.BinaryOpExpr:
		return c.unitOfTwo(ctx, e)
	}
	return ofBytes, nil
}

// changes are the functions of how fast something changes.
var changes = map[string]bool{
	"rate": true, "irate": true, "increase": true, "increase_pure": true, "delta": true, "idelta": true, "deriv": true, "ideriv": true, "deriv_fast": true,
	"changes": true, "resets": true, "rollup_rate": true, "rollup_increase": true, "rollup_delta": true, "rollup_deriv": true, "integrate": true,
}

// noSizes are the functions whose values are numbers of something else, or times.
var noSizes = map[string]bool{
	"count": true, "count_values": true, "stdvar": true, "group": true, "count_over_time": true, "stdvar_over_time": true, "absent": true,
	"absent_over_time": true, "present_over_time": true, "timestamp": true, "zscore": true,
}

// unitOfArguments is the unit of the first argument that has one.
func (c *client) unitOfArguments(ctx context.Context, all []metricsql.Expr) (unit, error) {
	for _, a := range all {
		if _, ok := a.(*metricsql.StringExpr); ok {
			continue
		}
		if u, err := c.unitOf(ctx, a); err != nil || u.kind != constant {
			return u, err
		}
	}
	return ofBytes, nil
}

// unitOfTwo is the unit of an operation.
func (c *client) unitOfTwo(ctx context.Context, e *metricsql.BinaryOpExpr) (unit, error) {
	a, err := c.unitOf(ctx, e.Left)
	if err != nil {
		return a, err
	}
	b, err := c.unitOf(ctx, e.Right)
	if err != nil {
		return b, err
	}
	if a.kind == constant && b.kind != constant && e.Op != "/" && e.Op != "^" {
		a, b = b, a
	}
	switch {
	case e.Bool:
		return unit{}, fmt.Errorf("the query compares (%s bool), which gives 0 or 1, not a level of memory", e.Op)
	case e.Op == "*" && b.kind == constant:
		return a.times(b.n), nil
	case e.Op == "/" && b.kind == constant:
		return a.times(1 / b.n), nil
	case e.Op == "*":
		return product(a, b), nil
	case e.Op == "/" && b.kind == share:
		return a, nil
	case e.Op == "/" && a.kind == size && b.kind == size:
		return unit{kind: share, bytes: 1, name: "the quotient of two sizes"}, nil
	case e.Op == "-" && a.kind == counter && b.kind == counter:
		return ofBytes, nil // of what was made, what was not freed
	case a.kind == size && b.kind == size && a.bytes != b.bytes && e.Op != "unless" && e.Op != "and":
		return unit{}, fmt.Errorf("the query puts sizes in different units together (%g and %g bytes): multiply the larger unit by %g", a.bytes, b.bytes, max(a.bytes, b.bytes)/min(a.bytes, b.bytes))
	case a.kind == unnamed && b.kind == size && e.Op != "unless" && e.Op != "and":
		return b, nil
	}
	return a, nil
}

// times is the unit of values that are multiplied by a number. A power of 1000 or 1024
// changes the unit of a size, and any other number the size.
func (u unit) times(n float64) unit {
	switch {
	case u.kind == constant:
		u.n *= n
	case u.kind == share && math.Abs(n) > maxPercent:
		return ofBytes
	case u.kind == size && isPower(n):
		u.bytes /= n
	}
	return u
}

// product is the unit of the product of two that are no constants.
func product(a, b unit) unit {
	switch {
	case a.kind == share:
		return b
	case b.kind == share:
		return a
	}
	return ofBytes
}

// isPower reports whether a number is a power of 1000 or 1024, but not 1.
func isPower(n float64) bool {
	for _, base := range []float64{1000, 1024} {
		for k := range 5 {
			p := math.Pow(base, float64(k))
			if k > 0 && (math.Abs(n/p-1) < 1e-9 || math.Abs(n*p-1) < 1e-9) {
				return true
			}
		}
	}
	return false
}

// nameOfMetric is the name that a selector has, empty for none.
func nameOfMetric(m *metricsql.MetricExpr) string {
	if len(m.LabelFilterss) == 0 || len(m.LabelFilterss[0]) == 0 {
		return ""
	}
	if f := m.LabelFilterss[0][0]; f.Label == "__name__" && !f.IsNegative && !f.IsRegexp {
		return f.Value
	}
	return ""
}

// selected is the metric of a query that only selects one, perhaps by labels; empty for
// any other query.
func selected(expr string) string {
	if m, ok := parsed(expr).(*metricsql.MetricExpr); ok {
		return nameOfMetric(m)
	}
	return ""
}

// parsed is a query's tree; nil for one in a syntax that only its store knows.
func parsed(expr string) metricsql.Expr {
	const maxQuery = 64 << 10
	if len(expr) > maxQuery {
		return nil
	}
	e, err := metricsql.Parse(expr)
	if err != nil {
		return nil
	}
	return e
}

// bytesOf is how many bytes one of a query's values is. The error states why it is no
// level of memory.
func (c *client) bytesOf(ctx context.Context, expr string) (float64, error) {
	u, err := c.unitOf(ctx, parsed(expr))
	switch {
	case err != nil:
		return 0, err
	case u.kind == share:
		return 0, fmt.Errorf("%s is a share, not a size: multiply it by what it is a share of, in bytes, as in --query '%s * 64 * 2^30'", u.name, strings.TrimSpace(expr))
	case u.kind == counter:
		return 0, fmt.Errorf("%s is a counter, which only ever grows: it is no level of memory that could run out, and neither is its rate; ask for a gauge, such as process_resident_memory_bytes", u.name)
	}
	return u.bytes, nil
}

// unitOfMetric is the unit of a metric: by the metadata of the store, or where it has none
// by the name.
func (c *client) unitOfMetric(ctx context.Context, name string) (unit, error) {
	kind := c.kindOf(ctx, name)
	for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
		base, found := strings.CutSuffix(name, suffix)
		if kind != "" || !found {
			continue
		}
		// Metadata of OpenMetrics name the family.
		if kind = c.kindOf(ctx, base); kind == "" || kind == "gauge" {
			kind = "counter"
		}
	}
	switch kind {
	case "counter":
		return unit{kind: counter, bytes: 1, name: name}, nil
	case "histogram", "gaugehistogram", "summary":
		return unit{}, fmt.Errorf("%s is a %s, not a level of memory", name, kind)
	case "info", "stateset":
		return unit{}, fmt.Errorf("%s only carries labels, not a level of memory", name)
	}
	return namedUnit(name)
}

// kindOf is the type of a metric; empty where the store does not know it.
func (c *client) kindOf(ctx context.Context, name string) string {
	body, err := c.get(ctx, "metadata", url.Values{"metric": {name}, "limit": {"1"}})
	if err != nil {
		return "" // some stores have none; others report it when they are queried
	}
	defer body.Close()
	var doc struct {
		Data map[string][]struct{ Type string }
	}
	const maxAnswer = 1 << 20
	if json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&doc) != nil {
		return ""
	}
	for _, m := range doc.Data[name] {
		if m.Type != "unknown" && m.Type != "untyped" {
			return m.Type
		}
	}
	return ""
}

var (
	// inMiB are the metrics of DCGM that state memory, which are in MiB.
	inMiB   = lazyregexp.New(`^DCGM_FI_DEV_FB_(USED|FREE|TOTAL|RESERVED)$`)
	ratio   = lazyregexp.New(`_(ratio|perc|percent|utilization)$|^DCGM_FI_.*_UTIL$`)
	noLevel = lazyregexp.New(`_(seconds|celsius|watts|joules|tokens|requests|volts)$`)
)

// namedUnit is the unit that a metric's name states.
func namedUnit(name string) (unit, error) {
	switch {
	case inMiB.MatchString(name):
		return unit{kind: size, bytes: 1 << 20}, nil
	case ratio.MatchString(name):
		return unit{kind: share, bytes: 1, name: name}, nil
	case noLevel.MatchString(name):
		return unit{}, fmt.Errorf("%s is not a size of memory", name)
	}
	for _, u := range []struct {
		suffix string
		bytes  float64
	}{
		{"_bytes", 1}, {"_kilobytes", 1 << 10}, {"_kb", 1 << 10}, {"_kib", 1 << 10}, {"_megabytes", 1 << 20}, {"_mb", 1 << 20}, {"_mib", 1 << 20},
		{"_gigabytes", 1 << 30}, {"_gb", 1 << 30}, {"_gib", 1 << 30},
	} {
		if strings.HasSuffix(strings.ToLower(name), u.suffix) {
			return unit{kind: size, bytes: u.bytes}, nil
		}
	}
	return ofBytes, nil
}
