package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A metric is one line of metrics: what is measured, and the value.
type metric struct {
	labels []label
	value  float64
}

type label struct{ name, value string }

// maxLabels is how many labels a metric may have: engines write fewer than ten.
const maxLabels = 100

// readText reads metrics by name from the text format of Prometheus, version 0.0.4, with
// names in quotes as of Prometheus 3, and blanks or a carriage return at the end of a
// line. Types are not read: a histogram or a summary is the metrics that its lines are. (prometheus/common/expfmt reads the same into messages of
// protobuf, whose packages every command would load: decision 0049.)
//
// https://prometheus.io/docs/instrumenting/exposition_formats/
func readText(in io.Reader) (map[string][]metric, error) {
	r := bufio.NewReader(in)
	out := map[string][]metric{}
	for n := 1; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		text := strings.Trim(strings.TrimSuffix(line, "\n"), " \t")
		switch {
		case err == io.EOF && text != "":
			return nil, fmt.Errorf("line %d is cut off", n) // the value too, perhaps
		case err == io.EOF:
			return out, nil
		case text == "" || text[0] == '#':
			continue
		}
		name, m, err := readMetric(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out[name] = append(out[name], m)
	}
}

// readMetric reads a line such as `name{label="value"} 12 1700000000000`, the last of
// which is a time, or `{"name",label="value"} 12`.
func readMetric(line string) (name string, m metric, err error) {
	if !utf8.ValidString(line) {
		return "", m, errors.New("it is not UTF-8")
	}
	rest := line
	if line[0] != '{' {
		if name, rest, err = readName(line, ":"); err != nil {
			return "", m, errors.New("it does not begin with the name of a metric")
		}
		rest = strings.TrimLeft(rest, " \t")
	}
	if inside, ok := strings.CutPrefix(rest, "{"); ok {
		var quoted string
		if quoted, m.labels, rest, err = readLabels(inside, name != ""); err != nil {
			return "", m, err
		}
		name += quoted // one of them is empty
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 || len(fields) > 2 {
		return "", m, fmt.Errorf("a value and no more than a time after it should follow the name %q", name)
	}
	if m.value, err = strconv.ParseFloat(fields[0], 64); err != nil || strings.ContainsAny(fields[0], "pP_") {
		return "", m, fmt.Errorf("%q is not a value", fields[0])
	}
	if len(fields) == 2 {
		if _, err := strconv.ParseInt(fields[1], 10, 64); err != nil {
			return "", m, fmt.Errorf("%q is not a time in milliseconds", fields[1])
		}
	}
	return name, m, nil
}

// readLabels reads from after the opening brace to the closing one, and returns what
// follows. Where the name of the metric has not come before, it is among the labels, in
// quotes and without a value.
func readLabels(text string, named bool) (name string, labels []label, rest string, err error) {
	for rest = text; ; {
		rest = strings.TrimLeft(rest, " \t")
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			if !named {
				return "", nil, "", errors.New("the name of the metric is missing")
			}
			return name, labels, after, nil
		}
		var l label
		if l.name, rest, err = readName(rest, ""); err != nil {
			return "", nil, "", err
		}
		rest = strings.TrimLeft(rest, " \t")
		if after, ok := strings.CutPrefix(rest, "="); ok {
			if l.value, rest, err = readQuoted(strings.TrimLeft(after, " \t")); err != nil {
				return "", nil, "", err
			}
			for _, other := range labels {
				if other.name == l.name {
					return "", nil, "", fmt.Errorf("the label %q is there twice", l.name)
				}
			}
			if len(labels) == maxLabels {
				return "", nil, "", fmt.Errorf("more than %d labels", maxLabels)
			}
			labels = append(labels, l)
		} else if named {
			return "", nil, "", fmt.Errorf("the label %q has no value", l.name)
		} else {
			name, named = l.name, true
		}
		rest = strings.TrimLeft(rest, " \t")
		if after, ok := strings.CutPrefix(rest, ","); ok {
			rest = after
		} else if !strings.HasPrefix(rest, "}") {
			return "", nil, "", errors.New("the labels do not end with }")
		}
	}
}

// readName reads a name in letters of ASCII, digits, underscores and others, or one in
// quotes, and returns what follows.
func readName(text, others string) (name, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		if name, rest, err = readQuoted(text); err == nil && name == "" {
			err = errors.New("a name is empty")
		}
		return name, rest, err
	}
	n := 0
	for n < len(text) {
		c := text[n]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || strings.IndexByte(others, c) >= 0
		if !letter && (n == 0 || c < '0' || c > '9') {
			break
		}
		n++
	}
	if n == 0 {
		return "", "", errors.New("a name is missing")
	}
	return text[:n], text[n:], nil
}

// readQuoted reads a text in quotes, in which a backslash comes before a quote, before
// itself and before the n of a new line, and returns what follows.
func readQuoted(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", errors.New("a value in quotes is missing")
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return out.String(), text[i+1:], nil
		case c != '\\':
			out.WriteByte(c)
		case i+1 < len(text) && text[i+1] == 'n':
			out.WriteByte('\n')
			i++
		case i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			out.WriteByte(text[i+1])
			i++
		default:
			return "", "", errors.New("a backslash is not followed by n, a quote or a backslash")
		}
	}
	return "", "", errors.New("a quote does not end")
}
