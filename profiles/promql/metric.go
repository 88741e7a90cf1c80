package promql

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"strandline/internal/lazyregexp"
)

// A selector is a query that only names a metric, and perhaps labels.
type selector struct{ name string }

var selectorForm = lazyregexp.New(`^\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(?:[^"'{}]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\})?\s*$`)

func parseSelector(expr string) (selector, bool) {
	m := selectorForm.FindStringSubmatch(expr)
	if m == nil {
		return selector{}, false
	}
	return selector{m[1]}, true
}

// changeForm is a query whose value is a change of a metric: a rate in bytes a second is no
// level.
var changeForm = lazyregexp.New(`\b(rate|irate|increase|delta|idelta|deriv|changes|resets)\s*\(`)

var (
	quotedForm = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	// labelsForm is what stands in braces, brackets and behind a word that takes labels.
	labelsForm = lazyregexp.New(`\{[^{}]*\}|\[[^\[\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)`)
	metricForm = lazyregexp.New(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(?)`)
)

// words are those of an expression that are no metrics.
var words = map[string]bool{
	"by": true, "without": true, "on": true, "ignoring": true, "group_left": true, "group_right": true, "offset": true, "bool": true,
	"and": true, "or": true, "unless": true, "start": true, "end": true, "atan2": true, "inf": true, "nan": true, "Inf": true, "NaN": true, "e": true,
}

// isLevel returns an error for an expression that cannot be a level of memory: of changes,
// or of nothing but a metric that is a counter or a histogram.
func (c *client) isLevel(ctx context.Context, expr string) error {
	text := quotedForm.ReplaceAllString(expr, `""`)
	if m := changeForm.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("%s() gives how fast something changes, not a level of memory: ask for a gauge, such as process_resident_memory_bytes", m[1])
	}
	names := map[string]bool{}
	for _, m := range metricForm.FindAllStringSubmatch(labelsForm.ReplaceAllString(text, " "), -1) {
		if name := m[1]; !words[name] && m[2] != "(" {
			names[name] = true
		}
	}
	if len(names) != 1 { // the difference of two counters can be a level
		return nil
	}
	for name := range names {
		return c.isGauge(ctx, selector{name})
	}
	return nil
}

// isGauge returns an error for a metric that is a counter or a histogram: by the metadata
// of the store, or where it has none by the name.
func (c *client) isGauge(ctx context.Context, s selector) error {
	kind := c.kindOf(ctx, s.name)
	for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
		base, found := strings.CutSuffix(s.name, suffix)
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
		return fmt.Errorf("%s is a counter, which only ever grows: it is no level of memory that could run out, and neither is its rate; ask for a gauge, such as process_resident_memory_bytes", s.name)
	case "histogram", "gaugehistogram", "summary":
		return fmt.Errorf("%s is a %s, not a level of memory", s.name, kind)
	case "info", "stateset":
		return fmt.Errorf("%s only carries labels, not a level of memory", s.name)
	}
	return nil
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

// factorOf is how many bytes one of a metric is.
func factorOf(name string) (float64, error) {
	switch {
	case inMiB.MatchString(name):
		return 1 << 20, nil
	case ratio.MatchString(name):
		return 0, fmt.Errorf("%s is a share, not a size: multiply it by what it is a share of, in bytes, as in --query '%s * 64 * 2^30'", name, name)
	case noLevel.MatchString(name):
		return 0, fmt.Errorf("%s is not a size of memory", name)
	}
	for _, u := range []struct {
		suffix string
		bytes  float64
	}{{"_kilobytes", 1 << 10}, {"_kb", 1 << 10}, {"_kib", 1 << 10}, {"_megabytes", 1 << 20}, {"_mb", 1 << 20}, {"_mib", 1 << 20}, {"_gigabytes", 1 << 30}, {"_gb", 1 << 30}, {"_gib", 1 << 30}} {
		if strings.HasSuffix(strings.ToLower(name), u.suffix) {
			return u.bytes, nil
		}
	}
	return 1, nil
}
