package procfs

// Descriptors are what a process holds open.
type Descriptors struct {
	Total, Sockets, Pipes int
	// Memory are files without a disk, the largest first. They take memory also
	// while nobody maps them.
	Memory []MemoryFile
}

// A FileID distinguishes files, as long as they exist.
type FileID struct{ Device, Inode uint64 }

// A MemoryFile is one that lies in memory alone: of memfd_create, or in /dev/shm.
type MemoryFile struct {
	ID      FileID
	Name    string
	Bytes   uint64 // of memory that it takes
	Deleted bool   // nobody can open it by its name
}
