package allocator

import (
	"slices"
	"testing"
)

// A request to a MemPool that the driver refuses has the free segments of other
// pools released from PyTorch 2.13 on, one to the pool of a graph never.
func TestRetryByVersion(t *testing.T) {
	for _, c := range []struct {
		version Version
		pool    PoolID
		served  bool
	}{
		{206, PoolID{}, true},
		{206, PoolID{User: 1}, false},
		{212, PoolID{User: 1}, false},
		{213, PoolID{User: 1}, true},
		{0, PoolID{User: 1}, true},
		{213, PoolID{Graph: 1}, false},
	} {
		a := New(DefaultSettings(), c.version, newFakeDevice(t, 100<<20))
		stream := a.Stream(0)
		b, _ := a.Malloc(80<<20, stream, Default)
		a.Free(b)
		_, ok := a.Malloc(90<<20, stream, a.Pool(c.pool))
		if retried := a.Retries > 0; ok != c.served || retried != c.served {
			t.Errorf("PyTorch %s, pool %v: served %t with %d retries, want %t", c.version, c.pool, ok, a.Retries, c.served)
		}
	}
}

// TestThrowOnOOM refuses what exceeds the device though releasing free blocks would make
// room, but not what exceeds a limit alone.
func TestThrowOnOOM(t *testing.T) {
	for _, c := range []struct {
		throw      bool
		limit      int64
		served     bool
		retries    int64
		expandable bool
	}{
		{false, 0, true, 1, false},
		{true, 0, false, 0, false},
		{true, 95 << 20, true, 1, false},
		{true, 0, false, 0, true}, // though 10 MiB more would be enough
	} {
		set := DefaultSettings()
		set.ThrowOnOOM, set.Expandable = c.throw, c.expandable
		a := New(set, 215, newFakeDevice(t, 100<<20))
		a.SetLimit(c.limit)
		a.SetTotal(100 << 20)
		stream := a.Stream(0)
		b, _ := a.Malloc(80<<20, stream, Default)
		a.Free(b)
		if _, ok := a.Malloc(90<<20, stream, Default); ok != c.served || a.Retries != c.retries {
			t.Errorf("%+v: served %t with %d retries", c, ok, a.Retries)
		}
	}
}

func TestUnverified(t *testing.T) {
	plain, all := DefaultSettings(), DefaultSettings()
	all.MaxSplitSize, all.GCThreshold, all.Expandable, all.RoundupDivisions[3] = 64<<20, 0.5, true, 4
	all.MaxNonSplitRounding = 30 << 20
	for _, c := range []struct {
		version Version
		set     *Settings
		pools   bool
		want    []string
	}{
		{206, &all, true, nil},
		{202, &plain, false, nil},
		{202, &all, true, []string{"unverified but for PyTorch 2.6 to 2.15: expandable_segments, garbage_collection_threshold, max_non_split_rounding_mb, max_split_size_mb, roundup_power2_divisions, private pools"}},
		{208, &all, false, nil},
		{199, &plain, false, []string{"the rules of PyTorch 1.99 are unverified: they are read from its source alone"}},
		{216, &plain, false, []string{"the rules of PyTorch 2.15, the last one known, for 2.16"}},
		{0, &plain, false, []string{"the rules of PyTorch 2.15: the file does not name its release"}},
	} {
		if got := c.version.Unverified(c.set, c.pools); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.version, got, c.want)
		}
	}
}
