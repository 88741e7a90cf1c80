/* What faults.c and cases.c share. */
#ifndef FAULTS_H
#define FAULTS_H

#include "../c/pausable.h"
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

enum { OOM = 2, BROKEN = 999, FOREVER = 1 << 30 };

extern char doing[256]; /* for messages */

#define check(what, ...) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, doing); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, " (%s)\n", pausable_failure()->text); \
			exit(1); \
		} \
	} while (0)

struct block { unsigned char *at; size_t bytes; int device; unsigned char seed; const char *tag; int backup; };

enum { MOST = 32 };
extern struct block blocks[MOST];
extern int n_blocks;

/* What is in a block at a place. */
unsigned char value(const struct block *b, size_t i);
int allocate(struct block *b);
void new_block(const char *tag, int backup, int device, size_t bytes);
/* Frees all blocks, and looks for what is left. */
void empty(void);

/* What the library says of a tag. */
struct said { size_t bytes, blocks, kept, held; char state[16], backup[16]; };
struct said status_of(const char *tag);

/* Checks: the contents of the blocks of a tag, of all for NULL; and that it is active, or paused. */
void same(const char *tag);
void active(const char *tag);
void paused(const char *tag);

/* Pause and resume of the tag "w". */
int op_pause(void);
int op_resume(void);

extern const char *const kinds[]; /* of backups */

/* The cases of cases.c, each of which says there what it shows. */
void full(void);
void stated(void);
void running(void);
void unpinned(void);
void peers(void);
void retained(void);
void exits(const char *folder);
void damage(void);
void folders(const char *good);
void forked(const char *folder);
void hosts(void);
void cycles(int n, int from, int to);
void logged(const char *folder);

#endif
