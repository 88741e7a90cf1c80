package engine

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// plainly prints metrics of expfmt as those of readText are printed; of gauges, counters and untyped.
func plainly(families map[string]*dto.MetricFamily) map[string]string {
	out := map[string]string{}
	for name, f := range families {
		var all []metric
		for _, m := range f.GetMetric() {
			ours := metric{value: m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()}
			for _, l := range m.GetLabel() {
				ours.labels = append(ours.labels, label{l.GetName(), l.GetValue()})
			}
			all = append(all, ours)
		}
		out[name] = fmt.Sprintf("%+v", all)
	}
	return out
}

// TestText compares what is read with what Prometheus's own package reads.
func TestText(t *testing.T) {
	for _, text := range []string{
		vllm[:strings.Index(vllm, "# HELP vllm:time_to_first")], sglang,
		"", "\n \n\t\n", "# no metric\n#\n# TYPE\n", "a 1\n\n b\t2\n", "a 1 1700000000000\n", "a{} 1\n", "a{ } 1\n", "a {b=\"c\"} 1\n",
		"a{b=\"c\",} 1\n", "a{ b = \"c\" , d = \"\" } 1e3\n", `a{b="\"\\\n}, x=\"1\"", _c9="é"} -0.5` + "\n", "a NaN\na +Inf\na -Inf\na 0x\n",
		`{"a.b"} 1` + "\n", `{"a.b",c="d"} 1` + "\n", `{"a b", "c d"="e"} 1` + "\n", `{c="d"} 1` + "\n", "{} 1\n",
		"a:b 1\n", "1a 2\n", "a{1b=\"c\"} 2\n", "a{b:c=\"d\"} 2\n", "é 1\n", "a 1", "a", "a\n", "a \n", "a{", "a{b", "a{b=", "a{b=\"c", "a{b=\"c\"", "a{b=\"c\"}\n",
		"a{b=\"c\"x} 1\n", "a{b=c} 1\n", "a{b} 1\n", "a{,} 1\n", "a{b=\"c\"\"} 1\n", "a{b=\"\\t\"} 1\n", "a{b=\"c\",b=\"d\"} 1\n", "a{b=\"c\nd\"} 1\n", "a{b=\"\xff\"} 1\n",
		"a 1 2 3\n", "a 1 x\n", "a 1 1.5\n", "a 1_000\n", "a 0x1p4\n", "a one\n", "a{b=\"c\"}1\n", "<html>\n", `{"error":"not found"}` + "\n", "a 1\x00\n", `{"",b="c"} 1` + "\n",
	} {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, wantErr := parser.TextToMetricFamilies(strings.NewReader(text))
		got, err := readText(strings.NewReader(text))
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%q: %v, but of expfmt: %v", text, err, wantErr)
			continue
		}
		if err != nil {
			continue
		}
		want := plainly(families)
		for name, metrics := range got {
			if s := fmt.Sprintf("%+v", metrics); s != want[name] {
				t.Errorf("%q: %s is %s, want %s", text, name, s, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%q: %v is not read", text, want)
		}
	}
}

// FuzzText reads any text, and what expfmt writes of any name, label and value.
func FuzzText(f *testing.F) {
	f.Add("vllm:num_requests_running", "model_name", "a \"b\" \\ c\n}", 3.0, vllm)
	f.Add("with space", "and.dot", "", math.Inf(1), `{"a",b="c"} 1`+"\n")
	f.Fuzz(func(t *testing.T, name, labelName, labelValue string, value float64, text string) {
		if _, err := readText(strings.NewReader(text)); err == nil && strings.HasPrefix(text, "<") {
			t.Error("HTML is read as metrics")
		}
		if name == "" || labelName == "" || !utf8.ValidString(name+labelName) || !utf8.ValidString(labelValue) {
			return
		}
		kind := dto.MetricType_UNTYPED
		var b bytes.Buffer
		if _, err := expfmt.MetricFamilyToText(&b, &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{{Label: []*dto.LabelPair{{Name: &labelName, Value: &labelValue}}, Untyped: &dto.Untyped{Value: &value}}}}); err != nil {
			t.Fatal(err)
		}
		got, err := readText(&b)
		want := []metric{{[]label{{labelName, labelValue}}, value}}
		if err != nil || fmt.Sprint(got[name]) != fmt.Sprint(want) {
			t.Errorf("%+v is read for %+v, %v", got, want, err)
		}
	})
}
