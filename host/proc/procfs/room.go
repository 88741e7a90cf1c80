package procfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A Room is how much more memory a process can use before it reaches a limit.
type Room struct {
	Left, Limit uint64 // bytes
	// Of is whose limit it is: "the control group" or "the machine".
	Of string
}

// RoomIn finds the limit that will be reached first: that of a control group or one
// above it, or the memory that the machine has available. Pages of files that the
// kernel can drop count as free. The group is nil if none counts the memory of the
// process.
func RoomIn(g *Cgroup) (*Room, error) {
	room, err := parsed("/proc/meminfo", machineRoom)
	if err != nil {
		return nil, err
	}
	if g != nil {
		room = g.room(room)
	}
	return room, nil
}

// machineRoom reads the text of /proc/meminfo.
func machineRoom(r io.Reader) (*Room, error) {
	room := &Room{Of: "the machine"}
	return room, meminfo(r, map[string]*uint64{"MemTotal": &room.Limit, "MemAvailable": &room.Left})
}

// meminfo reads selected sizes from the text of /proc/meminfo, in bytes.
func meminfo(r io.Reader, sizes map[string]*uint64) error {
	s := lines(r)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ":")
		if size := sizes[name]; size != nil {
			n, err := kilobytes(strings.TrimSpace(value))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*size = n
			delete(sizes, name)
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	for name := range sizes {
		return errors.New(name + " is missing")
	}
	return nil
}

// Swapped returns how much of the machine's memory is in swap, in bytes.
func Swapped() (uint64, error) {
	return parsed("/proc/meminfo", func(r io.Reader) (uint64, error) {
		var total, free uint64
		err := meminfo(r, map[string]*uint64{"SwapTotal": &total, "SwapFree": &free})
		return total - free, err
	})
}

// HugePage returns the size of the huge pages that a call gets if it specifies none, in
// bytes: 2 MiB if the kernel does not state it.
func HugePage() uint64 {
	size, err := parsed("/proc/meminfo", func(r io.Reader) (*uint64, error) {
		var n uint64
		return &n, meminfo(r, map[string]*uint64{"Hugepagesize": &n})
	})
	if err != nil || *size == 0 {
		return 2 << 20
	}
	return *size
}

// room returns the least of the rooms of a group, of the groups above it, and the one
// given.
func (g *Cgroup) room(least *Room) *Room {
	_, m := g.Tightest()
	if m == nil {
		return least
	}
	if left := m.remaining(); left < least.Left {
		return &Room{Left: left, Limit: *m.Limit, Of: "the control group"}
	}
	return least
}

// Tightest returns, of a group and those above it, the one that is nearest to its
// limit, and what it is charged for. Both are nil if none has a limit.
func (g *Cgroup) Tightest() (tightest *Cgroup, memory *GroupMemory) {
	for folder := g.Folder; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "memory.stat")); err != nil {
			return tightest, memory
		}
		above := &Cgroup{Folder: folder, v2: g.v2}
		m, err := above.Memory()
		if err != nil || m.Limit == nil {
			continue
		}
		if memory == nil || m.remaining() < memory.remaining() {
			tightest, memory = above, m
		}
	}
}

// Working returns what is charged except for the pages of files that the kernel
// reclaims first, in bytes: this is what is compared with the limit before a process is
// killed.
func (m *GroupMemory) Working() uint64 { return m.Used - min(m.InactiveFile, m.Used) }

// remaining returns how much is left until the limit, which must not be nil.
func (m *GroupMemory) remaining() uint64 { return *m.Limit - min(m.Working(), *m.Limit) }
