package snapshot

import (
	"strings"

	"strandline/stack"
)

// Ascend reports whether torch_npu wrote the file, Huawei's backend for Ascend
// devices, whose allocator rounds differently from PyTorch's: frames of it are in
// the stacks, or the sizes of the blocks show it.
func (s *Snapshot) Ascend() bool {
	for id := range s.Stacks.FrameCount() {
		f := s.Stacks.At(stack.FrameID(id))
		if strings.Contains(f.File, "/torch_npu/") || strings.Contains(f.Function, "c10_npu::") {
			return true
		}
	}
	return s.Settings == nil && s.paddedBlocks()
}

// paddedBlocks reports whether each block that is in use, and whose rest would
// have been split off, is what torch_npu makes of its request: 32 bytes more,
// rounded up to 512. Some of them must be larger than PyTorch makes them.
func (s *Snapshot) paddedBlocks() bool {
	const padding, granule, some = 32, 512, 3
	round := func(n int64) int64 { return (n + granule - 1) / granule * granule }
	larger := 0
	for i := range s.Segments {
		g := &s.Segments[i]
		if !g.Expandable && s.String(g.Type) != "small" {
			continue
		}
		for j := range g.Blocks {
			b := &g.Blocks[j]
			switch {
			case b.State != Allocated || b.Requested <= 0 || b.Requested > b.Size:
			case b.Size != round(b.Requested+padding):
				return false
			case b.Size != round(b.Requested):
				larger++
			}
		}
	}
	return larger >= some
}
