package failure

import (
	"strings"
	"testing"
)

// TestLinesOfOthersCostLittle reads messages that no leaving out of lines makes
// whole: after some of them it is no longer tried.
func TestLinesOfOthersCostLittle(t *testing.T) {
	torn := "CUDA out of memory. Tried to allocate 2.00 GiB\n" + strings.Repeat("INFO 12 GiB 13 GiB\n", 30)
	s := NewOOMReader()
	for i, line := range strings.Split(strings.Repeat(torn, 1000), "\n") {
		s.number = int64(i + 1)
		s.line([]byte(line), true)
	}
	s.closeAll()
	if s.found.Count != 1000 || s.reread < maxReread || s.reread > 2*maxReread {
		t.Errorf("%d messages, %d bytes read again", s.found.Count, s.reread)
	}
}
