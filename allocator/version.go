package allocator

import "fmt"

// A Version is a release of PyTorch: major*100 + minor, so that 206 is 2.6 and
// 210 is 2.10. Zero is unknown.
type Version int

// newest is the last release whose settings are known here; an unknown one is
// taken to be it.
const newest Version = 214

// orNewest is the release whose rules hold.
func (v Version) orNewest() Version {
	if v <= 0 || v > newest {
		return newest
	}
	return v
}

func (v Version) String() string {
	if v <= 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v/100, v%100)
}
