package input

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
)

// TestPage reads the snapshot in a page of torch.cuda._memory_viz.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../examples/autograd-graph/iter-20.pickle")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.html")
	page := "<!DOCTYPE html>\n<html>\n<script>\nconst local_files = [{\"name\": \"s.pickle\", \"base64\": \"" + base64.StdEncoding.EncodeToString(data) + "\"}]\n</script>\n</html>\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := OpenPaths([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := files.List[0].Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := in.(*Snapshot); !ok || len(s.Segments) == 0 {
		t.Errorf("%T: %+v", in, in)
	}
}
