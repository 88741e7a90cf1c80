//go:build unix

package safefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The errors of a file name it as the user does, however it was opened.
func TestErrorsNameThePath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	folder, err := MakeFolder(dir)
	must(t, err)
	defer folder.Close()
	for name, open := range map[string]func() (*os.File, error){
		"Create": func() (*os.File, error) {
			o, err := Create(t.Context(), path)
			return o.File, err
		},
		"CreateNamed": func() (*os.File, error) {
			o, err := CreateNamed(path)
			return o.File, err
		},
		"Append":        func() (*os.File, error) { return Append(t.Context(), path) },
		"Edit":          func() (*os.File, error) { return Edit(path) },
		"New":           func() (*os.File, error) { return New(path) },
		"Folder.Create": func() (*os.File, error) { return folder.Create("out") },
	} {
		os.Remove(path)
		f, err := open()
		must(t, err)
		must(t, f.Close())
		if _, err := f.Write(nil); err == nil || !strings.Contains(err.Error(), " "+path+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
