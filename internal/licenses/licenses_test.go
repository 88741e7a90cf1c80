package licenses

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite THIRD_PARTY from the module cache")

const rule = "================================================================================"

// headings are the lines of the text that name a module.
var headings = regexp.MustCompile(`(?m)^` + rule + `\n(\S+ \S+)\n` + rule + `$`)

// TestThirdParty checks for a notice of each module in go.mod, and of each package of the
// page that is not for development alone.
func TestThirdParty(t *testing.T) {
	want := append(goModules(t), pagePackages(t)...)
	if *update {
		write(t, want)
	}
	text, err := os.ReadFile("THIRD_PARTY")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{"Go standard-library": true}
	for _, m := range headings.FindAllStringSubmatchIndex(string(text), -1) {
		have[string(text[m[2]:m[3]])] = true
		rest := string(text[m[1]:])
		if next := headings.FindStringIndex(rest); next != nil {
			rest = rest[:next[0]]
		}
		if len(strings.TrimSpace(rest)) < 200 {
			t.Errorf("%s has no license", text[m[2]:m[3]])
		}
	}
	for _, module := range want {
		if !have[module] {
			t.Errorf("%s has no notice; go test ./internal/licenses -update writes it", module)
		}
		delete(have, module)
	}
	delete(have, "Go standard-library")
	for module := range have {
		t.Errorf("%s has a notice, but is not used", module)
	}
}

// goModules are the modules that go.mod requires, with their versions.
func goModules(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	return out
}

// pagePackages are the packages of npm that are part of the page.
func pagePackages(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("../../ui/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil || len(lock.Packages) == 0 {
		t.Fatalf("%d packages: %v", len(lock.Packages), err)
	}
	for path, p := range lock.Packages {
		if path != "" && !p.Dev {
			out = append(out, strings.TrimPrefix(path, "node_modules/")+" "+p.Version)
		}
	}
	return out
}

// write writes the notices of the Go toolchain and of modules.
func write(t *testing.T, modules []string) {
	t.Helper()
	var out strings.Builder
	out.WriteString("Strandline is built from the work of others, under the licenses below.\n\n")
	notice := func(name, dir string) {
		fmt.Fprintf(&out, "%s\n%s\n%s\n\n", rule, name, rule)
		for _, file := range notices(t, dir) {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s\n\n", strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	notice("Go standard-library", strings.TrimSpace(string(root)))
	slices.Sort(modules)
	for _, module := range modules {
		name, version, _ := strings.Cut(module, " ")
		dir := filepath.Join("../../ui/node_modules", name)
		if strings.HasPrefix(version, "v") {
			path, err := exec.Command("go", "mod", "download", "-json", name+"@"+version).Output()
			var at struct{ Dir string }
			if err != nil || json.Unmarshal(path, &at) != nil {
				t.Fatalf("%s: %v", module, err)
			}
			dir = at.Dir
		}
		notice(module, dir)
	}
	if err := os.WriteFile("THIRD_PARTY", []byte(strings.TrimSpace(out.String())+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// notices are the files of a folder that state a license.
func notices(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		for _, prefix := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE"} {
			if strings.HasPrefix(name, prefix) && e.Type()&fs.ModeType == 0 {
				out = append(out, e.Name())
				break
			}
		}
	}
	return out
}
