package state

import (
	"reflect"
	"strings"
	"testing"
)

const text = `tag weights 100 3 paused pinned 90 0
part weights 0 60 0 0 50
part weights 2 40 0 0 40
tag kv%20cache%25 20 1 active none 0 20
part kv%20cache%25 0 20 20 0 0
doing resume - 90 30
did pause - 90 1000 0 4
freed 2 8
kept 64
margin 5
device 0 70 200
device 2 30 200
block 2 2097152 40
`

// TestParse reads what the library writes.
func TestParse(t *testing.T) {
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Status{
		Tags: []Tag{
			{"weights", 100, 3, Paused, "pinned", 90, 0, []Share{{0, 60, 0, 0, 50}, {2, 40, 0, 0, 40}}},
			{"kv cache%", 20, 1, Active, "none", 0, 20, []Share{{0, 20, 20, 0, 0}}},
		},
		Devices: []Device{{0, 70, 200}, {2, 30, 200}}, Doing: &Doing{Resume, "-", true, 90, 30}, Did: &Did{Step{Do: Pause, All: true}, 90, 1e-6, 0, 4}, NotFreed: 8, Kept: 64, Margin: 5,
		Blocks: []Block{{2, 2 << 20, 40}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v", s)
	}
	if s.Held(0) != 20 || s.Paused(0) != 60 || s.Paused(2) != 40 || s.Idle() {
		t.Error(s.Held(0), s.Paused(0), s.Paused(2), s.Idle())
	}
	if s, err = Parse([]byte("doing pause %2D 1 0\ndid resume %2D 1 1 0 1\n")); err != nil || s.Doing.All || s.Doing.Tag != "-" || s.Did.All || s.Did.Tag != "-" {
		t.Errorf("a tag named - is read as %+v, %+v, %v", s.Doing, s.Did, err)
	}
	const most = "4611686018427387904" // 1 << 62
	for _, bad := range []string{
		"tag w " + most + " 1 active none 0 0\npart w 0 1 0 0 0", "tag w 1 1 active none 0 2", "tag w 1 1 active none 0 0\ntag w 1 1 active none 0 0", "tag w 1 1 \x1b[31m none 0 0",
		"tag w 1 1 active floppy 0 0", "tag w 1 1 active none 0 0\npart w 64 1 1 1 1", "tag w 1 1 active none 0 0\npart w 0 1 1 1 1\npart w 0 1 1 1 1",
		"tag w 1 1 active none 0 0\npart w 0 1 2 1 1", "device 0 2 1", "device 0 1 1\ndevice 0 1 1", "device 64 1 1", "doing \x1b[2J - 1 1", "did dance - 1 1 0 1",
		"tag " + strings.Repeat("x", maxName+1) + " 1 1 active none 0 0",
	} {
		if s, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is read: %+v", bad, s)
		}
	}
	for _, bad := range []string{"tag", "tag w 1", "tag w 1 x active none 0 0", "tag w -1 1 active none 0 0", "part w 0 1 1 1 1", "device 0 9223372036854775807 1", "block 0 x 1", "tag %zz 1 1 active none 0 0"} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if _, err := Parse([]byte(strings.Repeat("device 0 1 1\n", 100))); err == nil {
		t.Error("100 devices are read")
	}
}

// TestPlan computes steps.
func TestPlan(t *testing.T) {
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	steps := []Step{{Do: Resume, Tag: "weights"}, {Do: Pause, Tag: "kv cache%"}, {Do: Resume, All: true}, {Do: Pause, Tag: "weights"}}
	p, err := s.Plan(steps)
	if err != nil {
		t.Fatal(err)
	}
	// Of device 2, only 25 are free beyond the margin.
	if p[0].Fits() || p[0].Restored != 90 || !reflect.DeepEqual(p[0].Devices, []PlannedDevice{{0, 60, 5, 200}, {2, 40, -15, 200}}) {
		t.Errorf("%+v", p[0])
	}
	if !p[1].Fits() || p[1].Saved != 0 || !reflect.DeepEqual(p[1].Devices, []PlannedDevice{{0, -20, 85, 200}}) {
		t.Errorf("%+v", p[1])
	}
	if p[2].Fits() || len(p[3].Devices) != 0 {
		t.Errorf("%+v %+v", p[2], p[3])
	}
	s.Devices[1].Free = 100
	if p, _ = s.Plan(steps); !p[0].Fits() || !p[2].Fits() || p[2].Restored != 0 || p[3].Saved != 90 || p[3].Devices[1].Free != 95 {
		t.Errorf("%+v", p)
	}
	if _, err := s.Plan([]Step{{Do: Pause, Tag: "other"}}); err == nil || err.Error() != "there is no tag other" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte("tag a 1 1 active none 0 1\npart a 63 1 1 0 0\n"))
	f.Add([]byte("doing pause %00 1 1\n\x00\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		for i := range s.Tags {
			again, err := Parse([]byte("tag " + Encode(s.Tags[i].Name) + " 1 1 active none 0 1\n"))
			if err != nil || again.Tags[0].Name != s.Tags[i].Name {
				t.Fatalf("the name %q is read as %+v, %v", s.Tags[i].Name, again, err)
			}
		}
		if _, err := s.Plan([]Step{{Do: Resume, All: true}, {Do: Pause, All: true}}); err != nil {
			t.Fatal(err)
		}
		s.Idle()
	})
}
