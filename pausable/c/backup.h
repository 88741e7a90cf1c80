/* Copies the contents of blocks to where they are kept, and back. */
#ifndef BACKUP_H
#define BACKUP_H

#include "block.h"

/* The copies of one device during a pause or a resume: with its context, on one thread. */
struct copies {
	struct device *device;
	int index;
	int next; /* of its streams */
	size_t flying[STREAMS]; /* bytes that are on their way */
	unsigned char *staging; /* for files */
	uint64_t *done; /* bytes so far, read by other threads */
};

/* (copy.c) Chunks on several streams, which copies_wait waits for. */
int copies_begin(struct copies *c, int index, uint64_t *done, struct pausable_failure *f);
int copies_out(struct copies *c, void *to, CUdeviceptr from, size_t n, struct pausable_failure *f);
int copies_in(struct copies *c, CUdeviceptr to, const void *from, size_t n, struct pausable_failure *f);
int copies_wait(struct copies *c, struct pausable_failure *f);
int copies_settle(struct copies *c); /* after a failure: nonzero if copies may still run */
unsigned char *copies_staging(struct copies *c, struct pausable_failure *f);
void copies_end(struct copies *c, int running);
#ifndef CHUNK /* bytes of one copy; tests have smaller ones */
#define CHUNK (32 << 20)
#define STAGING (8 << 20)
#endif

/* (backup.c) backup_save may leave copies that run; after copies_wait, backup_saved says
 * that the contents are kept. backup_load is its counterpart, and backup_loaded compares
 * what came back where that is asked for. */
int backup_save(struct block *b, struct copies *c, struct pausable_failure *f);
void backup_saved(struct block *b);
int backup_load(struct block *b, struct copies *c, struct pausable_failure *f);
int backup_loaded(struct block *b, struct copies *c, struct pausable_failure *f);
void backup_drop(struct block *b); /* with a context */

/* (pinned.c) Pinned memory, which is kept for the next time up to a limit. With a context. */
void *pinned_take(size_t bytes, size_t *size);
void pinned_give(void *at, size_t size);
uint64_t pinned_kept(void);

/* (host.c) Bytes that the host can still give; with grouped, that its control groups let this
 * process take. UINT64_MAX if that is not known. */
uint64_t host_available(int grouped);

/* (file.c) A file without a name, which ends with the process. */
int file_make(struct block *b, struct pausable_failure *f);
int file_save(struct block *b, struct copies *c, struct pausable_failure *f);
int file_load(struct block *b, struct copies *c, struct pausable_failure *f);

/* (sum.c) A checksum of what is added, in pieces that are multiples of 32 bytes but for the
 * last one. */
struct sum { uint64_t lane[4], length; };
void sum_begin(struct sum *s);
void sum_add(struct sum *s, const void *from, size_t n);
uint64_t sum_end(const struct sum *s);

#endif
