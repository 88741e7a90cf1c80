package report

import (
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/pausable/state"
)

// TestMemText shows the text of `strandline mem`, word for word.
func TestMemText(t *testing.T) {
	const gib = 1 << 30
	device := func(free int64) api.MemDevice {
		return api.MemDevice{Device: state.Device{Free: free, Total: 80 * gib}, Cached: new(int64(2 * gib)), Outside: &state.Outside{Cache: gib, Pools: 96 << 20},
			Holders: []api.MemHolder{{PID: 42, Bytes: new(int64(30 * gib))}, {PID: 43, Command: "python train.py\x1b", Pausing: true}}}
	}
	tags := []state.Tag{
		{Name: "weights", Bytes: 14 * gib, Blocks: 1200, State: state.Paused, Backup: "pinned", BackupBytes: 14 * gib},
		{Name: "kv\ncache", Bytes: 40 * gib, Blocks: 1, State: state.Active, Backup: "none", Held: 40 * gib},
	}
	seconds := 1.5
	for _, c := range []struct {
		name string
		doc  api.Mem
		want string
	}{
		{"status", api.Mem{PID: 42, Do: "status", Tags: tags, Devices: []api.MemDevice{device(20 * gib)}, Kept: gib, NotFreed: 2 << 20,
			Doing: &state.Doing{Do: state.Pause, Tag: "weights", Total: 14 * gib, Done: 7 * gib}}, `process 42

  tag         size  blocks  on devices  state   backup
  weights   14 GiB   1,200         0 B  paused  pinned, 14 GiB
  kv�cache  40 GiB       1      40 GiB  active  none

device 0: 20 GiB of 80 GiB free
  30 GiB  42  this process, 2 GiB of it unused in PyTorch's cache (torch.cuda.empty_cache)
       ?  43  python train.py� (has pausable memory: strandline mem status)
  in no region: 1 GiB in PyTorch's cache, 96 MiB in pools of CUDA graphs or the program's own
a pause is under way: 7 GiB of 14 GiB is copied
1 GiB of pinned host memory is kept for the next pause
2 MiB that the program freed are still held: the driver refused to release them
`},
		{"pause", api.Mem{PID: 42, Do: state.Pause, Seconds: &seconds, Tags: tags[:1], Devices: []api.MemDevice{{Device: state.Device{Free: 20 * gib, Total: 80 * gib}, Released: new(int64(14 * gib))}}}, `paused memory of process 42 in 1.5 s

  tag        size  blocks  on devices  state   backup
  weights  14 GiB   1,200         0 B  paused  pinned, 14 GiB

device 0: 20 GiB of 80 GiB free, 14 GiB more than before
`},
		{"refused", api.Mem{PID: 42, Do: state.Resume, Failure: &api.MemFailure{Text: "device 0 has 5 B free, and 7 B are to come back: 2 B are missing"}, Devices: []api.MemDevice{device(5)}}, `the resume was refused: device 0 has 5 B free, and 7 B are to come back: 2 B are missing

no tags: the process has freed all its pausable memory

device 0: 5 B of 80 GiB free
  30 GiB  42  this process, 2 GiB of it unused in PyTorch's cache (torch.cuda.empty_cache)
       ?  43  python train.py� (has pausable memory: strandline mem status)
  in no region: 1 GiB in PyTorch's cache, 96 MiB in pools of CUDA graphs or the program's own
`},
		{"plan", api.Mem{PID: 42, Do: "plan", Steps: []api.MemStep{
			{Do: state.Pause, Tag: &tags[1].Name, Fits: true, Devices: []api.MemStepDevice{{Taken: -40 * gib, Free: 60 * gib, Used: 20 * gib}}},
			{Do: state.Resume, Restored: 14 * gib, Devices: []api.MemStepDevice{{Taken: 54 * gib, Free: -gib, Used: 81 * gib}}},
			{Do: state.Resume, Fits: true},
		}}, `process 42
1  pause kv�cache: fits: device 0 gets back 40 GiB, 60 GiB stay free
2  resume all: does not fit: device 0 takes 54 GiB, 1 GiB is missing; 14 GiB is copied back
3  resume all: fits, and changes nothing
the most is used after step 1: 20 GiB of device 0, by all processes

no tags: the process has freed all its pausable memory
`},
	} {
		var out strings.Builder
		(&Mem{c.doc}).Text(&out, Style{Verbose: true})
		if out.String() != c.want {
			t.Errorf("%s:\n%s", c.name, &out)
		}
	}
}
