package sampler

import (
	"cmp"
	"context"
	"slices"

	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
	"strandline/pausable"
	"strandline/pausable/state"
)

// OutsideRegions reads what PyTorch's allocator has in no region in a process, of each device that the library used,
// by CUDA's ordinal, and the state of the library afterwards. Both are nil if either cannot be read.
func OutsideRegions(ctx context.Context, pid int) (map[int]*state.Outside, *state.Status) {
	before, err := pausable.AskBlocks(ctx, pid)
	if err != nil {
		return nil, nil
	}
	segments, err := cudaalloc.Segments(procfs.Process(pid))
	if err != nil {
		return nil, nil
	}
	after, err := pausable.AskBlocks(ctx, pid)
	if err != nil {
		return nil, nil
	}
	return outsideBlocks(segments, append(before.Blocks, after.Blocks...), after.Devices), after
}

// outsideBlocks divides the segments that are in no block, by device. Blocks of two moments may overlap.
func outsideBlocks(segments []cudaalloc.Segment, blocks []state.Block, devices []state.Device) map[int]*state.Outside {
	sorts.By(blocks, func(a, b state.Block) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Bytes, b.Bytes))
	})
	out := map[int]*state.Outside{}
	for i := range devices {
		out[devices[i].Index] = &state.Outside{}
	}
	for i := range segments {
		s := &segments[i]
		of := out[s.Device]
		k, _ := slices.BinarySearchFunc(blocks, s, func(b state.Block, s *cudaalloc.Segment) int {
			return cmp.Or(cmp.Compare(b.Device, s.Device), cmp.Compare(b.Addr, s.Addr+1))
		})
		if of == nil || k > 0 && blocks[k-1].Device == s.Device && s.Addr-blocks[k-1].Addr < uint64(blocks[k-1].Bytes) {
			continue
		}
		var tensors, cache int64
		for b := range s.Blocks {
			if n := int64(s.Blocks[b].Size); s.Blocks[b].Allocated {
				tensors += n
			} else {
				cache += n
			}
		}
		switch {
		case s.Expandable:
			of.Expandable += int64(s.Size)
		case s.Private:
			of.Pools, of.PoolTensors = of.Pools+int64(s.Size), of.PoolTensors+tensors
		default:
			of.Tensors, of.Cache = of.Tensors+tensors, of.Cache+cache
			if tensors > 0 {
				of.Split += cache
			}
		}
	}
	return out
}
