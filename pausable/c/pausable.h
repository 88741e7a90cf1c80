/*
 * Memory of a CUDA device that a program gives back for a time and takes again at the
 * same address, with what was in it where that was asked for.
 *
 * Functions that return an int return a kind of failure, PAUSABLE_OK for none; none of
 * them ends the process. pausable_failure says more about the last one of this thread.
 * They may be called from any thread. In a child that was forked, where CUDA cannot be
 * used, all of them fail with PAUSABLE_FORKED.
 *
 * A pause or a resume either happens or is taken back. Where the driver refuses that too,
 * each block keeps note of what it holds, and the same call can be made again.
 */
#ifndef PAUSABLE_H
#define PAUSABLE_H

#include <stddef.h>
#include <stdint.h>

#define PAUSABLE_API __attribute__((visibility("default")))

enum {
	PAUSABLE_OK,
	PAUSABLE_DEVICE_MEMORY, /* the device has not enough free memory; see device, needed, available */
	PAUSABLE_HOST_MEMORY,   /* nor the host, or the disk, for a backup */
	PAUSABLE_DRIVER,        /* the driver refused a call; see code */
	PAUSABLE_ARGUMENT,      /* an unknown address or tag, or one that is too long */
	PAUSABLE_DAMAGED,       /* a backup, or what came back of it, is not what was saved */
	PAUSABLE_FORKED,        /* this is a child of the process that allocated */
	PAUSABLE_NO_DRIVER,     /* there is no driver, or it is too old */
};

struct pausable_failure {
	int kind;
	int code;   /* of the driver, or of the C library for files; 0 for none */
	int device; /* -1 for none */
	uint64_t needed, available; /* bytes, for PAUSABLE_DEVICE_MEMORY */
	char text[232];
};

/* How the contents of a block are kept while it is paused. */
enum { PAUSABLE_NONE, PAUSABLE_PINNED, PAUSABLE_PAGEABLE, PAUSABLE_FILE };

/* Settings, with their variable in the environment, which is read at the first use. */
enum {
	PAUSABLE_MARGIN,      /* STRANDLINE_MEM_MARGIN: bytes of a device that stay free */
	PAUSABLE_PINNED_POOL, /* STRANDLINE_MEM_PINNED_POOL: bytes of pinned memory kept for the next pause */
	PAUSABLE_VERIFY,      /* STRANDLINE_MEM_VERIFY: compare checksums of what was saved and what came back */
	PAUSABLE_PEERS,       /* STRANDLINE_MEM_PEERS: a bit for each device that may access new blocks too */
	PAUSABLE_HANDLES,     /* STRANDLINE_MEM_HANDLES: kinds of shareable handles of new blocks, as CUmemAllocationHandleType */
	PAUSABLE_RETAIN,      /* STRANDLINE_MEM_RETAIN or TMS_RETAIN_CPU_BACKUP: memory of a backup stays with its block */
	PAUSABLE_SOCKET,      /* STRANDLINE_MEM_SOCKET: answer `strandline mem`, from the first region on; 1 if it is not given */
	PAUSABLE_SETTINGS,
};

/* For PyTorch's CUDAPluggableAllocator. NULL says that there is no memory. */
PAUSABLE_API void *pausable_malloc(size_t bytes, int device, void *stream);
PAUSABLE_API void pausable_free(void *at, size_t bytes, int device, void *stream);

/* Those of CUDA's runtime, where the library is preloaded; see preload.c. */
PAUSABLE_API int cudaMalloc(void **at, size_t bytes);
PAUSABLE_API int cudaFree(void *at);
PAUSABLE_API uint64_t pausable_hooked(void); /* how often cudaMalloc was called */

/* The same with reasons. A block that the driver does not free stays as it is, and the
 * call can be made again; any other call tries so as well. */
PAUSABLE_API int pausable_allocate(void **at, size_t bytes, int device);
PAUSABLE_API int pausable_release(void *at);

/* Blocks that this thread allocates from now on have this tag and this kind of backup;
 * with everywhere not 0, those of all threads that have set none. A tag of NULL takes that
 * back. With the tag "", cudaMalloc of a preloaded library leaves memory ordinary, though a
 * region is open for all threads, which TMS_INIT_ENABLE=1 in the environment opens from the
 * start (with TMS_INIT_ENABLE_CPU_BACKUP, TMS_INIT_CPU_BACKUP_BACKEND or
 * TMS_INIT_ENABLE_DISK_BACKUP). */
PAUSABLE_API int pausable_region(const char *tag, int backup, int everywhere);
PAUSABLE_API int pausable_in_region(void); /* whether this thread is in one, of its own or of all */

/* A tag of NULL stands for all. What is paused, or resumed, already is left as it is. */
PAUSABLE_API int pausable_pause(const char *tag);
PAUSABLE_API int pausable_resume(const char *tag);

/* Where the contents of a paused block are in the memory of the host: bytes from at on,
 * until it is resumed or freed, or with PAUSABLE_RETAIN until the next pause. NULL if there
 * is no such backup. */
PAUSABLE_API const void *pausable_backup(const void *at, size_t bytes);

PAUSABLE_API int pausable_set(int setting, uint64_t value);
PAUSABLE_API uint64_t pausable_get(int setting); /* 0 for one that there is not */
PAUSABLE_API int pausable_set_folder(const char *path); /* of backups in files: STRANDLINE_MEM_DIR, else TMS_DISK_BACKUP_DIR, TMPDIR */

/* Keeps a log of pauses and resumes in a new file of a folder, which log.c describes; NULL
 * ends it. The environment's STRANDLINE_MEM_LOG does the same from the start on. pausable_note
 * adds a line to it, and returns 0 where there is none. */
PAUSABLE_API int pausable_set_log(const char *folder);
PAUSABLE_API int pausable_note(const char *text);

/* How many bytes the block has that begins at an address; 0 if there is none. */
PAUSABLE_API uint64_t pausable_size(const void *at);

/* Writes what status.c describes, as snprintf does, and returns its length. */
PAUSABLE_API size_t pausable_status(char *to, size_t size);

PAUSABLE_API const struct pausable_failure *pausable_failure(void);

#endif
