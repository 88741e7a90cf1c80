package allocator

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// endless is a driver with any amount of memory.
type endless struct{ at uint64 }

func (d *endless) Malloc(size int64) (uint64, bool) {
	d.at += uint64(size)
	return d.at, true
}

func (d *endless) Free(uint64, int64)        {}
func (d *endless) Within(uint64, int64) bool { return true }
func (d *endless) Map(uint64, int64) bool    { return true }
func (d *endless) Unmap(uint64, int64)       {}
func (d *endless) Reserve(int64) (uint64, int64) {
	const length = 1 << 50
	d.at += length
	return d.at, length
}

// BenchmarkMallocFree is a request and a free, with so many free blocks beside.
func BenchmarkMallocFree(b *testing.B) {
	for _, expandable := range []bool{false, true} {
		for n := 100; n <= 1e6; n *= 10 {
			b.Run(fmt.Sprintf("expandable=%t/free=%d", expandable, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				set := DefaultSettings()
				set.Expandable = expandable
				a := New(set, 0, &endless{at: 1 << 40})
				stream := a.Stream(0)
				size := func() int64 { return 512 * (1 + rng.Int64N(2000)) }
				var all []Block
				for range 2 * n {
					x, _ := a.Malloc(size(), stream, Default)
					all = append(all, x)
				}
				for i, x := range all { // every second one, so that none of them join
					if i%2 == 0 {
						a.Free(x)
					}
				}
				var live [64]Block
				for i := range live {
					live[i], _ = a.Malloc(size(), stream, Default)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					a.Free(live[i%len(live)])
					live[i%len(live)], _ = a.Malloc(size(), stream, Default)
				}
			})
		}
	}
}

// BenchmarkHoles is a request that is mapped into one of many holes of an
// expandable segment, and a release of it.
func BenchmarkHoles(b *testing.B) {
	for _, n := range []int{1000, 30_000, 300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := DefaultSettings()
			set.Expandable = true
			a := New(set, 0, &endless{at: 1 << 40})
			stream := a.Stream(0)
			var all []Block
			for range 2 * n {
				x, _ := a.Malloc(LargeBuffer, stream, Default)
				all = append(all, x)
			}
			for i, x := range all {
				if i%2 == 0 {
					a.Free(x)
				}
			}
			a.EmptyCache()
			for b.Loop() {
				x, _ := a.Malloc(2*LargeBuffer, stream, Default) // in none of them
				a.Free(x)
				a.EmptyCache()
			}
		})
	}
}
