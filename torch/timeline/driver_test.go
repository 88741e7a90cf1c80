package timeline

import "testing"

func TestDriverSize(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		request, plain, expandable int64
		class                      string
	}{
		{512, 2 * mib, 2 * mib, "small"},
		{mib, 2 * mib, 2 * mib, "small"},
		{mib + 512, 20 * mib, 20 * mib, "large"},
		{10*mib - 512, 20 * mib, 20 * mib, "large"},
		{10 * mib, 10 * mib, 20 * mib, "large"},
		{33*mib + 512, 34 * mib, 40 * mib, "large"},
	} {
		if got := DriverSize(c.request, false); got != c.plain {
			t.Errorf("%d bytes: %d, want %d", c.request, got, c.plain)
		}
		if got := DriverSize(c.request, true); got != c.expandable {
			t.Errorf("%d bytes of expandable segments: %d, want %d", c.request, got, c.expandable)
		}
		if got := SizeClass(c.request); got != c.class {
			t.Errorf("%d bytes: %s, want %s", c.request, got, c.class)
		}
	}
}
