// Command site builds the page as a static site: files for any web server, that
// read the snapshots dropped on them in the browser.
//
//	go run ./cmd/site OUT
//
// It needs the Go toolchain and nothing else.
package main

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"strandline/face/web"
	"strandline/internal/licenses"
	"strandline/internal/safefile"
	"strandline/units"
)

//go:embed worker.js
var boot []byte

// maxProgram is the most that a browser downloads for the engine, in bytes: two seconds at
// 20 Mbit/s.
const maxProgram = 5 << 20

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./cmd/site OUT")
		os.Exit(2)
	}
	if err := build(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// build writes the site into a folder.
func build(out string) error {
	files := map[string][]byte{}
	for name, text := range web.Site() {
		files[name] = []byte(text)
	}
	files["THIRD_PARTY.txt"] = []byte(licenses.Text())
	program, err := compile()
	if err != nil {
		return err
	}
	packed, err := deflate(program)
	if err != nil {
		return err
	}
	if len(packed) > maxProgram {
		return fmt.Errorf("the packed program has %s, more than %s", units.Bytes(int64(len(packed))), units.Bytes(maxProgram))
	}
	files["strandline.wasm.deflate"] = packed
	root, err := run(nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	glue, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	files["worker.js"] = append(append(glue, '\n'), boot...)
	folder, err := safefile.MakeSharedFolder(out)
	if err != nil {
		return err
	}
	defer folder.Close()
	var names []string
	for name, body := range files {
		if err := folder.Replace(name, body); err != nil {
			return err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Printf("%-24s %s\n", name, units.Bytes(int64(len(files[name]))))
	}
	return nil
}

// compile builds the engine for the browser.
func compile() ([]byte, error) {
	dir, err := safefile.MakeTemp("strandline-site")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	program := filepath.Join(dir.Path, "strandline.wasm")
	if _, err := run([]string{"GOOS=js", "GOARCH=wasm"}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "strandline/face/web/worker"); err != nil {
		return nil, err
	}
	return os.ReadFile(program)
}

func run(env []string, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return out, nil
}

// deflate packs the program to a quarter. The page unpacks it, so that a server
// need not know how.
func deflate(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
