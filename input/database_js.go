package input

import (
	"bytes"
	"context"
	"errors"

	"strandline/profiles"
)

// database recognizes an export of Nsight Systems, which a browser cannot read.
var database = tableReader{
	is: func(head []byte) bool { return bytes.HasPrefix(head, []byte("SQLite format 3\x00")) },
	whole: func(context.Context, *File) (*profiles.File, error) {
		return nil, errors.New("an SQLite database is read by the program only: strandline diagnose judges it")
	},
}
