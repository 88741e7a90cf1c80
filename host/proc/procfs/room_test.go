package procfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMachineRoom(t *testing.T) {
	room, err := machineRoom(strings.NewReader("MemTotal:       2000 kB\nMemFree: 3 kB\nMemAvailable:   1500 kB\n"))
	if err != nil || *room != (Room{Left: 1500 << 10, Limit: 2000 << 10, Of: "the machine"}) {
		t.Errorf("%+v, %v", room, err)
	}
	for _, text := range []string{"", "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"} {
		if room, err := machineRoom(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, room)
		}
	}
}

// The limit that counts is the one with the least room, even that of a parent group.
func TestGroupRoom(t *testing.T) {
	top := t.TempDir()
	group := func(name, used, limit string) string {
		folder := filepath.Join(top, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"memory.stat": "anon 1\nfile 500\ninactive_file 100\n", "memory.current": used, "memory.max": limit} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	group("pod", "1000", "1200")
	inner := group("pod/container", "600", "max")
	machine := &Room{Left: 5000, Limit: 8000, Of: "the machine"}
	g := &Cgroup{Folder: inner, v2: true}
	if room := g.room(machine); *room != (Room{Left: 300, Limit: 1200, Of: "the control group"}) {
		t.Errorf("%+v", room)
	}
	group("pod/container", "900", "950")
	if room := g.room(machine); room.Left != 150 || room.Limit != 950 {
		t.Errorf("%+v", room)
	}
	if room := g.room(&Room{Left: 10}); room.Left != 10 {
		t.Errorf("%+v", room)
	}
}

func TestOwnRoom(t *testing.T) {
	g, _ := Process(os.Getpid()).Cgroup()
	room, err := RoomIn(g)
	if err != nil || room.Left == 0 || room.Left > room.Limit {
		t.Errorf("%+v, %v", room, err)
	}
}
