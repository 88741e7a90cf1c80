package processes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/footprint"
	"strandline/trend"
)

// over adds MiB that a use made between checkpoints, one second apart, to its
// population.
func over(u *ledger.Use, steps ...int64) *ledger.Use {
	const mib = 1 << 20
	u.Population = trend.NewPopulation(len(steps))
	u.Live, u.Count, u.Calls = 0, 0, 0
	for i, n := range steps {
		u.Population.AddMany(trend.Span{First: i, Last: len(steps) - 1, Bytes: mib}, n)
		u.Live += n * mib
		u.Count += n
	}
	u.Resident, u.Calls = u.Live, u.Count
	return u
}

func traceOf(uses ...*ledger.Use) *ledger.Sums {
	s := &ledger.Sums{}
	for _, u := range uses {
		s.Uses = append(s.Uses, *u)
		s.Growth += u.Resident
	}
	for i := range uses[0].Population.Bytes {
		s.Checkpoints = append(s.Checkpoints, uint64(i)*uint64(time.Second))
		s.Grown = append(s.Grown, 0)
		for _, u := range uses {
			s.Grown[i] += u.Population.Bytes[i]
		}
	}
	return s
}

// A buffer that is made larger is another one each time, and still grew.
func TestBufferThatGrows(t *testing.T) {
	const checkpoints, mib = 12, 1 << 20
	u := made(event.Remap, ledger.Anonymous, checkpoints*mib, "libc.so.6:mremap", "app.py:append")
	u.Population = trend.NewPopulation(checkpoints)
	for i := range checkpoints {
		u.Population.Add(trend.Span{First: i, Last: i, Bytes: int64(i+1) * mib})
	}
	u.Live, u.Count, u.Resident = checkpoints*mib, 1, checkpoints*mib
	if found := Host(traceOf(u), nil, nil); len(found) != 1 || found[0].Severity != finding.Problem || *found[0].Bytes != checkpoints*mib {
		t.Errorf("got %+v", found)
	}
	u.Count, u.Size = 12, mib
	if found := Host(traceOf(u), nil, nil); len(found) != 1 || !strings.Contains(found[0].Title, "12 mappings that mremap enlarged, to at most 1 MiB each") {
		t.Errorf("of twelve: %+v", found)
	}
}

// A mapping that malloc took at once, beside smaller pieces that keep coming, grows as it
// is filled, and is not a leap after which little came. One alone is a buffer.
func TestMappingThatIsFilled(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name         string
		small, empty int64 // KiB that come in each step; MiB of the mapping
		atOnce       bool  // it is filled when it is mapped
		want         finding.Severity
	}{
		{"filled, and small pieces", 300, 3, false, finding.Problem},
		{"filled to its end, and small pieces", 300, 0, false, finding.Problem},
		{"filled at once", 300, 0, true, finding.Info},
		{"a buffer", 0, 3, false, finding.Info},
	} {
		small := over(made(event.Break, ledger.Heap, 128<<10, "libc.so.6:sbrk", "libc.so.6:malloc", "main:load"), make([]int64, 13)...)
		for i := range 13 {
			small.Population.Add(trend.Span{First: i, Last: 12, Bytes: c.small << 10})
		}
		small.Live = 13 * c.small << 10
		small.Resident = small.Live
		large := over(made(event.Map, ledger.Anonymous, 12*mib, "libc.so.6:mmap", "libc.so.6:malloc", "main:load"), 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		large.Size, large.Resident = 12*mib, large.Live-c.empty*mib
		s := traceOf(large, small)
		s.GrownAnon = make([]int64, 13)
		for i := range s.GrownAnon {
			s.GrownAnon[i] = int64(i) * mib
			if c.atOnce {
				s.GrownAnon[i] = s.Grown[i]
			}
		}
		if found := Host(s, nil, nil); len(found) != 1 || found[0].Severity != c.want {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// A large buffer that is being filled grows up to its size, and what leaks beside it is
// counted without it.
func TestBufferBesideALeak(t *testing.T) {
	const mib = 1 << 20
	kib := func(each int64) *ledger.Use {
		u := over(made(event.Break, ledger.Heap, 128<<10, "libc.so.6:sbrk", "libc.so.6:malloc", "main:keep"), make([]int64, 13)...)
		for i := range 13 {
			u.Population.Add(trend.Span{First: i, Last: 12, Bytes: each << 10})
		}
		u.Live, u.Count = 13*each<<10, 13
		u.Resident, u.Calls = u.Live, u.Count
		return u
	}
	buffer := func(size, resident int64) *ledger.Use {
		u := made(event.Map, ledger.Anonymous, size*mib, "libc.so.6:mmap", "libc.so.6:malloc", "main:reserve")
		u.Population = trend.NewPopulation(13)
		u.Population.Add(trend.Span{First: 3, Last: 12, Bytes: size * mib})
		u.Live, u.Resident, u.Count, u.Calls = size*mib, resident*mib, 1, 1
		return u
	}
	blocks := buffer(64, 40)
	other := kib(0)
	other.Size, other.Live, other.Resident, other.Count, other.Calls = 16*mib, 32*mib, 32*mib, 2, 2
	other.Population.AddMany(trend.Span{First: 5, Last: 12, Bytes: 16 * mib}, 2)
	for _, c := range []struct {
		name string
		uses []*ledger.Use
		want string // of each finding: severity, MiB, place
	}{
		{"a buffer", []*ledger.Use{buffer(512, 120)}, "[info 120 reserve]"},
		{"a leak beside it", []*ledger.Use{buffer(512, 120), kib(1024)}, "[problem 13 keep info 120 reserve]"},
		{"a leak beside two", []*ledger.Use{buffer(512, 120), buffer(256, 100), kib(2048)}, "[problem 26 keep info 120 reserve info 100 reserve]"},
		{"a block among blocks", []*ledger.Use{blocks, other, kib(1400)}, "[problem 89 reserve]"},
	} {
		s := traceOf(c.uses...)
		s.GrownAnon = make([]int64, 13)
		for i := range s.GrownAnon {
			s.GrownAnon[i] = s.Growth * int64(i) / 12
		}
		got := []string{}
		for _, f := range Host(s, nil, nil) {
			got = append(got, fmt.Sprint(f.Severity, " ", *f.Bytes/mib, " ", f.Site.Function))
			if f.Severity == finding.Info && !strings.Contains(f.Title, "is being filled") {
				t.Errorf("%s: %s", c.name, f.Title)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Growth is judged by when it happened.
func TestHostGrowthOverTime(t *testing.T) {
	heap := func(who string) *ledger.Use {
		return made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "app.py:"+who)
	}
	ruby := func() *ledger.Use {
		return made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "libruby.so.3:rb_str_times")
	}
	imports := heap("import_it")
	imports.Frames = append(imports.Frames, symbolize.Frame{})
	imports.Frames[len(imports.Frames)-1].File = "<frozen importlib._bootstrap>"
	const mib = 1 << 20
	weights := []int64{0, 100, 100, 100, 0, 0, 0, 0, 0, 0, 0, 0}
	slow := []int64{0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3}
	ended := over(heap("serve"), slow...)
	ended.Live = 0 // with its process
	steady := &footprint.Growth{Age: time.Hour, Parts: []footprint.Part{{Class: finding.HeapLeak, Bytes: 60 * mib, Steady: true, Confidence: 0.9}}}
	for _, c := range []struct {
		name     string
		uses     []*ledger.Use
		looks    *footprint.Growth
		age      time.Duration // where it was not looked at
		severity finding.Severity
		bytes    int64 // MiB
		at       string
		title    string
	}{
		{"a warm-up", []*ledger.Use{over(heap("load"), weights...)}, nil, 0, finding.Info, 300, "load", "memory grew by 300 MiB in the first 3 s of the trace, and not since: the heap"},
		{"a heap that creeps behind it", []*ledger.Use{over(heap("load"), 0, 100, 100, 100, 1, 0, 0, 1, 0, 0, 1, 0, 0)}, nil, 0, finding.Info, 303, "load", "memory grew by 303 MiB in the first 3 s of the trace, and hardly since (3 MiB): the heap"},
		{"a heap that creeps", []*ledger.Use{over(heap("serve"), 0, 1, 0, 1, 0, 1, 0)}, nil, 0, finding.Warning, 3, "serve", "grew by 3 MiB"},
		{"a leak beside it", []*ledger.Use{over(heap("load"), weights...), over(heap("serve"), slow...)}, nil, 0, finding.Problem, 24, "serve", "grew by 24 MiB after the first 3 s of the trace; 100% of it"},
		{"a leak of a process that has ended", []*ledger.Use{over(heap("load"), weights...), over(heap("wait"), 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0), ended}, nil, 0, finding.Problem, 25, "serve", "grew by 25 MiB after the first 3 s"},
		{"a leak of its line", []*ledger.Use{over(heap("load"), 0, 100, 100, 100, 3, 3, 3, 3, 3, 3, 3, 3)}, nil, 0, finding.Problem, 24, "load", "grew by 24 MiB after the first 3 s"},
		{"a leak", []*ledger.Use{over(heap("serve"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, nil, 0, finding.Problem, 24, "serve", "grew by 24 MiB; 100% of it"},
		{"a leak in an old process that reads", []*ledger.Use{over(heap("serve"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, &footprint.Growth{Age: time.Hour, Read: 900 * mib}, 0, finding.Problem, 24, "serve", "grew by"},
		{"garbage that Ruby has not collected yet", []*ledger.Use{over(ruby(), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, nil, 0, finding.Warning, 24, "rb_str_times", "grew by 24 MiB"},
		{"more than Ruby's garbage", []*ledger.Use{over(ruby(), 0, 5, 5, 5, 5, 5, 5, 5, 5)}, nil, 0, finding.Problem, 40, "rb_str_times", "grew by 40 MiB"},
		{"a heap beside shared memory that is read into", []*ledger.Use{over(heap("cache"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, &footprint.Growth{Age: 9 * time.Second, Read: 24 * mib, Shared: 20 * mib}, 0, finding.Problem, 24, "cache", "grew by 24 MiB"},
		{"loading", []*ledger.Use{over(heap("load"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, &footprint.Growth{Age: 9 * time.Second, Read: 24 * mib}, 0, finding.Warning, 24, "load", "grew by"},
		{"importing", []*ledger.Use{over(imports, 0, 3, 3, 3, 3, 3, 3, 3, 3)}, &footprint.Growth{Age: 9 * time.Second}, 0, finding.Warning, 24, "import_it", "grew by"},
		{"just started", []*ledger.Use{over(heap("load"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, &footprint.Growth{Age: 3 * time.Second}, 0, finding.Warning, 24, "load", "grew by"},
		{"ended before it was looked at", []*ledger.Use{over(heap("load"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, nil, 7 * time.Second, finding.Warning, 24, "load", "grew by"},
		{"a leak in an old process, so far", []*ledger.Use{over(heap("serve"), 0, 3, 3, 3, 3, 3, 3, 3, 3)}, nil, time.Hour, finding.Problem, 24, "serve", "grew by"},
		{"begun late", []*ledger.Use{over(heap("load"), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8)}, nil, 0, finding.Warning, 24, "load", "grew by"},
		{"a cache that is full near the end", []*ledger.Use{over(heap("cache"), 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0)}, steady, 0, finding.Warning, 60, "cache", "grew by 60 MiB"},
		{"a leak that pauses", []*ledger.Use{over(heap("serve"), 0, 3, 3, 3, 3, 3, 3, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0, 3, 3, 3, 3, 3, 0, 0)}, steady, 0, finding.Problem, 57, "serve", "grew by 57 MiB"},
		{"a pause at the end", []*ledger.Use{over(heap("serve"), 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0)}, nil, 0, finding.Warning, 66, "serve", "grew by 66 MiB"},
		{"begun half-way", []*ledger.Use{over(heap("load"), 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4)}, nil, 0, finding.Problem, 24, "load", "grew by"},
	} {
		s := traceOf(c.uses...)
		s.Age = c.age
		found := Host(s, c.looks, nil)
		if len(found) != 1 {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		f := found[0]
		if f.Severity != c.severity || *f.Bytes/mib != c.bytes || *f.Count != c.bytes || f.Site.Function != c.at || !strings.Contains(f.Title, c.title) {
			t.Errorf("%s: %s of %d MiB at %s: %s", c.name, f.Severity, *f.Bytes/mib, f.Site.Function, f.Title)
		}
		if Undecided(found) != (f.Severity == finding.Warning) {
			t.Errorf("%s: undecided is %v of a %s", c.name, Undecided(found), f.Severity)
		}
		if f.Severity == finding.Warning && f.Remedies[0].Text != traceLonger.Text {
			t.Errorf("%s: %+v", c.name, f.Remedies)
		}
	}
}

// Intervals without growth that are short together are not a pause: on a busy machine
// neither the program nor the tracer runs for a while.
func TestShortPause(t *testing.T) {
	steps := slices.Concat([]int64{0}, slices.Repeat([]int64{3}, 22), []int64{0, 0})
	for _, c := range []struct {
		each time.Duration // of the last intervals
		want finding.Severity
	}{
		{100 * time.Millisecond, finding.Problem},
		{2 * time.Second, finding.Warning},
	} {
		s := traceOf(over(made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "main:grow"), steps...))
		for i := 23; i < len(s.Checkpoints); i++ {
			s.Checkpoints[i] = s.Checkpoints[i-1] + uint64(c.each)
		}
		if found := Host(s, nil, nil); len(found) != 1 || found[0].Severity != c.want {
			t.Errorf("%v: %+v", c.each, found)
		}
	}
}

// A place is judged separately: another that leaks beside it states nothing about a
// working set, nor of what was loaded.
func TestPlacesAreJudgedApart(t *testing.T) {
	at := func(who string) *ledger.Use {
		return made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "app.py:"+who)
	}
	const mib, checkpoints = 1 << 20, 14
	leak := over(at("leak"), 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)
	loaded := over(at("load"), 0, 100, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	looks := &footprint.Growth{Age: time.Hour, Parts: []footprint.Part{{Class: finding.MmapLeak, Bytes: 80 * mib, Steady: true, Confidence: 0.9}}}
	for _, c := range []struct {
		name  string
		uses  []*ledger.Use
		looks []footprint.Part
		want  []string
	}{
		{"a working set", []*ledger.Use{turning(at("ring"), checkpoints)}, looks.Parts, []string{"info ring"}},
		{"a working set and a leak", []*ledger.Use{turning(at("ring"), checkpoints), leak}, looks.Parts, []string{"problem leak"}},
		{"what was loaded and a leak", []*ledger.Use{loaded, leak}, looks.Parts, []string{"problem leak", "info load"}},
		{"a leak of some of what is turned over", []*ledger.Use{leaky(at("mixed"), checkpoints)}, looks.Parts, []string{"problem mixed"}},
	} {
		s := traceOf(c.uses...)
		grown := *looks
		grown.RSS = s.Growth
		var got []string
		for _, f := range Host(s, &grown, nil) {
			got = append(got, fmt.Sprint(f.Severity, " ", f.Site.Function))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// turning is a use that holds 40 MiB from the fourth checkpoint on, each for four checkpoints.
func turning(u *ledger.Use, checkpoints int) *ledger.Use {
	u.Population, u.Live = trend.NewPopulation(checkpoints), 40<<20
	u.Count, u.Calls, u.Resident = 40, int64(10*checkpoints), u.Live
	for i := range checkpoints {
		u.Population.AddMany(trend.Span{First: i, Last: min(i+3, checkpoints-1), Bytes: 1 << 20}, 10)
	}
	return u
}

// leaky is a use of which an eighth stays.
func leaky(u *ledger.Use, checkpoints int) *ledger.Use {
	u = turning(u, checkpoints)
	for i := range checkpoints {
		u.Population.AddMany(trend.Span{First: i, Last: checkpoints - 1, Bytes: 1 << 20}, 3)
	}
	u.Live += int64(3*checkpoints) << 20
	u.Count, u.Resident = u.Live>>20, u.Live
	return u
}
