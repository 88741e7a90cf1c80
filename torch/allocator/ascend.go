package allocator

// What torch_npu's allocator does otherwise than PyTorch's. It is a copy of that
// of PyTorch 2.1: torch_npu/csrc/core/npu/NPUCachingAllocator.cpp.
const (
	ascendPadding   = 32       // bytes that each request has in addition
	ascendAlignment = 16 << 10 // of large blocks, where segments are expandable
)

// align leaves the front of a block free, so that a large request begins at a
// whole 16 KiB, if the rest has room for it. It is done with expandable segments
// alone.
func (a *Allocator) align(b int32, size int64) int32 {
	if size < RoundLarge || !a.expands() {
		return b
	}
	front := int64(-a.sets[b].addr % ascendAlignment)
	if front == 0 || front+size > a.sets[b].size {
		return b
	}
	rest := a.cut(b, front)
	a.insert(b)
	return rest
}
