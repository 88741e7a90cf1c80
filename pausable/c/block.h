/* Blocks, their tags, and the table of them. */
#ifndef BLOCK_H
#define BLOCK_H

#include "driver.h"

/* Tags are kept for good. */
struct tag {
	struct tag *next;
	char name[64];
};

enum state {
	ACTIVE,
	PAUSED, /* the program does not use it, whatever of the device it still holds */
	FREED,  /* the program has freed it, but the driver refused a call */
};

/* Where the contents of a block are kept while it is paused. */
struct backup {
	unsigned char kind;  /* of what is here: PAUSABLE_NONE and so on */
	unsigned char valid; /* what is in it are the contents */
	unsigned char whole; /* what is in it were the contents at a pause */
	int fd;                     /* of a file, which has no name */
	void *at;                   /* in the memory of the host */
	size_t size;                /* of that memory or file */
	uint64_t sum;               /* of the contents, where one was computed */
};

struct block {
	struct block *chain;        /* the next in its slot of the table */
	struct block *before, *after; /* in the order of allocation */
	struct tag *tag;
	CUdeviceptr at;
	size_t bytes, size; /* as asked for, and in whole units of the device */
	CUhandle handle;
	int device, handles;
	uint64_t peers;
	unsigned char wanted; /* the kind of backup that was asked for; it does not change */
	unsigned char state;
	unsigned char busy; /* a pause or a resume works on it, and what follows was before: */
	unsigned char was_state, was_held, was_backup;
	/* What the driver holds for it: addresses, physical memory, a mapping of one to the
	 * other, access to that. */
	unsigned char reserved, held, mapped, open;
	unsigned char stale; /* the physical memory does not have the contents */
	struct backup backup;
};

/* table_lock guards the table, the tags, and every block but while it is busy. turn is held
 * by a pause or a resume from its beginning to its end, and is taken first. */
void table_lock(void);
void table_unlock(void);
void turn_take(void);
void turn_give(void);

/* Under table_lock: */
struct tag *tag_named(const char *name, int make); /* NULL if it is unknown, or there is no memory */
struct tag *tag_first(void);
int table_add(struct block *b); /* nonzero if there is no memory */
struct block *table_find(CUdeviceptr at);
struct block *table_around(CUdeviceptr at); /* the block in which an address is */
void table_remove(struct block *b);
struct block *table_first(void);

/* The tag and kind of backup of what this thread allocates; under table_lock. */
struct region { struct tag *tag; int backup, off; };
struct region region_now(void);

/* Blocks that are FREED. */
void remnant_add(struct block *b);
struct block *remnant_take(CUdeviceptr at); /* 0 for any */
struct block *remnant_all(void);

/* The driver's calls for a block, each of which does nothing where it is done already.
 * (vmm.c) */
int block_reserve(struct block *b, struct pausable_failure *f);
int block_create(struct block *b, struct pausable_failure *f);
int block_map(struct block *b, struct pausable_failure *f);
int block_open(struct block *b, struct pausable_failure *f);
int block_unmap(struct block *b, struct pausable_failure *f);
int block_release(struct block *b, struct pausable_failure *f);
int block_unreserve(struct block *b, struct pausable_failure *f);

/* Frees blocks that the driver did not free before. (allocate.c) */
void remnants_retry(void);

/* Nonzero in a child that was forked from the process that uses the device, which is asked
 * before any lock: its parent may have held one. use_begin is the same, and from its first
 * call on the process uses the device. (fork.c) */
int in_fork(void);
int use_begin(void);

/* What a pause or a resume does now, and what the last one did; under table_lock. doing is
 * NULL for none. (pause.c) */
struct progress { const char *doing; struct tag *tag; uint64_t total, done; };
struct ended { struct progress of; uint64_t nanoseconds, count; int kind; };
struct progress progress_now(void);
struct ended ended_last(void);

/* Without table_lock: whether this thread is in a region, and whether the program was given
 * a block at this address. */
int region_open(void);
int block_known(CUdeviceptr at);

/* Begins to answer other programs, at the first call. (control.c) */
void control_begin(void);

/* A name as status.c writes it. */
enum { ENCODED = 3 * 64 + 1 };
void name_encode(const char *name, char to[ENCODED]);

/* Writes where all blocks are, as pausable_status writes what they hold. (status.c) */
size_t blocks_text(char *to, size_t size);

/* Adds a record to the log, if there is one: when is before or after. (log.c) */
void log_state(const char *when, const char *what, const char *tag, int kind);

/* Settings. (settings.c) */
int region_at_start(int *backup); /* that the environment asks for */
uint64_t setting(int which);
void folder_of_files(char to[256]);

#endif
