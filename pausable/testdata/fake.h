/* A driver of CUDA for tests: see fake.c. */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

/* Calls from number first on, of those that are counted on a device from now on, fail with
 * this code: so many of them, 0 for none. */
void fake_fail(int device, long first, long n, int code);
/* Each nth call on any device fails, 0 for none. */
void fake_fail_each(long n, int code);
/* All calls of this name fail from now on, NULL for none; and those that name a device in an
 * access list, -1 for none. */
void fake_fail_name(const char *name, int code);
void fake_vanish(int device);
/* How many calls there were on a device since fake_fail. */
long fake_calls(int device);
/* How many calls were failed, and how often the one of that name was; NULL ends the names. */
long fake_failures(void);
const char *fake_name(int i, long *failures);
/* A place in the program from which calls come, as its offset in the file; NULL ends them. */
struct fake_site { size_t at; long calls, failures; };
const struct fake_site *fake_site(int i);

/* What the driver holds: bytes of physical memory on a device, of pinned memory; numbers of
 * address ranges and mappings. */
size_t fake_used(int device);
size_t fake_pinned(void);
int fake_ranges(void);
int fake_mappings(void);
/* What a real driver would not have survived, and the last of it. */
int fake_misuses(const char **what);

/* Another process takes bytes of a device, or gives them back. */
void fake_occupy(int device, long bytes);
/* The context of a device, -1 for none, becomes that of this thread. */
void fake_enter(int device);
/* A kernel that runs until something waits for the device: it sets n bytes. */
void fake_launch(int device, void *at, int value, size_t n);

enum { FAKE_UNIT = 64 << 10, FAKE_DEVICES = 4 };
#ifndef FAKE_MEMORY /* bytes of each device */
#define FAKE_MEMORY (64L << 20)
#endif
#ifndef FAKE_PIECE /* bytes after which physical memory is the same again, so that much of it can be little */
#define FAKE_PIECE FAKE_MEMORY
#endif

#endif
