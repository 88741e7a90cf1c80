package finding

// HostRemedies are what helps against the growth of a class of memory on the host, wherever
// it is allocated; nil if that depends on the place.
func HostRemedies(kind Kind) []Remedy {
	switch kind {
	case ArenaRetention:
		return []Remedy{
			SettingChange("MALLOC_ARENA_MAX=2", "use fewer arenas, so that memory freed by one thread is reused by others"),
			SettingChange("MALLOC_TRIM_THRESHOLD_=131072", "return the end of the heap to the kernel from this size on"),
			CodeChange("call malloc_trim(0) after a burst, off the event loop; or preload jemalloc"),
		}
	case AllocatorRetention:
		return []Remedy{
			SettingChange("MALLOC_CONF=background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:5000", "for jemalloc: return freed memory after five seconds"),
			CodeChange("ask the allocator itself what is in use: jemalloc's malloc_stats_print, tcmalloc's MallocExtension"),
		}
	case HugePages:
		return []Remedy{
			CodeChange("do not request huge pages (MADV_HUGEPAGE) for sparsely used memory; prctl(PR_SET_THP_DISABLE) disables them for the process"),
			CodeChange("where /sys/kernel/mm/transparent_hugepage/enabled is `always`, set it to `madvise`"),
		}
	case Pinned:
		return []Remedy{CodeChange("limit what is pinned: deleted pinned host tensors go to a cache, which rounds up to powers of two; reuse buffers, and pin fewer (pin_memory workers, prefetch)")}
	case SharedMemory:
		return []Remedy{CodeChange("drop batches in the consumer, use fewer workers or less prefetch, and unlink what is left in /dev/shm")}
	case MemoryFiles:
		return []Remedy{CodeChange("close the files: the memory of an open file stays, mapped or not")}
	case PageCache, FileMapping:
		return []Remedy{CodeChange("this is harmless; if the cgroup's limit is near, read with posix_fadvise(POSIX_FADV_DONTNEED) or set memory.high")}
	case CopyOnWrite:
		return []Remedy{CodeChange("hold the data that workers share in arrays (numpy, torch, Arrow) instead of Python objects, whose reference counts are written to; call gc.freeze() before the fork")}
	case KernelMemory:
		return []Remedy{CodeChange("close the sockets, pipes and files that pile up (ls -l /proc/PID/fd), and map less, in fewer pieces")}
	}
	return nil
}

// CacheRemedies are what to do about PyTorch's cache of a device, which its allocator keeps
// for its next requests.
func CacheRemedies() []Remedy {
	return []Remedy{
		SettingChange("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "start the process with segments that grow instead of new ones"),
		CodeChange("if other processes need it: `torch.cuda.empty_cache()` gives it back; the next allocations then ask the driver again, which takes about a millisecond each"),
	}
}
