package snapshots

import (
	"slices"
	"testing"

	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// TestKindsOfDetectors runs every detector of the table on files that it finds
// something in, and fails on a kind that the table does not give it.
func TestKindsOfDetectors(t *testing.T) {
	book := digest.NewBook()
	var processes []*compare.Process
	for _, folder := range []string{"image-leak/*.pickle", "autograd-graph/*.pickle", "out-of-memory/*.pickle", "peak/*.pickle", "graphs/*.pickle"} {
		var files []*digest.File
		for _, path := range example(t, folder) {
			s, err := snapshot.Open(path, snapshot.Options{})
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, book.Digest(s))
		}
		processes = append(processes, compare.NewProcess(folder, files))
	}
	var a Answer
	found := 0
	for _, s := range a.subjects(book, processes, Options{}) {
		for i := range detectors {
			d := &detectors[i]
			if !d.needs(s) {
				continue
			}
			for _, f := range d.findings(s) {
				found++
				if !slices.Contains(d.kinds, f.Kind) {
					t.Errorf("the detector of %v finds %s: %s", d.kinds, f.Kind, f.Title)
				}
			}
		}
	}
	if want := len(Files(book, processes, Options{}).Findings); found != want || found < 10 {
		t.Errorf("the detectors find %d findings one by one, %d together", found, want)
	}
}
