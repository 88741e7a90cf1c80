package samples

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/sampling/sample"
)

// TestResidue watches cycles of pause and resume which leave as much behind each time,
// or more.
func TestResidue(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		more int64 // that a cycle leaves behind
	}{{"the same", 0}, {"more", 40 * mib}} {
		w, at := New(), 0.0
		for cycle := range int64(40) {
			for step := range int64(10) {
				held, tag := int64(8<<30), "active"
				if step >= 5 {
					held, tag = 0, "paused"
				}
				used := held + 600*mib + cycle*c.more + (7*cycle+3*step)%5*mib/10
				p := sample.Process{PID: 7, Started: 1, Devices: []sample.DeviceShare{{Used: &used}}, Pausable: []sample.Tag{{Tag: "kv", Bytes: 8 << 30, Held: held, State: tag}}}
				w.Add(&sample.Sample{Seconds: at, Processes: []sample.Process{p}})
				at++
			}
		}
		var found []finding.Finding
		for _, f := range w.Findings() {
			if f.Severity == finding.Problem && strings.Contains(f.Title, "while all pausable memory is paused") {
				found = append(found, f)
			}
		}
		if want := c.more > 0; (len(found) == 1) != want {
			t.Errorf("%s: %+v", c.name, w.Findings())
		}
	}
}
