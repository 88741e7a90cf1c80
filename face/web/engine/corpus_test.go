package engine

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/face/api/page"
	"strandline/input"
	"strandline/internal/test/live"
	"strandline/judge/diagnosis"
	"strandline/torch/snapshot"
)

// TestOddFiles asks everything about files that lack something.
func TestOddFiles(t *testing.T) {
	live.Sequential(t)
	files, err := filepath.Glob("../../../torch/snapshot/testdata/w*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, path := range files {
		askAll(t, path, load(t, source(path)))
	}
	whole, err := os.ReadFile(files[0]) // whose cuts cannot be replayed
	if err != nil {
		t.Fatal(err)
	}
	for n := len(whole) - 1; n > 4000; n -= 2500 {
		cut := Source{Path: "cut", Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
			s, err := snapshot.Read(bytes.NewReader(whole[:n]), snapshot.Options{})
			return s, nil, err
		}}
		e := made(cut)
		if err := e.Load(context.Background()); err == nil {
			askAll(t, fmt.Sprintf("the first %d bytes", n), e)
		}
	}
}

// TestCorpus asks everything about the recorded corpus, if there is one.
func TestCorpus(t *testing.T) {
	root := live.Given(t, "STRANDLINE_CORPUS")
	filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		info, infoErr := os.Stat(path)
		if err != nil || infoErr != nil || !info.Mode().IsRegular() || info.Size() > 30<<20 || !strings.Contains(path, ".p") {
			return nil
		}
		e := made(source(path))
		if e.Load(context.Background()) == nil {
			askAll(t, path, e)
		}
		return nil
	})
}

// askAll asks everything about the first file, at its end and at its peak.
func askAll(t *testing.T, name string, e *Engine) {
	t.Helper()
	for _, d := range read[page.Session](t, e, "session").Files[0].Devices {
		doc := read[page.Device](t, e, fmt.Sprintf("device?d=%d", d))
		last := doc.Events - 1
		if slices.Contains(doc.Measures, asAllocated) != (doc.MeasuresWhy == nil) {
			t.Errorf("%s: measures %v, for %v", name, doc.Measures, doc.MeasuresWhy)
		}
		var asked []string
		for _, u := range doc.Measures {
			for _, g := range read[page.Device](t, e, fmt.Sprintf("device?d=%d&u=%s", d, u)).Groupings {
				asked = append(asked, fmt.Sprintf("d=%d&g=%s&u=%s", d, g, u))
			}
		}
		for _, q := range asked {
			for _, what := range []string{
				"bands?" + q, fmt.Sprintf("at?k=%d&%s", last, q), fmt.Sprintf("diff?a=-1&b=%d&%s", last, q), fmt.Sprintf("state?k=%d&%s", doc.Peak.Event, q),
				"tile?L=0&i=0&y=10&" + q, "tile?L=2&i=0&y=10&kind=alloc&" + q, "tile?L=2&i=0&y=10&kind=total&" + q, "csv?table=bands&" + q,
				fmt.Sprintf("hit?k=%d&y=%d&%s", last, doc.End.Requested/2, q),
			} {
				ask(t, e, what, 200)
			}
			if n := read[page.Device](t, e, "device?"+q[:strings.Index(q, "&g=")]+q[strings.Index(q, "&u="):]).Allocations; n > 0 {
				ask(t, e, "alloc?i=0&"+q, 200)
			}
		}
		if doc.Time != nil {
			ask(t, e, fmt.Sprintf("tile?d=%d&L=2&i=0&y=10&x=us", d), 200)
		} else if doc.TimeWhy == nil {
			t.Errorf("%s: it does not say why it has no times", name)
		}
		for _, what := range []string{"flame?d=%d&k=%d", "event?d=%d&k=%d", "next?to=peak&d=%d&k=%d", "next?to=segment&back=1&d=%d&k=%d", "events?from=-1&d=%d&to=%d"} {
			ask(t, e, fmt.Sprintf(what, d, last), 200)
		}
	}
	ask(t, e, "file", 200)
	ask(t, e, "findings", 200)
	ask(t, e, "compare", 200)
}
