package trend

// The assumptions of [WarmUp].
const (
	// apart is how far a curve must lie above the straight line from its beginning to
	// its end, as a share of its rise.
	apart = 0.25
	// afterwards is how many intervals there must be after a warm-up, and
	// afterwardsShare what share of all intervals, for the rest to be judged
	// separately.
	afterwards      = 4
	afterwardsShare = 0.2
)

// WarmUp returns the checkpoint at which the fast growth at the beginning of a curve
// ended, such as that of a program that loads what it needs; 0 if the curve did not begin
// that way. What grows after it grows at another rate, or not at all.
func WarmUp(bytes []int64) int {
	end, last := 0, len(bytes)-1
	minAfter := max(afterwards, int(afterwardsShare*float64(last)))
	for last-end > minAfter {
		at := knee(bytes[end:])
		if at == 0 || last-end-at < minAfter {
			break
		}
		end += at
	}
	return end
}

// knee is where a curve lies highest above the line from its first point to its last; 0
// if it is not far enough above.
func knee(bytes []int64) (at int) {
	n := len(bytes) - 1
	rise := float64(bytes[n] - bytes[0])
	highest := apart * rise
	for i := 1; i < n; i++ {
		if above := float64(bytes[i]-bytes[0]) - rise*float64(i)/float64(n); above > highest {
			at, highest = i, above
		}
	}
	return at
}

// From returns what the place held at the given checkpoint and later ones.
func (p *Population) From(checkpoint int) *Population {
	return &Population{
		Count: p.Count[checkpoint:], Bytes: p.Bytes[checkpoint:], kept: p.kept[checkpoint:],
		SettledLost: p.SettledLost[checkpoint:], Final: p.Final[checkpoint:],
	}
}

// Until returns what the place held at the first n checkpoints. Its Final still refers to
// the last of all checkpoints.
func (p *Population) Until(n int) *Population {
	return &Population{
		Count: p.Count[:n], Bytes: p.Bytes[:n], kept: p.kept[:n],
		SettledLost: p.SettledLost[:n], Final: p.Final[:n],
	}
}
