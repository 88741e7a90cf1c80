package nvml

import (
	"encoding/json"
	"strings"
	"testing"

	"strandline/host/sampling/sample"
)

func devicesOf(t *testing.T, text string) []sample.Device {
	t.Helper()
	a := &answer{}
	for line := range strings.Lines(text) {
		if err := a.add(strings.TrimSpace(line)); err != nil {
			t.Fatal(err)
		}
	}
	return a.devices
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a device and its processes", `device 0
			uuid GPU-a
			name NVIDIA H100 80GB
			memory 100 60 30 10
			process 7 40
			process 8 -
			process 7 40
			process 8 15
			done`,
			`[{"device":0,"uuid":"GPU-a","name":"NVIDIA H100 80GB","used_bytes":60,"free_bytes":30,"total_bytes":100,"reserved_bytes":10,` +
				`"processes":[{"pid":7,"used_bytes":40},{"pid":8,"used_bytes":15}],"unowned_bytes":null,"remainder_bytes":null}]`},
		{"processes that may not be seen are not one", "device 0\nprocess 0 5\nprocess 0 5",
			`[{"device":0,"uuid":"","used_bytes":null,"free_bytes":null,"total_bytes":null,"reserved_bytes":null,` +
				`"processes":[{"pid":0,"used_bytes":5},{"pid":0,"used_bytes":5}],"unowned_bytes":null,"remainder_bytes":null}]`},
		{"parts", "device 1\nuuid GPU-b\nmemory 9 5 4 -\nparts 7\ninstance 0\nuuid MIG-x\nmemory 4 1 3 -\nprocess 3 1\ninstance 2\nuuid MIG-y\nerror 4 memory",
			`[{"device":1,"uuid":"GPU-b","used_bytes":5,"free_bytes":4,"total_bytes":9,"reserved_bytes":null,"divided":true,"processes":[],"unowned_bytes":null,"remainder_bytes":null,"note":"it is divided into parts (MIG), each of which is a device"},` +
				`{"device":200,"uuid":"MIG-x","used_bytes":1,"free_bytes":3,"total_bytes":4,"reserved_bytes":null,"parent":1,"processes":[{"pid":3,"used_bytes":1}],"unowned_bytes":null,"remainder_bytes":null},` +
				`{"device":202,"uuid":"MIG-y","used_bytes":null,"free_bytes":null,"total_bytes":null,"reserved_bytes":null,"parent":1,"processes":[],"unowned_bytes":null,"remainder_bytes":null,"note":"the driver does not report the memory of this device: this user may not ask; run strandline as root"}]`},
	} {
		got := devicesOf(t, c.text)
		if text, _ := json.Marshal(got); string(text) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, text, c.want)
		}
	}
}

// TestUnknownIsNotZero accounts for devices of which something is not known.
func TestUnknownIsNotZero(t *testing.T) {
	for _, c := range []struct {
		name, text         string
		unified            bool
		note               string
		unowned, remainder bool // are known
	}{
		{"all is known", "device 0\nmemory 9 5 4 0\nprocess 3 5", false, "", true, true},
		{"memory of the host", "device 0\nerror 3 memory\nprocess 3 5", true, "shares that of the host", true, false},
		{"memory of the host, by an older driver", "device 0\nmemory 0 0 0 -\nprocess 3 5", true, "shares that of the host", true, false},
		{"used is not available", "device 0\nmemory 9 - - -\nprocess 3 5", false, "does not report how much", true, false},
		{"a process is not available", "device 0\nmemory 9 5 4 -\nprocess 3 -", false, "", true, false},
		{"processes are not available", "device 0\nmemory 9 5 4 -\nerror 4 processes", false, "which processes use this device", false, false},
		{"a lost device", "device 0\nerror 15 device", false, "fallen off the bus", false, false},
		{"an unknown error", "device 0\nerror 999 device", false, "NVML error 999", false, false},
	} {
		d := devicesOf(t, c.text)[0]
		d.Account()
		if d.Unified != c.unified || !strings.Contains(d.Note, c.note) || c.note == "" && d.Note != "" || (d.Unowned != nil) != c.unowned || (d.Remainder != nil) != c.remainder {
			t.Errorf("%s: %+v", c.name, d)
		}
		if d.Unified && (d.Used != nil || d.Total != nil) {
			t.Errorf("%s: %v of %v", c.name, d.Used, d.Total)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("device 0\nuuid GPU-a\nname x\nmemory 100 60 30 10\nprocess 7 40\nprocess 0 -\nparts 7\ninstance 1\nerror 3 memory\ndone")
	f.Add("memory 1 2 3 4")
	f.Add("instance 4\nprocess 1 1")
	f.Add("device 99999999999999999999")
	f.Add("error 6 count\nerror x")
	f.Fuzz(func(t *testing.T, text string) {
		a := &answer{}
		for line := range strings.Lines(text) {
			a.add(strings.TrimSuffix(line, "\n"))
		}
		for i := range a.devices {
			d := &a.devices[i]
			d.Account()
			d.Label()
			for _, n := range []*int64{d.Used, d.Free, d.Total, d.Reserved} {
				if n != nil && *n < 0 {
					t.Errorf("a size of %d", *n)
				}
			}
		}
	})
}
