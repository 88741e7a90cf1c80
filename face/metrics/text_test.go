package metrics

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// message is a family as expfmt writes it.
func (f *family) message() *dto.MetricFamily {
	kind := dto.MetricType_GAUGE
	if f.counter {
		kind = dto.MetricType_COUNTER
	}
	out := &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &kind}
	for i := range f.metrics {
		m := &f.metrics[i]
		made := &dto.Metric{}
		if f.counter {
			made.Counter = &dto.Counter{Value: &m.value}
		} else {
			made.Gauge = &dto.Gauge{Value: &m.value}
		}
		for i := range m.labels {
			made.Label = append(made.Label, &dto.LabelPair{Name: &m.labels[i].name, Value: &m.labels[i].value})
		}
		out.Metric = append(out.Metric, made)
	}
	return out
}

// TestText compares what is written with what Prometheus's own package writes.
func TestText(t *testing.T) {
	all := madeState().sorted()
	odd := family{name: "odd", help: "A \"help\" \\ with\na line."}
	for i, x := range []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.1, 1e6, 1e21, 123456789, 1 << 40, 1e-9, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		odd.metrics = append(odd.metrics, metric{[]label{{"i", fmt.Sprint(i)}, {"text", "a \"b\" \\ c\n\u2028é{},="}}, x})
	}
	all = append(all, &odd, &family{name: "n_total", help: "", counter: true, metrics: []metric{{value: 3}}})
	for _, f := range all {
		for format, open := range map[expfmt.FormatType]bool{expfmt.TypeTextPlain: false, expfmt.TypeOpenMetrics: true} {
			var want, got bytes.Buffer
			if err := expfmt.NewEncoder(&want, expfmt.NewFormat(format)).Encode(f.message()); err != nil {
				t.Fatal(err)
			}
			b := bufio.NewWriter(&got)
			f.write(b, open)
			b.Flush()
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("wrote\n%s\nwant\n%s", &got, &want)
			}
		}
	}
}

// TestContentType compares the format that is chosen with that of Prometheus's own
// package.
func TestContentType(t *testing.T) {
	written := []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtText}
	for _, accept := range []string{
		"", "*/*", "text/*", "text/plain", "text/plain;version=0.0.4", "text/plain;version=1", "text/html, */*;q=0.1", "nonsense", ",;=/",
		"application/openmetrics-text", "application/openmetrics-text;version=1.0.0", "application/openmetrics-text;version=0.0.1", "application/openmetrics-text;version=2.0.0",
		"application/openmetrics-text;version=1.0.0;q=0.1,text/plain;q=0.5", "text/plain;q=0.1, application/openmetrics-text; version=0.0.1; q=0.9",
		// Prometheus 2.42, and 3 without and with native histograms
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
	} {
		want, _, _ := strings.Cut(string(expfmt.NegotiateAccept(http.Header{"Accept": {accept}}, written...)), "; escaping")
		if got := contentType(accept); got != want {
			t.Errorf("Accept: %s: %s, want %s", accept, got, want)
		}
	}
}
