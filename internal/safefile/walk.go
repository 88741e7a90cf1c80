package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// walk follows a path to a folder, link by link, each of which must be trusted. It returns
// the path without links, and the rest of it, which does not exist.
func walk(path string) (real, missing string, err error) {
	volume := filepath.VolumeName(path)
	real, rest := volume, filepath.ToSlash(path[len(volume):])
	for links := 0; rest != ""; {
		var name string
		if strings.HasPrefix(rest, "/") {
			real += string(os.PathSeparator)
			rest = strings.TrimLeft(rest, "/")
			continue
		}
		name, rest, _ = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		at := filepath.Join(real, name)
		info, to, err := lookAt(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return real, filepath.Join(name, filepath.FromSlash(rest)), nil
		case err != nil:
			return "", "", err
		case to == "":
			real = at
			continue
		case !trusted(info):
			return "", "", fmt.Errorf("%s is a link that %w: give the path that it leads to", at, ErrForeign)
		}
		if links++; links > maxLinks {
			return "", "", errLinks
		}
		if filepath.IsAbs(to) {
			real = filepath.VolumeName(to)
			to = to[len(real):]
		}
		rest = filepath.ToSlash(to) + "/" + rest
	}
	return real, "", nil
}

// openRoot opens a folder. The links on its path are followed if they are trusted.
func openRoot(dir string) (*os.Root, error) {
	real, missing, err := walk(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && missing != "":
		return nil, noFolder(dir)
	case err != nil:
		return nil, err
	}
	root, err := openReal(orHere(real))
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, noFolder(dir)
	}
	return sameFolder(dir, root, err)
}

// makeRoot is openRoot for a folder that is made where there is none, with its parents.
func makeRoot(dir string, mode fs.FileMode) (*os.Root, error) {
	real, missing, err := walk(dir)
	if err != nil {
		return nil, err
	}
	above, err := openReal(orHere(real))
	if err != nil || missing == "" {
		return sameFolder(dir, above, err)
	}
	defer above.Close()
	if err := above.MkdirAll(missing, mode); err != nil {
		return nil, err
	}
	root, err := above.OpenRoot(missing)
	return sameFolder(dir, root, err)
}

// sameFolder closes a folder that is not the one at a path: it was replaced, or the text
// of a link does not say where it leads, as of a process's root folder in /proc.
func sameFolder(path string, root *os.Root, err error) (*os.Root, error) {
	if err != nil {
		return nil, err
	}
	if err := stillAt(path, root); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// stillAt returns an error unless a path leads to a folder that is open.
func stillAt(path string, root *os.Root) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	own, err := root.Stat(".")
	if err == nil && !os.SameFile(info, own) {
		err = errChanged
	}
	return err
}

func orHere(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// openFolder is [os.OpenRoot], which would wait for a pipe.
func openFolder(path string) (*os.Root, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(path)
}

// noFolder is a path where there is no folder.
type noFolder string

func (dir noFolder) Error() string { return "there is no folder " + string(dir) }

func (noFolder) Is(target error) bool { return target == fs.ErrNotExist }
