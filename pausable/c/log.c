/*
 * The log: what the library holds before and after each pause and resume, for `strandline
 * plan rl --check`. It is off unless a folder is named, in which each process has a file,
 * PID-SECONDS.pausable. It is lines:
 *
 *	log 1 PID
 *	at TIME before|after pause|resume NAME|- KIND
 *	note TIME TEXT
 *	full
 *
 * After each "at" come the lines of status.c. TIME is nanoseconds since 1970, and KIND that
 * of the failure, 0 for none. The file ends with "full" where the next record would make it
 * longer than LONGEST.
 *
 * The file is opened for each record, as a program may close all descriptors and have its
 * own under their numbers.
 */
#include "block.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 64 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static char path[300]; /* empty for none */
static char folder[256];
static pid_t writer; /* whose file it is */
static size_t length;
static int asked;

static int append(const char *text, size_t n, int flags)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600); /* whatever has its name now */
	int code = fd < 0 ? errno : 0;
	while (!code && n) {
		ssize_t done = write(fd, text, n);
		if (done > 0) {
			text += done;
			n -= (size_t)done;
		} else if (done == 0 || errno != EINTR) {
			code = done ? errno : EIO;
		}
	}
	if (fd >= 0)
		close(fd);
	return code;
}

/* begin makes the file in a folder, and returns the error number. */
static int begin(const char *in)
{
	char head[64];
	int code = EEXIST;
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	int n = snprintf(head, sizeof head, "log 1 %d\n", (int)getpid());
	for (int tries = 0; code == EEXIST && tries < 100; tries++) {
		snprintf(path, sizeof path, "%s/%d-%lld.pausable", in, (int)getpid(), (long long)t.tv_sec + tries);
		code = append(head, (size_t)n, O_CREAT | O_EXCL);
	}
	memmove(folder, code ? "" : in, code ? 1 : strlen(in) + 1); /* which may be folder itself */
	length = (size_t)n;
	writer = getpid();
	if (code)
		*path = 0;
	return code;
}

/* prepare looks at the environment once, under the lock, and reports whether there is a log. */
static int prepare(void)
{
	if (!asked) {
		const char *in = getenv("STRANDLINE_MEM_LOG");
		asked = 1;
		if (in && *in && strlen(in) < sizeof folder)
			begin(in);
	}
	if (*path && writer != getpid()) /* a child has a file of its own */
		begin(folder);
	return *path != 0;
}

int pausable_set_log(const char *in)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (in && (!*in || strlen(in) >= sizeof folder))
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "the path of the log's folder is empty, or longer than %zu bytes", sizeof folder - 1);
	if (in_fork())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
	pthread_mutex_lock(&lock);
	prepare();
	int code = 0;
	if (!in)
		*path = *folder = 0;
	else if (strcmp(in, folder) != 0)
		code = begin(in);
	pthread_mutex_unlock(&lock);
	return code ? failed(f, PAUSABLE_HOST_MEMORY, code, -1, "cannot write a log in %.100s: %s", in, strerror(code)) : PAUSABLE_OK;
}

/* put appends a record, under the lock. Where that fails, the log ends. */
static void put(const char *text, size_t n)
{
	int full = length + n > LONGEST;
	int code = full ? append("full\n", 5, 0) : append(text, n, 0);
	length += n;
	if (full || code)
		*path = 0;
}

static unsigned long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

void log_state(const char *when, const char *what, const char *tag, int kind)
{
	pthread_mutex_lock(&lock);
	if (prepare()) {
		size_t size = pausable_status(NULL, 0) + 4096; /* tags can come meanwhile */
		char *text = malloc(size), name[ENCODED] = "-";
		if (tag)
			name_encode(tag, name);
		size_t n = text ? (size_t)snprintf(text, size, "at %llu %s %s %s %d\n", now(), when, what, name, kind) : 0;
		if (text && n < size && (n += pausable_status(text + n, size - n)) < size)
			put(text, n);
		free(text);
	}
	pthread_mutex_unlock(&lock);
}

int pausable_note(const char *text)
{
	char line[256];
	if (in_fork()) /* its parent may have held the lock */
		return 0;
	pthread_mutex_lock(&lock);
	int on = prepare();
	if (on && text) {
		int n = snprintf(line, sizeof line - 1, "note %llu %.200s", now(), text);
		for (char *c = line; *c; c++)
			*c = (unsigned char)*c < ' ' ? ' ' : *c;
		line[n++] = '\n';
		put(line, (size_t)n);
	}
	pthread_mutex_unlock(&lock);
	return on;
}
