package serving

import (
	"math"

	"strandline/plan/engine"
)

// sglangDefaults are what SGLang chooses by default.
type sglangDefaults struct {
	chunk, graphs int64
	fraction      float64
}

// sglang are SGLang's defaults by the memory of the board. Source: SGLang,
// srt/server_args.py, _handle_gpu_memory_settings; sizes in MiB. Releases move
// these numbers.
func (s Setup) sglang() sglangDefaults {
	d := sglangDefaults{4096, 160, s.Engine.Share()}
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
	const large, minReserved = 60 << 10, 10 << 10
	if board > large {
		reserved = max(reserved, minReserved)
	}
	d.fraction = max(math.Round(1000*(board-reserved)/board)/1000, 0) * s.forImages()
	return d
}

// forImages is the part of its fraction that SGLang keeps for models with images: 0.95,
// less 0.1 for each time that the tower is larger than ViT-L. A config that calls the
// tower's layers depth counts as 24. Source: SGLang, srt/server_args.py,
// adjust_mem_fraction_for_vlm.
func (s Setup) forImages() float64 {
	v := s.Model.Vision
	if v.Layers == 0 || !s.Engine.Has(engine.RoomForImages) {
		return 1
	}
	size := float64(v.Layers*v.Width*v.Width) / (24 * 1024 * 1024)
	return 0.95 * min(max(1-0.1*(size-1), 0.8), 1.05)
}
