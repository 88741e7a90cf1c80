package metrics

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
)

// A family is the metrics of one name, which is in letters of ASCII, digits and
// underscores, as are those of labels. That of a counter ends in _total.
type family struct {
	name, help string
	counter    bool // otherwise a gauge
	metrics    []metric
}

type metric struct {
	labels []label
	value  float64
}

type label struct{ name, value string }

// The formats, by what Content-Type calls them.
const (
	plainText   = "text/plain"
	openMetrics = "application/openmetrics-text"
)

// contentType is the format that a client prefers of those that are written, by the
// header Accept: text of Prometheus or OpenMetrics, the two versions of which differ in
// nothing that is written here.
func contentType(accept string) string {
	for _, a := range goautoneg.ParseAccept(accept) {
		version := a.Params["version"]
		switch kind := a.Type + "/" + a.SubType; {
		case kind == openMetrics && (version == "1.0.0" || version == "0.0.1"):
			return openMetrics + "; version=" + version + "; charset=utf-8"
		case kind == openMetrics && version == "":
			return openMetrics + "; version=0.0.1; charset=utf-8"
		case kind == plainText && (version == "" || version == "0.0.4"):
			return plainText + "; version=0.0.4; charset=utf-8"
		}
	}
	return plainText + "; version=0.0.4; charset=utf-8"
}

// write writes the metrics as text, of Prometheus or of OpenMetrics.
func (s *State) write(w io.Writer, open bool) error {
	b := bufio.NewWriter(w)
	for _, f := range s.sorted() {
		f.write(b, open)
	}
	if open {
		b.WriteString("# EOF\n")
	}
	return b.Flush() // an error before it too
}

// What stands in the help and in the value of a label.
var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeValue = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (f *family) write(b *bufio.Writer, open bool) {
	name, kind, help := f.name, " gauge\n", escapeHelp
	if f.counter {
		kind = " counter\n"
	}
	if open { // the name of a counter is that without its ending
		help = escapeValue
		if f.counter {
			name = strings.TrimSuffix(name, "_total")
		}
	}
	b.WriteString("# HELP " + name + " ")
	help.WriteString(b, f.help)
	b.WriteString("\n# TYPE " + name + kind)
	for _, m := range f.metrics {
		b.WriteString(f.name)
		before := "{"
		for _, l := range m.labels {
			b.WriteString(before + l.name + `="`)
			escapeValue.WriteString(b, l.value)
			b.WriteByte('"')
			before = ","
		}
		if len(m.labels) > 0 {
			b.WriteByte('}')
		}
		b.WriteString(" " + number(m.value, open) + "\n")
	}
}

// number is a value as text. OpenMetrics writes whole numbers with a point.
func number(x float64, open bool) string {
	switch {
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	case math.IsNaN(x):
		return "NaN"
	}
	text := strconv.FormatFloat(x+0, 'g', -1, 64) // and 0 for -0
	if open && !strings.ContainsAny(text, "e.") {
		text += ".0"
	}
	return text
}
