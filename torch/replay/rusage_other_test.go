//go:build !unix

package replay

import (
	"testing"
	"time"
)

// processorTime is not known here.
func processorTime(b *testing.B) time.Duration {
	b.Skip("unsupported: the processor time of this process")
	return 0
}
