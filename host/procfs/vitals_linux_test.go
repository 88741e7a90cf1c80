package procfs

import (
	"os"
	"testing"
)

// TestVitalsAreStatus compares both readers of a real status.
func TestVitalsAreStatus(t *testing.T) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var v Vitals
	if err := ParseVitals(text, &v); err != nil {
		t.Fatal(err)
	}
	if !v.Resident || v.Anon <= 0 || v.Threads < 1 || v.Parent != os.Getppid() {
		t.Errorf("%+v", v)
	}
}
