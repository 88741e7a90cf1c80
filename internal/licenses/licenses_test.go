package licenses

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite THIRD_PARTY.gz from the module cache")

// TestThirdParty checks for a notice of each module in the programs, and of each package of
// the page that is not for development alone.
func TestThirdParty(t *testing.T) {
	want := append(goModules(t), pagePackages(t)...)
	if *update {
		write(t, want)
	}
	have := map[string]bool{}
	for i, n := range Notices() {
		name := n.Name + " " + n.Version
		if len(n.Text) < 200 {
			t.Errorf("%s has no license", name)
		}
		if i == 0 && name != "Go standard-library" || have[name] {
			t.Errorf("notice %d is of %s", i, name)
		}
		have[name] = i > 0
	}
	for _, module := range want {
		if !have[module] {
			t.Errorf("%s has no notice; go test ./internal/licenses -update writes it", module)
		}
		have[module] = false
	}
	for module, unused := range have {
		if unused {
			t.Errorf("%s has a notice, but is not used", module)
		}
	}
}

// goModules are the modules, with their versions, whose packages are in the programs for any
// system.
func goModules(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range []struct{ system, arch, program string }{
		{"linux", "amd64", "./cmd/strandline"},
		{"linux", "arm64", "./cmd/strandline"},
		{"darwin", "arm64", "./cmd/strandline"},
		{"windows", "amd64", "./cmd/strandline"},
		{"js", "wasm", "./face/web/worker"},
	} {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", c.program)
		list.Dir = "../.."
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+c.system, "GOARCH="+c.arch)
		modules, err := list.Output()
		if err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		for line := range strings.Lines(string(modules)) {
			if module := strings.TrimSpace(line); module != "" && !slices.Contains(out, module) {
				out = append(out, module)
			}
		}
	}
	if len(out) < 20 {
		t.Fatalf("the programs have the modules %v", out)
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
		fmt.Fprintf(&out, "%s%s\n%s\n", rule, name, rule)
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
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	z.Write([]byte(strings.TrimSpace(out.String()) + "\n"))
	z.Close()
	text = packed.Bytes()
	if err := os.WriteFile("THIRD_PARTY.gz", text, 0o666); err != nil {
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
