/* Whether this process is a child of the one that uses the device. */
#include "block.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static pid_t owner; /* the process that opened a region or allocated first; 0 for none yet */

/* A page that holds 1, and that the kernel empties in children: to ask it for the number of
 * the process can take longer than all the rest of an allocation. NULL where it has no such
 * pages (before Linux 4.14). */
static const unsigned char *mark;

static const unsigned char *marked(void)
{
	unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, PAGE, MADV_WIPEONFORK)) {
		munmap(page, PAGE);
		return NULL;
	}
	*page = 1;
	return page;
}

int in_fork(void)
{
	const unsigned char *m = __atomic_load_n(&mark, __ATOMIC_ACQUIRE);
	if (m)
		return !*m;
	pid_t its = __atomic_load_n(&owner, __ATOMIC_RELAXED);
	return its && its != getpid();
}

int use_begin(void)
{
	pid_t none = 0;
	if (!__atomic_load_n(&owner, __ATOMIC_RELAXED) && __atomic_compare_exchange_n(&owner, &none, getpid(), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&mark, marked(), __ATOMIC_RELEASE);
	return in_fork();
}
