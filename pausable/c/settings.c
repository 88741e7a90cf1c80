#include "block.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t values[PAUSABLE_SETTINGS] = {[PAUSABLE_PINNED_POOL] = 4ULL << 30, [PAUSABLE_SOCKET] = 1};
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

/* truth reports whether a variable says yes, in the words of torch_memory_saver. */
static int truth(const char *variable)
{
	const char *text = getenv(variable);
	return text && (!strcmp(text, "1") || !strcasecmp(text, "true") || !strcasecmp(text, "yes"));
}

int region_at_start(int *backup)
{
	const char *backend = getenv("TMS_INIT_CPU_BACKUP_BACKEND");
	if (!truth("TMS_INIT_ENABLE"))
		return 0;
	*backup = truth("TMS_INIT_ENABLE_DISK_BACKUP") ? PAUSABLE_FILE : !truth("TMS_INIT_ENABLE_CPU_BACKUP") ? PAUSABLE_NONE :
		backend && !strcmp(backend, "mmap") ? PAUSABLE_PAGEABLE : PAUSABLE_PINNED;
	return 1;
}

/* folder_named takes the folder from the first of these variables that has one. */
static void folder_named(void)
{
	static const char *const variables[] = {"STRANDLINE_MEM_DIR", "TMS_DISK_BACKUP_DIR", "TMPDIR"};
	strcpy(folder, "/tmp");
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *path = getenv(variables[i]);
		if (!path || !*path || strlen(path) >= sizeof folder)
			continue;
		strcpy(folder, path);
		return;
	}
}

static void prepare(void)
{
	if (ready)
		return;
	ready = 1;
	values[PAUSABLE_RETAIN] = (uint64_t)truth("TMS_RETAIN_CPU_BACKUP");
	number(PAUSABLE_MARGIN, "STRANDLINE_MEM_MARGIN");
	number(PAUSABLE_PINNED_POOL, "STRANDLINE_MEM_PINNED_POOL");
	number(PAUSABLE_VERIFY, "STRANDLINE_MEM_VERIFY");
	number(PAUSABLE_PEERS, "STRANDLINE_MEM_PEERS");
	number(PAUSABLE_HANDLES, "STRANDLINE_MEM_HANDLES");
	number(PAUSABLE_RETAIN, "STRANDLINE_MEM_RETAIN");
	number(PAUSABLE_SOCKET, "STRANDLINE_MEM_SOCKET");
	folder_named();
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
	if (in_fork())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
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

uint64_t pausable_get(int which) { return !in_fork() && which >= 0 && which < PAUSABLE_SETTINGS ? setting(which) : 0; }

int pausable_set_folder(const char *path)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (in_fork())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
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
