package gpuaccount

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/host/gpu/nvsmi"
	"strandline/host/store/recording"
)

const mib = 1 << 20

func mibs(n int64) *int64 { return new(n * mib) }

// state is of the process 5, unless a case sets more.
func state(pieces ...recording.GPUPiece) *recording.GPUState {
	return &recording.GPUState{At: 9, PIDs: []int{5}, Pieces: pieces}
}

func piece(pid int, at, n int64, owner string) recording.GPUPiece {
	return recording.GPUPiece{PID: pid, Addr: uint64(at) * mib, Bytes: n * mib, Owner: owner}
}

// count is a reading of devices of 80 GiB each, with what is used of them, and of
// processes: pid, device, used. Below 0 is what is not known.
func count(used []int64, processes ...[3]int64) *nvsmi.Reading {
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return mibs(n)
	}
	r := &nvsmi.Reading{}
	for i, n := range used {
		r.Devices = append(r.Devices, nvsmi.Device{Index: fmt.Sprint(i), UUID: fmt.Sprintf("GPU-%d", i), Used: known(n), Total: mibs(80 << 10)})
	}
	for _, p := range processes {
		r.Processes = append(r.Processes, nvsmi.Use{PID: int(p[0]), UUID: fmt.Sprintf("GPU-%d", p[1]), Used: known(p[2])})
	}
	return r
}

// dump returns what a snapshot has: address and size of segments, half of each
// allocated.
func dump(segments ...[2]int64) Reserved {
	r := Reserved{Name: "rank0.pickle"}
	for _, g := range segments {
		r.Segments = append(r.Segments, Segment{uint64(g[0]) * mib, g[1] * mib})
		r.Allocated += g[1] * mib / 2
	}
	return r
}

func of(pid int, r Reserved) Reserved {
	r.PID = pid
	return r
}

// textOf is an account as text, in MiB, and what its notes begin with.
func textOf(d *recording.GPUDevice) string {
	var out []string
	for _, p := range d.Parts {
		text := fmt.Sprintf("%s %d", p.Part, p.Bytes/mib)
		if p.Owner != "" {
			text = fmt.Sprintf("%s %d", p.Owner, p.Bytes/mib)
		}
		if p.Since != nil {
			text += fmt.Sprintf(" (%d allocated, %d since)", *p.Allocated/mib, *p.Since/mib)
		}
		if p.Count > 0 {
			text += fmt.Sprintf(" of %d", p.Count)
		}
		out = append(out, text)
	}
	return strings.Join(d.Names, "+") + ": " + strings.Join(out, ", ")
}

// TestOf is long because it is one table of states and their accounts.
//
// long: one row an account
func TestOf(t *testing.T) {
	torch := "PyTorch's allocator"
	for _, c := range []struct {
		name      string
		state     *recording.GPUState
		before    *nvsmi.Reading
		count     *nvsmi.Reading
		snapshots []Reserved
		want      string
		notes     []string // parts of them
		beyond    int64
	}{
		{name: "all is known", state: state(piece(5, 100, 20, torch), piece(5, 200, 64, "NCCL"), piece(5, 300, 8, "libengine.so")),
			before: count([]int64{1500}, [3]int64{5, 0, 500}, [3]int64{7, 0, 1000}), count: count([]int64{1600}, [3]int64{5, 0, 592}, [3]int64{7, 0, 1000}),
			snapshots: []Reserved{dump([2]int64{100, 20}, [2]int64{1000, 80})},
			want:      "0: pytorch 100 (50 allocated, 20 since), NCCL 64, libengine.so 8, earlier 420, others 1000 of 1, remainder 8"},
		{name: "came unseen", state: state(piece(5, 100, 20, torch)),
			before: count([]int64{500}, [3]int64{5, 0, 500}), count: count([]int64{900}, [3]int64{5, 0, 900}),
			snapshots: []Reserved{dump([2]int64{100, 20}, [2]int64{1000, 80})},
			want:      "0: pytorch 100 (50 allocated, 20 since), earlier 420, unseen 380, remainder 0"},
		{name: "taken while the driver was asked", state: &recording.GPUState{PIDs: []int{5}, Meanwhile: 50 * mib},
			before: count([]int64{500}, [3]int64{5, 0, 500}), count: count([]int64{551}, [3]int64{5, 0, 551}),
			want: "0: earlier 551, remainder 0", notes: []string{"without a snapshot"}},
		{name: "there was no context before", state: state(piece(5, 100, 20, torch)),
			before: count([]int64{10}), count: count([]int64{520}, [3]int64{5, 0, 500}), snapshots: []Reserved{dump([2]int64{100, 20})},
			want: "0: pytorch 20 (10 allocated, 20 since), earlier 480, remainder 20"},
		{name: "without a snapshot", state: state(piece(5, 100, 20, torch), piece(5, 200, 64, "NCCL")), count: count([]int64{600}, [3]int64{5, 0, 592}),
			want: "0: NCCL 64, " + torch + " 20, earlier 508, remainder 8", notes: []string{"without a snapshot"}},
		{name: "an allocator behind PyTorch's is PyTorch's", state: state(piece(5, 100, 20, "cumem_allocator.abi3.so"), piece(5, 120, 4, "cumem_allocator.abi3.so")),
			count: count([]int64{600}, [3]int64{5, 0, 592}), snapshots: []Reserved{dump([2]int64{90, 30})},
			want: "0: pytorch 30 (15 allocated, 20 since), cumem_allocator.abi3.so 4, earlier 558, remainder 8"},
		{name: "nothing is counted", state: &recording.GPUState{PIDs: []int{5}, NotCounted: "nvidia-smi is not here", Pieces: []recording.GPUPiece{piece(5, 100, 20, "NCCL")}},
			want: ": NCCL 20", notes: []string{"nvidia-smi is not here"}},
		{name: "given by hand", state: state(piece(5, 100, 20, "NCCL")), count: &nvsmi.Reading{Devices: []nvsmi.Device{{Used: mibs(50)}}, Given: true},
			want: ": NCCL 20, remainder 30", notes: []string{"given by hand", "without a snapshot"}},
		{name: "in a container", state: state(piece(5, 100, 20, "NCCL")), count: count([]int64{600}, [3]int64{40170, 0, 592}),
			want: "0: NCCL 20, remainder 580", notes: []string{"does not name these", "without a snapshot"}},
		{name: "memory of the host", state: state(piece(5, 100, 20, "NCCL")), count: count([]int64{-1}, [3]int64{5, 0, 300}),
			want: "0: NCCL 20, earlier 280", notes: []string{"shares the host's memory"}},
		{name: "processes are not counted", state: state(piece(5, 100, 20, "NCCL")), count: count([]int64{600}, [3]int64{5, 0, -1}, [3]int64{7, 0, -1}),
			want: "0: NCCL 20, remainder 580", notes: []string{"does not report what the processes use", "1 other process", "without a snapshot"}},
		{name: "PyTorch has more than is used", state: state(), count: count([]int64{600}, [3]int64{5, 0, 592}), snapshots: []Reserved{dump([2]int64{100, 1000})},
			want: "0: pytorch 1000 (500 allocated, 0 since), earlier 0, remainder 8", notes: []string{"408 MiB more"}, beyond: 408},
		{name: "more than is used, by hand", state: state(piece(5, 100, 100, "NCCL")), count: &nvsmi.Reading{Devices: []nvsmi.Device{{Used: mibs(50)}}, Given: true},
			want: ": NCCL 100, remainder 0", notes: []string{"given by hand", "50 MiB more", "without a snapshot"}, beyond: 50},
		{name: "a device each", state: &recording.GPUState{PIDs: []int{5, 6, 9}, Pieces: []recording.GPUPiece{piece(5, 100, 20, torch), piece(6, 100, 30, torch)}},
			count:     count([]int64{600, 700, 4}, [3]int64{5, 0, 590}, [3]int64{6, 1, 650}, [3]int64{8, 1, 50}),
			snapshots: []Reserved{dump([2]int64{100, 20}), dump([2]int64{100, 30})},
			want:      "0: pytorch 20 (10 allocated, 20 since), earlier 570, remainder 10; 1: pytorch 30 (15 allocated, 30 since), earlier 620, others 50 of 1, remainder 0"},
		{name: "one process, two devices", state: &recording.GPUState{PIDs: []int{5}, Pieces: []recording.GPUPiece{piece(5, 100, 20, torch)}},
			count: count([]int64{600, 700, 4}, [3]int64{5, 0, 590}, [3]int64{5, 2, 1}), want: "0+2: " + torch + " 20, earlier 571, remainder 13", notes: []string{"several devices", "without a snapshot"}},
		{name: "whose snapshot it is, is not known", state: &recording.GPUState{PIDs: []int{5, 6}, Pieces: []recording.GPUPiece{piece(5, 100, 20, torch), piece(6, 100, 30, torch)}},
			count: count([]int64{600}, [3]int64{5, 0, 300}, [3]int64{6, 0, 300}), snapshots: []Reserved{dump([2]int64{7000, 20})},
			want: "0: " + torch + " 50, earlier 550, remainder 0", notes: []string{"rank0.pickle is left out"}},
		{name: "whose snapshot it is, is named", state: &recording.GPUState{PIDs: []int{5, 6}, Pieces: []recording.GPUPiece{piece(5, 500, 20, torch), piece(6, 100, 192, torch)}},
			count: count([]int64{600}, [3]int64{5, 0, 300}, [3]int64{6, 0, 300}), snapshots: []Reserved{of(5, dump([2]int64{100, 200}, [2]int64{500, 20}))},
			want: "0: pytorch 220 (110 allocated, 20 since), " + torch + " 192, earlier 188, remainder 0"},
		{name: "the snapshot of another process", state: state(piece(5, 100, 20, torch)), count: count([]int64{600}, [3]int64{5, 0, 600}), snapshots: []Reserved{of(7, dump([2]int64{100, 20}))},
			want: "0: " + torch + " 20, earlier 580, remainder 0", notes: []string{"rank0.pickle is left out: it is of pid 7"}},
		{name: "after the snapshot", state: state(piece(5, 100, 20, torch), piece(5, 500, 90, torch)), count: count([]int64{600}, [3]int64{5, 0, 600}), snapshots: []Reserved{dump([2]int64{100, 20})},
			want: "0: pytorch 20 (10 allocated, 20 since), " + torch + " 90, earlier 490, remainder 0", notes: []string{"90 MiB of PyTorch's allocator"}},
		{name: "what is not counted", state: &recording.GPUState{PIDs: []int{5}, Managed: 3 * mib, Foreign: 1, Dropped: true, NotCounted: "no"},
			want: ": ", notes: []string{"no:", "3 MiB of managed", "1 handle", "events were lost"}},
		{name: "no process has the driver", state: &recording.GPUState{PIDs: []int{}, NotCounted: "no"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.state.Before, c.state.Count = c.before, c.count
			var text, notes []string
			var beyond int64
			for _, d := range Account(c.state, c.snapshots) {
				text = append(text, textOf(&d))
				notes = append(notes, d.Notes...)
				beyond += d.Beyond
				sums(t, &d)
			}
			if got := strings.Join(text, "; "); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if len(notes) != len(c.notes) || beyond != c.beyond*mib {
				t.Errorf("%d beyond, notes %q, want %q", beyond, notes, c.notes)
			}
			for _, n := range c.notes {
				if !slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(s, n) }) {
					t.Errorf("no note has %q: %q", n, notes)
				}
			}
		})
	}
}

// sums checks that the parts make the sum, and that none is below nothing.
func sums(t *testing.T, d *recording.GPUDevice) {
	t.Helper()
	var sum int64
	for _, p := range d.Parts {
		if sum += p.Bytes; p.Bytes < 0 {
			t.Errorf("%s has %d bytes", p.Part, p.Bytes)
		}
	}
	if d.Used != nil && sum != *d.Used && sum-*d.Used != d.Beyond {
		t.Errorf("the parts make %d of %d", sum, *d.Used)
	}
}

// TestHostile takes segments and pieces that cannot be.
func TestHostile(t *testing.T) {
	s := dump([2]int64{100, 20}, [2]int64{100, 20}, [2]int64{110, 5}, [2]int64{50, -7})
	s.Segments = append(s.Segments, Segment{1<<64 - 4096, 1 << 40})
	st := state(piece(5, 90, 40, "NCCL"), piece(5, 100, -8, "NCCL"))
	st.Count = count([]int64{10}, [3]int64{5, 0, 10})
	for _, d := range Account(st, []Reserved{s}) {
		for _, p := range d.Parts {
			if p.Bytes < 0 {
				t.Errorf("%s has %d bytes", p.Part, p.Bytes)
			}
		}
	}
}

// TestByProcess gives each snapshot to the process that wrote it, though the segments
// of both have the same addresses.
func TestByProcess(t *testing.T) {
	torch := "PyTorch's allocator"
	s := &recording.GPUState{PIDs: []int{5, 6}, Pieces: []recording.GPUPiece{piece(5, 100, 20, torch), piece(6, 100, 192, torch)}}
	got := ByProcess(s, []Reserved{of(6, dump([2]int64{100, 192})), of(5, dump([2]int64{100, 200})), of(7, dump([2]int64{100, 192}))})
	if len(got) != 2 || got[5].Bytes != 200*mib || got[5].Since != 20*mib || got[6].Bytes != 192*mib || got[6].Since != 192*mib {
		t.Errorf("%+v", got)
	}
}
