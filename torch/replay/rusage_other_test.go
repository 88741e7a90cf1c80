//go:build !unix

package replay

import (
	"errors"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// processorTime is not known here.
func processorTime(b *testing.B) time.Duration {
	live.Missing(b, "the processor time of this process", errors.ErrUnsupported)
	return 0
}
