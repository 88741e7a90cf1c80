package serving

import (
	"math"
)

// sglangDefaults are what SGLang chooses by itself.
type sglangDefaults struct {
	chunk, graphs int64
	fraction      float64
}

// sglang are SGLang's defaults by the memory of the board. Source: SGLang,
// srt/server_args.py, _handle_gpu_memory_settings; sizes in MiB. Releases move
// these numbers.
func (s Setup) sglang() sglangDefaults {
	d := sglangDefaults{4096, 160, 0.88}
	if s.GPU == nil {
		if s.Graphs > 0 {
			d.graphs = s.Graphs
		}
		return d
	}
	board := float64(s.GPU.Board) / (1 << 20)
	few := s.Parallel.TP < 4
	for _, class := range []struct {
		below                float64
		chunk, small, larger int64
	}{
		{20 << 10, 2048, 8, 8}, {35 << 10, 2048, 24, 80}, {60 << 10, 4096, 32, 160},
		{160 << 10, 8192, 256, 512}, {math.Inf(1), 16384, 512, 512},
	} {
		if board < class.below {
			d.chunk, d.graphs = class.chunk, class.larger
			if few {
				d.graphs = class.small
			}
			break
		}
	}
	if s.Step > 0 {
		d.chunk = s.Step
	}
	if s.Graphs > 0 {
		d.graphs = s.Graphs
	}
	reserved := 512 + 1.5*float64(max(d.chunk, 2048)) + 2*float64(d.graphs) + 128*float64(s.Parallel.TP*s.Parallel.PP)
	if s.Parallel.DP > 1 {
		reserved += 3 * float64(d.graphs*s.Parallel.DP)
		if d.graphs > 300 {
			reserved += 1.5 * float64(d.graphs*s.Parallel.DP)
		}
	}
	const large, least = 60 << 10, 10 << 10
	if board > large {
		reserved = max(reserved, least)
	}
	d.fraction = max(math.Round(1000*(board-reserved)/board)/1000, 0)
	return d
}
