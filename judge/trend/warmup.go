package trend

// The assumptions of [WarmUp].
const (
	// apart is how far a curve must lie above the straight line from its beginning
	// to its end, as a share of its rise.
	apart = 0.25
	// afterwards is how many intervals there must be behind a warm-up, and what
	// share of all, for the rest to be judged by itself.
	afterwards      = 4
	afterwardsShare = 0.2
)

// WarmUp is the mark at which the fast growth ended with which a curve began, as
// that of a program that loads what it needs; 0 where it did not begin so. What
// grows behind it grows at another rate, or not at all.
func WarmUp(bytes []int64) int {
	end, last := 0, len(bytes)-1
	least := max(afterwards, int(afterwardsShare*float64(last)))
	for last-end > least {
		at := knee(bytes[end:])
		if at == 0 || last-end-at < least {
			break
		}
		end += at
	}
	return end
}

// knee is where a curve lies highest above the line from its first point to its
// last; 0 where that is not high.
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

// From is what the place held at the marks from one on.
func (p *Population) From(mark int) *Population {
	return &Population{
		Count: p.Count[mark:], Bytes: p.Bytes[mark:], Kept: p.Kept[mark:],
		SettledLost: p.SettledLost[mark:], Final: p.Final[mark:],
	}
}

// Until is what the place held at the first so many marks. Its Final still speaks of
// the last of all.
func (p *Population) Until(marks int) *Population {
	return &Population{
		Count: p.Count[:marks], Bytes: p.Bytes[:marks], Kept: p.Kept[:marks],
		SettledLost: p.SettledLost[:marks], Final: p.Final[:marks],
	}
}
