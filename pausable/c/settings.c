#include "block.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t values[PAUSABLE_SETTINGS] = {[PAUSABLE_PINNED_POOL] = 4ULL << 30};
static char folder[256];
static int ready;

/* number reads a setting from the environment; what is none leaves it as it is. */
static void number(int which, const char *variable)
{
	const char *text = getenv(variable);
	if (!text || !*text || *text == '-')
		return;
	char *end;
	unsigned long long n = strtoull(text, &end, 0);
	if (!*end)
		values[which] = n;
}

static void prepare(void)
{
	if (ready)
		return;
	ready = 1;
	number(PAUSABLE_MARGIN, "STRANDLINE_MEM_MARGIN");
	number(PAUSABLE_PINNED_POOL, "STRANDLINE_MEM_PINNED_POOL");
	number(PAUSABLE_VERIFY, "STRANDLINE_MEM_VERIFY");
	number(PAUSABLE_PEERS, "STRANDLINE_MEM_PEERS");
	number(PAUSABLE_HANDLES, "STRANDLINE_MEM_HANDLES");
	number(PAUSABLE_RETAIN, "STRANDLINE_MEM_RETAIN");
	const char *path = getenv("STRANDLINE_MEM_DIR");
	if (!path || !*path)
		path = getenv("TMPDIR");
	if (!path || !*path || strlen(path) >= sizeof folder)
		path = "/tmp";
	strcpy(folder, path);
}

uint64_t setting(int which)
{
	pthread_mutex_lock(&lock);
	prepare();
	uint64_t value = values[which];
	pthread_mutex_unlock(&lock);
	return value;
}

void folder_of_files(char to[sizeof folder])
{
	pthread_mutex_lock(&lock);
	prepare();
	memcpy(to, folder, sizeof folder);
	pthread_mutex_unlock(&lock);
}

int pausable_set(int which, uint64_t value)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (which < 0 || which >= PAUSABLE_SETTINGS)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "there is no setting %d", which);
	if (which == PAUSABLE_HANDLES && value > INT_MAX)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "there are no such kinds of handles");
	pthread_mutex_lock(&lock);
	prepare();
	values[which] = value;
	pthread_mutex_unlock(&lock);
	return PAUSABLE_OK;
}

int pausable_set_folder(const char *path)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (!path || !*path || strlen(path) >= sizeof folder)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "the path of the folder is empty, or longer than %zu bytes", sizeof folder - 1);
	pthread_mutex_lock(&lock);
	prepare();
	strcpy(folder, path);
	pthread_mutex_unlock(&lock);
	return PAUSABLE_OK;
}

static __thread struct pausable_failure last;
const struct pausable_failure *pausable_failure(void) { return &last; }
