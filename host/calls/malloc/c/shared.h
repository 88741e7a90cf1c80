/*
 * The memory that a program shares with the one that samples its calls of malloc. Package
 * malloc has the same in Go: see shared.go.
 */
#ifndef SHARED_H
#define SHARED_H

#include <stdint.h>

enum {
	ENTRIES = 1 << 15, /* live allocations that were sampled */
	WAYS = 16,         /* places in the table that an address can be at */
	REQUESTS = 64,     /* threads that wait at once */
};

/* A request is free, then of a thread which fills it and waits. Whoever samples takes it,
 * reads the thread's stack and answers. A thread does not wait for ever: it takes back what
 * nobody took, and leaves what takes too long. */
enum { FREE, FILLING, WAITING, TAKEN, ANSWERED, LEFT };

struct request {
	uint32_t state;
	uint32_t pid, tid; /* in the program's own namespace */
	uint32_t entry;
	uint64_t born;     /* see entry */
	uint64_t self;     /* where the request is in the memory of the program */
	uint64_t pthread;  /* what pthread_self returns */
	uint64_t ip, sp, bp; /* of who called malloc */
	uint64_t in_use; /* bytes that malloc has in use, by its own account; 0 if it keeps none */
	uint64_t unused[7];
};

/* An entry is an allocation that was sampled and is not freed. Its address stands apart, so
 * that few lines of the cache are read to find it. */
struct entry {
	uint64_t bytes;
	uint64_t interval; /* that it was sampled with */
	uint64_t born;     /* when the program began, in ns of the monotonic clock */
	uint32_t pid;
	uint32_t stack;    /* its number, from whoever samples; 0 until it is known */
};

struct shared {
	uint64_t token;    /* as in the environment */
	uint64_t interval; /* bytes between two samples on average; 0 for none */
	uint32_t began;    /* whether there was an interval, so that what is freed matters */
	uint32_t asked;    /* how often a thread asked: a futex */
	uint64_t dropped;  /* samples without a stack, or without room */
	uint64_t unused[12];
	struct request requests[REQUESTS];
	uint64_t addresses[ENTRIES];
	struct entry entries[ENTRIES];
};

#endif
