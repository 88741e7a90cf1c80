//go:build !unix

package series

import "os"

func lock(*os.File) error { return nil }
