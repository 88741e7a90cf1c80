/*
 * Answers other programs over a socket of Linux's abstract namespace, strandline-mem/PID,
 * which only those of the same user and of root may use. Where another process has that name,
 * as anybody can, it is strandline-mem/PID/NUMBER. A connection is for one request, which is a
 * line:
 *
 *	status
 *	pause [NAME]
 *	resume [NAME]
 *	blocks
 *
 * with a name as status.c writes it. The answer is lines, those of status.c for all of them
 * (and for blocks those of each block), and one before them where it failed (see pausable.h for the words):
 *
 *	failed KIND CODE DEVICE NEEDED AVAILABLE TEXT...
 *
 * A last line, "end", shows that it is whole. Each request has a thread, so that the
 * progress of one can be asked for by another.
 */
#include "block.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PEERS = 16, LONGEST = 256, PATIENCE = 10 }; /* PATIENCE is seconds */

/* What pthread_atfork is made of, which is in no shared library of older systems. */
extern int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int listener = -1;
static struct sockaddr_un address; /* of the listener */
static socklen_t address_size;
static int peers[MOST_PEERS]; /* descriptors plus 1, of requests that are answered */

/* ours reports whether a descriptor still is a socket with our name: a program that closes
 * all descriptors has its own under their numbers later. An accepted socket has the name of
 * the listener. */
static int ours(int fd)
{
	struct sockaddr_un is;
	socklen_t n = sizeof is;
	return fd >= 0 && !getsockname(fd, (struct sockaddr *)&is, &n) && n == address_size && !memcmp(&address, &is, n);
}

static void let_go(int fd)
{
	if (ours(fd))
		close(fd);
}

/* In a child that was forked there is no thread to answer. */
static void in_child(void)
{
	let_go(listener);
	listener = -1;
	for (int i = 0; i < MOST_PEERS; i++)
		if (peers[i])
			let_go(peers[i] - 1);
}

static int allowed(int fd)
{
	struct ucred who;
	socklen_t size = sizeof who;
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) && (who.uid == 0 || who.uid == geteuid());
}

/* seconds is the time since some moment. */
static long seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* send_all gives up on a peer that reads too slowly. */
static int send_all(int fd, const char *text, size_t n)
{
	for (long began = seconds(); n;) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
		if (sent <= 0 || seconds() - began > PATIENCE)
			return -1;
		text += sent;
		n -= (size_t)sent;
	}
	return 0;
}

/* receive reads a line, without its end; nonzero if none came. */
static int receive(int fd, char line[LONGEST])
{
	size_t n = 0;
	for (long began = seconds(); n < LONGEST - 1;) {
		ssize_t got = recv(fd, line + n, LONGEST - 1 - n, 0);
		if (got <= 0 || seconds() - began > PATIENCE)
			return -1;
		n += (size_t)got;
		line[n] = 0;
		char *end = strchr(line, '\n');
		if (end) {
			*end = 0;
			return 0;
		}
	}
	return -1;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* decode turns %XX into characters, in place. */
static void decode(char *name)
{
	char *to = name;
	for (const char *c = name; *c; c++) {
		int high = *c == '%' ? digit(c[1]) : -1, low = high >= 0 ? digit(c[2]) : -1;
		if (low >= 0) {
			*to++ = (char)(high * 16 + low);
			c += 2;
		} else {
			*to++ = *c;
		}
	}
	*to = 0;
}

static int send_text(int fd, size_t (*of)(char *, size_t))
{
	size_t size = of(NULL, 0) + 4096; /* tags and blocks can come meanwhile */
	char *text = malloc(size);
	if (!text)
		return -1;
	size_t n = of(text, size);
	int result = n < size ? send_all(fd, text, n) : -1;
	free(text);
	return result;
}

static void answer(int fd)
{
	char line[LONGEST];
	struct pausable_failure f = {.device = -1};
	if (receive(fd, line))
		return;
	char *name = strchr(line, ' ');
	if (name) {
		*name++ = 0;
		decode(name);
	}
	int kind = PAUSABLE_OK;
	if (!strcmp(line, "pause") || !strcmp(line, "resume")) {
		kind = *line == 'p' ? pausable_pause(name) : pausable_resume(name);
		f = *pausable_failure();
	} else if (!strcmp(line, "blocks")) {
		if (send_text(fd, blocks_text))
			return;
	} else if (strcmp(line, "status") != 0) {
		kind = failed(&f, PAUSABLE_ARGUMENT, 0, -1, "there is no request %.64s", line);
	}
	if (kind) {
		char text[LONGEST + 128];
		int n = snprintf(text, sizeof text, "failed %d %d %d %llu %llu ", f.kind, f.code, f.device,
			(unsigned long long)f.needed, (unsigned long long)f.available);
		for (const char *c = f.text; *c && n < (int)sizeof text - 2; c++)
			text[n++] = (unsigned char)*c < ' ' ? ' ' : *c;
		text[n++] = '\n';
		if (send_all(fd, text, (size_t)n))
			return;
	}
	if (!send_text(fd, pausable_status))
		send_all(fd, "end\n", 4);
}

static void end(int *slot)
{
	pthread_mutex_lock(&lock);
	let_go(*slot - 1);
	*slot = 0;
	pthread_mutex_unlock(&lock);
}

static void *serve(void *slot)
{
	answer(*(int *)slot - 1);
	end(slot);
	return NULL;
}

/* admit begins to answer a peer, if it may ask and there are not too many. */
static void admit(int fd)
{
	static const struct timeval patience = {.tv_sec = PATIENCE};
	int *slot = NULL;
	if (!allowed(fd)) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST_PEERS && !slot; i++)
		slot = peers[i] ? NULL : &peers[i];
	if (slot)
		*slot = fd + 1;
	pthread_mutex_unlock(&lock);
	if (!slot) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	unsigned long thread;
	if (thread_begin(serve, slot, &thread))
		end(slot);
	else
		pthread_detach(thread);
}

static void *wait_for_peers(void *none)
{
	(void)none;
	while (ours(listener)) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			admit(fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			usleep(100000);
	}
	return NULL;
}

/* bind_name binds a name that ends in the process's id or, if that is taken, in a number that
 * nobody else knows. */
static int bind_name(int fd)
{
	int failed = -1;
	for (int try = 0; failed && try < 8; try++) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		char *to = address.sun_path + 1; /* after a 0, which says that it is no file */
		int n = snprintf(to, sizeof address.sun_path - 1, "strandline-mem/%d", (int)getpid());
		if (try)
			n += snprintf(to + n, sizeof address.sun_path - 1 - (size_t)n, "/%lx%lx%lx", (unsigned long)&t, (unsigned long)t.tv_sec, (unsigned long)t.tv_nsec);
		address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
		failed = bind(fd, (struct sockaddr *)&address, address_size);
		if (failed && errno != EADDRINUSE)
			return -1;
	}
	return failed;
}

/* begin makes the socket and its thread; without one of them, nothing is answered. */
static void begin(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	address.sun_family = AF_UNIX;
	unsigned long thread;
	if (bind_name(fd) || listen(fd, MOST_PEERS) || __register_atfork(NULL, NULL, in_child, NULL)) {
		close(fd);
		return;
	}
	listener = fd;
	if (thread_begin(wait_for_peers, NULL, &thread)) {
		listener = -1;
		close(fd);
		return;
	}
	pthread_detach(thread);
}

void control_begin(void)
{
	static int begun;
	if (__atomic_load_n(&begun, __ATOMIC_RELAXED) || __atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED))
		return;
	if (setting(PAUSABLE_SOCKET))
		begin();
}
