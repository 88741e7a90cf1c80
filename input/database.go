package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"strandline/internal/safefile"
	"strandline/profiles"
	"strandline/profiles/nsys"
)

// database reads an export of Nsight Systems.
var database = tableReader{is: nsys.Is, whole: readDatabase}

// readDatabase reads a file from the disk where its pages lie, and any other in memory.
func readDatabase(ctx context.Context, f *File) (out *profiles.File, err error) {
	if info, err := os.Stat(f.Path); f.all.disk != nil && f.Path != "-" && err == nil && info.Mode().IsRegular() {
		r, err := safefile.Open(f.Path, safefile.Unbounded)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		head := make([]byte, 16)
		if _, err := r.ReadAt(head, 0); err == nil && nsys.Is(head) {
			out, err = nsys.Read(ctx, r, info.Size())
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%s: %w", f.Path, err)
			}
			return out, err
		}
	}
	err = f.unpacking(ctx, func(r io.Reader, _ string) error {
		const maxBytes = 1 << 30
		data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
		if err != nil {
			return err
		}
		if len(data) > maxBytes {
			return errors.New("a database of more than 1 GiB is read from an uncompressed file")
		}
		out, err = nsys.Read(ctx, bytes.NewReader(data), int64(len(data)))
		return err
	})
	return out, err
}
