//go:build !js

package input

import (
	"context"
	"errors"
	"os"

	"strandline/profiles"
	"strandline/profiles/nsys"
)

// database reads an export of Nsight Systems, which SQLite opens by its name.
var database = tableReader{is: nsys.Is, whole: func(ctx context.Context, f *File) (*profiles.File, error) {
	if info, err := os.Stat(f.Path); f.all.disk == nil || f.Path == "-" || err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("an SQLite database is read from a regular file, not from standard input or a pipe")
	}
	return nsys.Read(ctx, f.Path)
}}
