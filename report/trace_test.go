package report

import (
	"bytes"
	"strings"
	"testing"

	"strandline/recording"
)

// TestLiveLines counts the lines that a narrow terminal makes of long ones, and
// colours do not.
func TestLiveLines(t *testing.T) {
	d := &Trace{recording.Document{PID: 7, Drops: 1, RSS: 1 << 20}}
	for _, c := range []struct {
		style Style
		want  int
	}{{Style{}, 2}, {Style{Width: 400, Color: true}, 2}, {Style{Width: 40, Color: true}, 2 + 1 + 2}} {
		var b bytes.Buffer
		if got := d.Live(&b, c.style); got != c.want || strings.Count(b.String(), "\n") != 2 {
			t.Errorf("%+v: %d lines, want %d: %q", c.style, got, c.want, b.String())
		}
	}
}
