package record

import (
	"errors"
	"fmt"
	"io/fs"

	"strandline/internal/safefile"
)

// Create makes the folder of a recording that is not made by [Begin], and its manifest,
// which [Manifest.Save] replaces. A folder that holds a recording already is refused with
// [ErrExists], and one that another user can redirect files in with
// [safefile.ErrForeign].
func Create(dir string, m *Manifest) (*safefile.Folder, error) {
	m.Schema = manifestSchema
	text, err := m.encode()
	if err != nil {
		return nil, err
	}
	folder, err := safefile.MakeFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := folder.Claim(ManifestName, text); err != nil {
		folder.Close()
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s %w", dir, ErrExists)
		}
		return nil, err
	}
	return folder, nil
}

// Save writes the manifest into the folder of its recording, in one piece.
func (m *Manifest) Save(folder *safefile.Folder) error {
	m.Schema = manifestSchema
	text, err := m.encode()
	if err != nil {
		return err
	}
	return folder.Replace(ManifestName, text)
}
