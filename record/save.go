package record

import (
	"fmt"
	"os"
	"path/filepath"
)

// Create makes the folder of a recording that is not made by [Begin], and
// its manifest, which [Manifest.Save] replaces. A folder that holds a recording
// already is refused with [ErrExists].
func Create(dir string, m *Manifest) error {
	if _, err := os.Lstat(filepath.Join(dir, ManifestName)); err == nil {
		return fmt.Errorf("%s %w", dir, ErrExists)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return m.Save(dir)
}

// Save writes the manifest into the folder of its recording, in one piece.
func (m *Manifest) Save(dir string) error {
	m.Schema = manifestSchema
	return m.write(dir)
}
