package allocator_test

import (
	"fmt"

	"strandline/torch/allocator"
)

// A device is a driver that hands out memory from one address on.
type device struct{ next uint64 }

func (d *device) Malloc(size int64) (uint64, bool) {
	addr := d.next
	d.next += uint64(size)
	fmt.Printf("cudaMalloc of %d KiB\n", size>>10)
	return addr, true
}

func (d *device) Free(uint64, int64)            {}
func (d *device) Reserve(int64) (uint64, int64) { return 0, 0 }
func (d *device) Within(uint64, int64) bool     { return true }
func (d *device) Map(uint64, int64) bool        { return false }
func (d *device) Unmap(uint64, int64)           {}

// A small request takes 2 MiB from the driver, and the next one is cut from the rest.
func ExampleAllocator() {
	a := allocator.New(allocator.DefaultSettings(), allocator.Newest, &device{next: 1 << 40})
	stream := a.Stream(0)
	first, _ := a.Malloc(1000, stream, allocator.Default)
	a.Malloc(1000, stream, allocator.Default)
	fmt.Println(a.Size(first), "bytes in the block,", a.Reserved, "reserved")
	// Output:
	// cudaMalloc of 2048 KiB
	// 1024 bytes in the block, 2097152 reserved
}

func ExampleParseSettings() {
	_, err := allocator.ParseSettings("max_split_size_mb:12", allocator.Newest)
	fmt.Println(err)
	set, _ := allocator.ParseSettings("expandable_segments:True", allocator.Newest)
	fmt.Println(set.Expandable)
	// Output:
	// allocator settings, byte 18 ("12"): PyTorch says "CachingAllocator option max_split_size_mb too small, must be >= 20"; write a number of MiB above 20 and not below large_segment_size_mb, such as max_split_size_mb:256
	// true
}
