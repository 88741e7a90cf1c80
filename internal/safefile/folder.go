package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A Folder is one that files are written into. Names are relative to it, and a link
// cannot lead out of it.
type Folder struct {
	root   *os.Root
	path   string
	shared bool // other users may read what is in it, and own it
}

// MakeFolder opens a folder to write into, and makes it where there is none, with its
// parents. One that another user can redirect files in is refused with [ErrForeign].
func MakeFolder(path string) (*Folder, error) {
	root, err := makeRoot(path, folderMode)
	return checked(&Folder{root, path, false}, err)
}

// MakeSharedFolder is MakeFolder for files that all users are to read, such as those that
// are installed or published: what is created gets the mode 0644, and folders 0755, less
// the mask. Any user may own the folder.
func MakeSharedFolder(path string) (*Folder, error) {
	root, err := makeRoot(path, sharedFolderMode)
	return checked(&Folder{root, path, true}, err)
}

// OpenFolder is MakeFolder for a folder that exists.
func OpenFolder(path string) (*Folder, error) {
	root, err := openRoot(path)
	return checked(&Folder{root, path, false}, err)
}

func checked(d *Folder, err error) (*Folder, error) {
	if err != nil {
		return nil, plain(d.path, err)
	}
	if !d.shared {
		if err := checkFolder(d.root); err != nil {
			d.Close()
			return nil, plain(d.path, err)
		}
	}
	return d, nil
}

// modes are those of the files and folders that are created.
func (d *Folder) modes() (file, folder fs.FileMode) {
	if d.shared {
		return sharedFileMode, sharedFolderMode
	}
	return fileMode, folderMode
}

// Folder makes a folder below this one, or opens it.
func (d *Folder) Folder(name string) (*Folder, error) {
	path := filepath.Join(d.path, name)
	_, mode := d.modes()
	if err := d.root.MkdirAll(name, mode); err != nil {
		return nil, plain(path, err)
	}
	root, err := d.root.OpenRoot(name)
	return checked(&Folder{root, path, d.shared}, err)
}

// Path is the path that the folder was opened by.
func (d *Folder) Path() string { return d.path }

// Reopen is the folder, or a new one at its path if it was removed. If another one has its
// path, it was replaced, which is an error.
func (d *Folder) Reopen() (*Folder, error) {
	info, err := d.root.Stat(".")
	if err == nil && !removed(info) {
		if err = stillAt(d.path, d.root); err == errChanged {
			err = errors.New("another folder was put in its place")
		}
		return d, plain(d.path, err)
	}
	d.Close()
	return MakeFolder(d.path)
}

// Close closes the folder.
func (d *Folder) Close() error { return d.root.Close() }

// Create creates a file. One that exists is an [fs.ErrExist], and a link too.
func (d *Folder) Create(name string) (*os.File, error) {
	mode, _ := d.modes()
	path := filepath.Join(d.path, name)
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		f, err = withPath(f, path)
	}
	return f, plain(path, err)
}

// Write creates a file with its contents.
func (d *Folder) Write(name string, data []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		d.root.Remove(name)
	}
	return err
}

// Replace puts a file in the place of one of that name, whole from the first moment.
func (d *Folder) Replace(name string, data []byte) error {
	o, err := d.with(name, data)
	if err != nil {
		return err
	}
	return o.Commit()
}

// Claim creates a file like Replace, unless there is one: that is an [fs.ErrExist]. Of
// several processes one succeeds.
func (d *Folder) Claim(name string, data []byte) error {
	o, err := d.with(name, data)
	if err != nil {
		return err
	}
	defer o.Close()
	switch err = o.claim(); {
	case err == nil || errors.Is(err, fs.ErrExist):
		return plain(filepath.Join(d.path, name), err)
	}
	return d.Write(name, data) // there are no links on this file system
}

// with is a file with its contents that is not in its place yet.
func (d *Folder) with(name string, data []byte) (*Output, error) {
	o, err := d.Output(name)
	if err != nil {
		return nil, err
	}
	if _, err := o.Write(data); err != nil {
		o.Close()
		return nil, plain(o.place.path, err)
	}
	return o, nil
}

// Output opens a new file that gets its name when it is whole, and replaces one of that
// name, of which it has the mode.
func (d *Folder) Output(name string) (*Output, error) {
	p, err := d.place(name)
	if err != nil {
		return nil, err
	}
	if p.old != nil && (p.isSpecial() || !trusted(p.old)) {
		p.old = nil // what is replaced has no say
	}
	o := &Output{place: p}
	o.mode, _ = d.modes()
	if err := o.begin(anonymous); err != nil {
		o.Close()
		return nil, plain(p.path, err)
	}
	return o, nil
}

// place is where a file is to be. A link is not followed.
func (d *Folder) place(name string) (*place, error) {
	path := filepath.Join(d.path, name)
	dir, err := d.root.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, plain(path, err)
	}
	p := &place{dir: dir, name: filepath.Base(name), path: path, given: path, descriptor: -1}
	if err := p.look(); err != nil {
		p.close()
		return nil, plain(path, err)
	}
	return p, nil
}

// Append opens a regular file to add to it, or creates it.
func (d *Folder) Append(name string) (*os.File, error) {
	p, err := d.place(name)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if p.isSpecial() {
		return nil, plain(p.path, ErrNotRegular)
	}
	if err := p.planted(); err != nil {
		return nil, plain(p.path, err)
	}
	f, err := p.existing(os.O_WRONLY | os.O_APPEND)
	return f, plain(p.path, err)
}

// Link creates a symbolic link to a path, which is relative to the link's folder.
func (d *Folder) Link(to, name string) error {
	return plain(filepath.Join(d.path, name), d.root.Symlink(to, name))
}

// Remove removes a file, or a folder that is empty.
func (d *Folder) Remove(name string) error { return d.root.Remove(name) }

// RemoveAll removes a file or a folder with all that is in it.
func (d *Folder) RemoveAll(name string) error { return d.root.RemoveAll(name) }

// Read reads a regular file of at most maxBytes, which only trusted users may change. Another
// is refused with [ErrForeign].
func (d *Folder) Read(name string, maxBytes int64) ([]byte, error) {
	path := filepath.Join(d.path, name)
	f, err := d.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, plain(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, plain(path, err)
	case !info.Mode().IsRegular():
		return nil, plain(path, ErrNotRegular)
	case !trusted(info) || othersWrite(f, info):
		return nil, plain(path, ErrForeign)
	}
	return ReadAll(f, maxBytes)
}
