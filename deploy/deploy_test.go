// Package deploy_test checks the files of this folder, by the tools that read them where
// those are installed.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"strandline/internal/test/live"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tool runs a program on a file; the test is skipped where it is not installed.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	path := live.Tool(t, name)
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func TestAlerts(t *testing.T) {
	tool(t, "promtool", "check", "rules", "alerts.yaml")
	tool(t, "promtool", "test", "rules", "alerts_test.yaml")
	tool(t, "promtool", "check", "config", "prometheus.yaml")
}

// TestUnit has systemd read the unit, with a program that is there.
func TestUnit(t *testing.T) {
	dir := t.TempDir()
	program := live.Tool(t, "true")
	unit := strings.ReplaceAll(read(t, "strandline-watch.service"), "/usr/local/bin/strandline", program)
	file := filepath.Join(dir, "strandline-watch.service")
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "systemd-analyze", "verify", file)
}

// TestDaemonSet checks the form of the documents, and that the ports are one.
func TestDaemonSet(t *testing.T) {
	kinds := map[string]string{}
	in := yaml.NewDecoder(strings.NewReader(read(t, "daemonset.yaml")))
	for {
		var doc map[string]any
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[fmt.Sprint(doc["kind"])] = fmt.Sprint(doc["apiVersion"])
		if doc["kind"] != "DaemonSet" {
			continue
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"args":["watch","--listen",":9400"]`, `"containerPort":9400`, `"prometheus.io/port":"9400"`, `"hostPID":true`, `"path":"/-/ready"`} {
			if !bytes.Contains(text, []byte(want)) {
				t.Errorf("%s is missing", want)
			}
		}
	}
	if kinds["DaemonSet"] != "apps/v1" || kinds["PodMonitor"] != "monitoring.coreos.com/v1" || len(kinds) != 2 {
		t.Errorf("the kinds are %v", kinds)
	}
}

// TestKubernetes has kubectl decode the DaemonSet into its own types, without a cluster: a
// value of the wrong type is an error, and a field that Kubernetes does not know is lost.
func TestKubernetes(t *testing.T) {
	kubectl := live.Tool(t, "kubectl")
	text, _, _ := strings.Cut(read(t, "daemonset.yaml"), "\n---\n")
	for _, c := range []struct{ old, changed, lost string }{
		{"", "", ""},
		{"hostPID:", "hostPIDs:", ".spec.template.spec.hostPIDs"},
		{"containerPort:", "port:", ".spec.template.spec.containers[0].ports[0].port"},
	} {
		text := strings.Replace(text, c.old, c.changed, 1)
		run := exec.Command(kubectl, "set", "env", "--local", "-f", "-", "-o", "json", "CHECKED=yes")
		run.Env = append(os.Environ(), "KUBECONFIG=/dev/null") // not that of whoever runs the test
		run.Stdin = strings.NewReader(text)
		out, err := run.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var want, got any
		if err := errors.Join(yaml.Unmarshal([]byte(text), &want), json.Unmarshal(out, &got)); err != nil {
			t.Fatal(err)
		}
		if lost := lost(want, got, ""); lost != c.lost {
			t.Errorf("with %q: kubectl lost %q, want %q", c.changed, lost, c.lost)
		}
	}
}

// lost is the path of the first value that is not in another document, empty if there is
// none.
func lost(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(w)) {
			if l := lost(w[k], g[k], at+"."+k); l != "" {
				return l
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		for i := range w {
			if i >= len(g) {
				return at
			}
			if l := lost(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); l != "" {
				return l
			}
		}
		return ""
	}
	if got == nil || fmt.Sprint(want) != fmt.Sprint(got) {
		return at
	}
	return ""
}

// TestDashboard checks what Grafana's schema leaves open: each panel has a place of its
// own, and queries the data source that is chosen. The schema itself is held by
// ui/test/dashboard.test.ts, with the types that Grafana publishes.
func TestDashboard(t *testing.T) {
	type source struct{ Type, UID string }
	var d struct {
		Title         string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID          int
			Type, Title string
			Datasource  source
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct {
				Expr, RefID string
				Datasource  source
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana-dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) == 0 || len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
		t.Fatalf("%+v", d)
	}
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || len(p.Targets) == 0 || p.Datasource.Type != "prometheus" {
			t.Errorf("panel %s: %+v", p.Title, p)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			if q.Expr == "" || q.RefID == "" || q.Datasource.UID != "${datasource}" {
				t.Errorf("panel %s: %+v", p.Title, q)
			}
		}
		g := p.GridPos
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %s is in the place of %q", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestNames checks that the metrics that are queried are those that are exported, and that
// Prometheus can parse the queries.
func TestNames(t *testing.T) {
	exported := read(t, "../face/metrics/testdata/metrics.txt")
	names := regexp.MustCompile(`\bstrandline_[a-z_]+`)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "grafana-dashboard.json", "../docs/metrics.md"} {
		found := names.FindAllString(read(t, file), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range found {
			if !strings.Contains(exported, "# TYPE "+name+" ") {
				t.Errorf("%s names %s, which is not exported", file, name)
			}
		}
	}
	documented := read(t, "../docs/metrics.md")
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(exported, -1) {
		if !strings.Contains(documented, "`"+m[1]) {
			t.Errorf("docs/metrics.md does not name %s", m[1])
		}
	}
}

// TestQueries has Prometheus parse the queries of the dashboard, as rules.
func TestQueries(t *testing.T) {
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, "grafana-dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	g := group{Name: "dashboard"}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$instance", ".*", "$gpu", ".*").Replace(q.Expr)
			g.Rules = append(g.Rules, rule{fmt.Sprintf("panel:%d", len(g.Rules)), expr})
		}
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "promtool", "check", "rules", file)
}
