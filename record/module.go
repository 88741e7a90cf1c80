package record

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // module.gz
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"strandline/internal/packed"
	"strandline/internal/safefile"
)

// packedModule has the files of python/, compressed to keep the program small.
// go test ./record -run TestModule -update writes it.
//
//go:embed module.gz
var packedModule []byte

// moduleFiles are those of the Python module, by name with slashes in a folder of modules.
var moduleFiles = sync.OnceValue(func() []packed.Text { return packed.OwnTexts(packedModule) })

// WriteModule writes the Python module, strandline, into a folder of modules, for all
// users.
func WriteModule(dir string) error {
	folder, err := safefile.MakeSharedFolder(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return eachFile("strandline", func(name string, data []byte) error { return replaceIn(folder, name, data) })
}

// eachFile calls a function with each file of the module at or below root, by its name in
// a folder of modules.
func eachFile(root string, f func(name string, data []byte) error) error {
	for _, file := range moduleFiles() {
		if root == "." || strings.HasPrefix(file.Name, root+"/") {
			if err := f(filepath.FromSlash(file.Name), []byte(file.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// InModule reports whether a source file is one of the Python module that processes
// load, wherever that was written to. What such a file allocates is not the program's.
func InModule(file string) bool {
	dir, name := path.Split(filepath.ToSlash(file))
	if path.Base(dir) != "strandline" {
		return false
	}
	return slices.ContainsFunc(moduleFiles(), func(f packed.Text) bool { return f.Name == "strandline/"+name })
}

// moduleHash identifies the contents of the module.
var moduleHash = sync.OnceValue(func() string {
	h := sha256.New()
	eachFile(".", func(name string, data []byte) error {
		fmt.Fprintf(h, "%s\n%d\n%s", name, len(data), data)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:8])
})

// placeModule writes the Python module and returns its folder, which a command and all its
// children have in PYTHONPATH, also those that outlive the recording. So it lies where
// no other user can replace it, now or later: in the user's cache, where it stays, or in a
// folder of the recording.
func placeModule(recording string) (string, error) {
	var why []string
	cache, err := os.UserCacheDir()
	if err != nil {
		why = append(why, err.Error())
	}
	for _, folder := range []string{filepath.Join(cache, "strandline", "module-"+moduleHash()), filepath.Join(recording, "module")} {
		if !filepath.IsAbs(folder) {
			continue
		}
		real, err := guardedFolder(folder)
		if err == nil {
			err = fillModule(real)
		}
		if err == nil {
			return real, nil
		}
		why = append(why, err.Error())
	}
	return "", fmt.Errorf("there is no safe folder for the recorder's Python module: %s; set XDG_CACHE_HOME to a folder that only you can write to, like those above it", strings.Join(why, "; "))
}

// guardedFolder makes a folder that only this user can write to and returns its path
// without links. The error states who else could replace it.
func guardedFolder(folder string) (string, error) {
	above := folder
	for {
		_, err := os.Lstat(above)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		above = filepath.Dir(above)
	}
	real, err := filepath.EvalSymlinks(above)
	if err != nil {
		return "", err
	}
	if err := guarded(real); err != nil {
		return "", err
	}
	if real, err = filepath.Abs(filepath.Join(real, strings.TrimPrefix(folder, above))); err != nil {
		return "", err
	}
	if strings.ContainsRune(real, os.PathListSeparator) {
		return "", fmt.Errorf("PYTHONPATH cannot name %s, which has a %q", real, os.PathListSeparator)
	}
	if err := os.MkdirAll(real, 0o700); err != nil {
		return "", err
	}
	if err := guarded(real); err != nil {
		return "", err
	}
	return real, os.Chmod(real, 0o700)
}

// fillModule writes the files of the module that a guarded folder lacks or has otherwise.
// Each is replaced in one piece: other processes may be using the folder.
func fillModule(folder string) error {
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() || foreign(info) {
			return fmt.Errorf("%s is not strandline's: remove it", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	dir, err := safefile.OpenFolder(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return eachFile(".", func(name string, data []byte) error {
		if have, err := safefile.ReadFile(filepath.Join(folder, name), int64(len(data))); err == nil && bytes.Equal(have, data) {
			return nil
		}
		return replaceIn(dir, name, data)
	})
}

// replaceIn puts a file into a folder below another one, which is made where there is none.
func replaceIn(folder *safefile.Folder, name string, data []byte) error {
	in, err := folder.Folder(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Replace(filepath.Base(name), data)
}
