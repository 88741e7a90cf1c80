package record

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strandline/internal/packed"
)

var update = flag.Bool("update", false, "write module.gz from python/")

// TestModule compares the files that the program holds with those of python/, and writes them.
func TestModule(t *testing.T) {
	var want []packed.Text
	for _, folder := range []string{"", "strandline", "strandline/stand_in/torch_memory_saver"} {
		entries, err := os.ReadDir(filepath.Join("python", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".py" {
				continue
			}
			name := filepath.Join(folder, e.Name())
			text, err := os.ReadFile(filepath.Join("python", name))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, packed.Text{Name: filepath.ToSlash(name), Text: string(text)})
		}
	}
	if *update {
		if packedModule = packed.Texts(want); os.WriteFile("module.gz", packedModule, 0o666) != nil {
			t.Fatal("module.gz cannot be written")
		}
	}
	if !slices.Equal(packed.OwnTexts(packedModule), want) { // another test may have unpacked what was there before
		t.Fatal("module.gz is not of these files: go test ./record -run TestModule -update writes it")
	}
}
