package proc

import (
	"strings"
	"testing"
)

// TestMoments reads texts with a time between them.
func TestMoments(t *testing.T) {
	for name, text := range map[string]string{"smaps": smapsText, "status": statusText, "pmap": pmapText, "free": freeText} {
		for _, at := range []string{"2026-11-01T12:00:00", "=== 2026-11-01 12:00:00 ===", "1793534460", "1793534460.25", "Sun Nov  1 12:00:00 UTC 2026"} {
			whole := strings.Repeat(at+"\n"+text, 3)
			if !Is([]byte(whole)) {
				t.Errorf("%s after %s is not known", name, at)
				continue
			}
			f, err := Read(strings.NewReader(whole))
			if err != nil || f.Partial != nil || len(f.Earlier) != 2 || len(f.Moments) != 3 {
				t.Errorf("%s after %s: %v, %+v", name, at, err, f)
			}
		}
	}
}
