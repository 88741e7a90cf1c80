package procfs

// Descriptors are what a process holds open.
type Descriptors struct {
	Total, Sockets, Pipes int
	// Memory are files without a disk, the largest first. They take memory even while
	// they are not mapped.
	Memory []MemoryFile
}

// A FileID identifies a file as long as it exists.
type FileID struct{ Device, Inode uint64 }

// A MemoryFile is a file that exists only in memory: from memfd_create, or in /dev/shm.
type MemoryFile struct {
	ID    FileID
	Name  string
	Bytes uint64 // of memory that it uses
}
