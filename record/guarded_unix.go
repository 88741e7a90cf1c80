//go:build unix

package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"strandline/internal/safefile"
)

// guarded returns how another user could replace the folder of a path without links, nil
// if none can: the folder and those above it belong to this user or root, and nobody else
// can write to them. A sticky folder such as /tmp does not count: what was removed from it
// can be made again by anyone. Below a folder that others cannot enter nothing is in
// their reach.
func guarded(folder string) error {
	closed := false
	for _, name := range lineage(folder) {
		info, err := os.Lstat(name)
		others := false
		if err == nil && !closed {
			others, err = safefile.WritableByOthers(name)
		}
		switch {
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder", name)
		case foreign(info):
			return fmt.Errorf("%s belongs to user %d", name, info.Sys().(*syscall.Stat_t).Uid)
		case others:
			return fmt.Errorf("other users can write to %s", name)
		}
		closed = closed || info.Mode()&0o011 == 0
	}
	return nil
}

// lineage is a folder and those above it, the highest first.
func lineage(folder string) []string {
	above := filepath.Dir(folder)
	if above == folder {
		return []string{folder}
	}
	return append(lineage(above), folder)
}

// foreign reports whether a file belongs to neither this user nor root.
func foreign(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int(s.Uid) != os.Geteuid()
}
