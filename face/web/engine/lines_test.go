package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/face/api/page"
	"strandline/input"
)

// linesOf asks the page of a file for lines.
func linesOf(t *testing.T, p *Page, path string, line int) page.Lines {
	t.Helper()
	a := p.Ask(context.Background(), "lines", url.Values{"path": {path}, "line": {fmt.Sprint(line)}})
	var doc page.Lines
	if a.Status != 200 || json.Unmarshal(a.Body, &doc) != nil {
		t.Fatalf("%s:%d: status %d, %s", path, line, a.Status, a.Body)
	}
	return doc
}

func loadedPage(t *testing.T, o Options, paths ...string) *Page {
	t.Helper()
	files, err := input.OpenPaths(paths, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	p, err := Open(t.Context(), files, o)
	if err == nil {
		err = p.Load(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLinesOfLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.log")
	text := strings.Repeat("step\n", 9) + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n" + strings.Repeat("x", 5000) + "\r\nend"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := loadedPage(t, Options{}, path)
	findings, err := p.Asker.(*Engine).Findings()
	if err != nil {
		t.Fatal(err)
	}
	of, line := Evident(&findings.Findings[0].Finding)
	if of != path || line != 10 {
		t.Fatalf("the evidence is %s:%d", of, line)
	}
	doc := linesOf(t, p, path, 10)
	if doc.From != 7 || len(doc.Lines) != 6 || !strings.HasPrefix(doc.Lines[3], "torch.OutOfMemoryError") || len(doc.Lines[4]) != 1000 || doc.Lines[5] != "end" {
		t.Errorf("%+.200v", doc)
	}
	if doc := linesOf(t, p, path, 99); len(doc.Lines) != 0 {
		t.Errorf("behind the end: %v", doc)
	}
}

// Only what a recording names is read.
func TestLinesOfCode(t *testing.T) {
	for _, path := range []string{"../../../examples/image-leak", "../../../examples/munmap-leak/server.trace"} {
		var asked []string
		p := loadedPage(t, Options{Code: func(path string) ([]byte, error) {
			asked = append(asked, path)
			return []byte(strings.Repeat("code\n", 2000)), nil
		}}, path)
		if doc := linesOf(t, p, "/etc/passwd", 1); len(doc.Lines) != 0 || asked != nil {
			t.Errorf("%s: what it does not name: %v, %v", path, doc, asked)
		}
		var found struct {
			Findings []struct {
				Site struct {
					File string
					Line int
				}
			}
		}
		question := map[string]string{"index.html": "findings", "recording.html": "recording"}[p.Index]
		if err := json.Unmarshal(p.Ask(t.Context(), question, nil).Body, &found); err != nil {
			t.Fatal(err)
		}
		site := found.Findings[0].Site
		if doc := linesOf(t, p, site.File, max(site.Line, 1)); len(doc.Lines) < 4 || !slices.Contains(asked, site.File) {
			t.Errorf("%s: %s:%d: %v, %v", path, site.File, site.Line, doc, asked)
		}
	}
	p := loadedPage(t, Options{Code: func(string) ([]byte, error) { return nil, errors.New("not here") }}, "../../../examples/image-leak")
	if doc := linesOf(t, p, "nowhere.py", 3); len(doc.Lines) != 0 {
		t.Errorf("not at hand: %v", doc)
	}
}
