package processes

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/trend"
)

// A buffer that is reallocated and copied leaves no leaked blocks, and still
// grows; one whose size varies, or that no longer grows, does not.
func TestRegrown(t *testing.T) {
	const checkpoints, mib = 16, 1 << 20
	for _, c := range []struct {
		name string
		size func(checkpoint int) int64 // MiB
		want bool
	}{
		{"larger each time", func(i int) int64 { return 50 + 12*int64(i) }, true},
		{"larger now and then", func(i int) int64 { return 50 + 12*int64(i/2) }, true},
		{"of many sizes", func(i int) int64 { return 50 + 12*int64(i%4) }, false},
		{"no longer larger", func(i int) int64 { return 50 + 12*int64(min(i, 8)) }, false},
		{"hardly larger", func(i int) int64 { return 50 + int64(i)/5 }, false},
	} {
		u := made(event.Map, ledger.Anonymous, 0, "libc.so.6:mmap", "libc.so.6:malloc", "python3.11:PyBytes_Concat", "app.py:append")
		u.Population, u.Calls, u.Count = trend.NewPopulation(checkpoints), checkpoints, 1
		for i := range checkpoints {
			u.Population.Add(trend.Span{First: i, Last: min(i+i%2, checkpoints-1), Bytes: c.size(i) * mib}) // now and then with the one before
		}
		u.Live, u.Size = c.size(checkpoints-1)*mib, c.size(checkpoints-1)*mib
		u.Resident = u.Live - 8*mib
		s := traceOf(u)
		s.Growth = 180 * mib
		found := Host(s, nil, nil)
		if regrown := len(found) == 1 && found[0].Kind == finding.Regrown; regrown != c.want {
			t.Errorf("%s: got %+v", c.name, found)
			continue
		}
		if !c.want {
			continue
		}
		f := found[0]
		if f.Severity != finding.Problem || *f.Bytes != (c.size(checkpoints-1)-50)*mib || f.Site.Function != "append" || !strings.Contains(f.Title, "from 50 MiB to ") {
			t.Errorf("%s: %s, %s", c.name, f.Severity, f.Title)
		}
		if detail := strings.Join(f.Detail, "; "); !strings.Contains(detail, "8 MiB of it is reserved and not used") {
			t.Errorf("%s: %s", c.name, detail)
		}
	}
}
