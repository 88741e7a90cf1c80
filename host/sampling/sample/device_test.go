package sample

import "testing"

func TestAccount(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name               string
		device             Device
		unowned, remainder *int64
	}{
		{"a process, one that has ended, and the driver's own",
			Device{Used: n(100), Processes: []Holding{{1, n(60), Live}, {2, n(30), Gone}}}, n(30), n(10)},
		{"nothing used", Device{Used: n(0)}, n(0), n(0)},
		{"used by others is not known", Device{Used: n(100), Processes: []Holding{{1, nil, Live}}}, n(0), nil},
		{"that of one that has ended is not known", Device{Used: n(100), Processes: []Holding{{1, nil, Gone}}}, nil, nil},
		{"the sum is not known", Device{Processes: []Holding{{1, n(60), Gone}}}, n(60), nil},
		{"shared memory is counted twice", Device{Used: n(100), Processes: []Holding{{1, n(60), Live}, {2, n(60), NotVisible}}}, n(0), n(-20)},
		{"figures beyond what can be added", Device{Used: n(1<<63 - 1), Processes: []Holding{{1, n(1<<63 - 1), Gone}, {2, n(1<<63 - 1), Live}}}, n(1<<63 - 1), n(0)},
	} {
		c.device.Account()
		if !same(c.device.Unowned, c.unowned) || !same(c.device.Remainder, c.remainder) {
			t.Errorf("%s: unowned %v, remainder %v", c.name, c.device.Unowned, c.device.Remainder)
		}
	}
}

func same(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
