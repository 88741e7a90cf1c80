#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, O_DIRECT */
#endif
#include "backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { IN_MEMORY = 0x01021994 }; /* the type of tmpfs */
enum { PAGE = 4096 }; /* what O_DIRECT needs offsets and lengths to be multiples of */

static int refused(struct pausable_failure *f, int code, const char *what, const char *folder)
{
	return failed(f, PAUSABLE_HOST_MEMORY, code, -1, "%s a backup in %.100s: %s", what, folder, strerror(code));
}

/* nameless opens a file that is gone when it is closed, however the process ends. */
static int nameless(const char *folder)
{
	const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
	int fd = open(folder, flags | O_DIRECT, 0600); /* backups would only displace the page cache */
	if (fd < 0 && errno == EINVAL)
		fd = open(folder, flags, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	char path[300];
	snprintf(path, sizeof path, "%s/strandline-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int file_make(struct block *b, struct pausable_failure *f)
{
	char folder[256];
	folder_of_files(folder);
	int fd = nameless(folder);
	if (fd < 0)
		return refused(f, errno, "cannot make", folder);
	size_t size = (b->bytes + PAGE - 1) / PAGE * PAGE;
	struct statfs of;
	if (!fstatfs(fd, &of) && of.f_type == IN_MEMORY && host_available(1) < size) {
		close(fd);
		return failed(f, PAUSABLE_HOST_MEMORY, ENOSPC, -1, "%.100s is memory of the host, which has no %s for a backup", folder, SIZE(size));
	}
	int code = posix_fallocate(fd, 0, (off_t)size); /* a full disk is met here, before anything is copied */
	if (code) {
		close(fd);
		return refused(f, code, "has no space for", folder);
	}
	b->backup.kind = PAUSABLE_FILE;
	b->backup.fd = fd;
	b->backup.size = size;
	return PAUSABLE_OK;
}

/* whole reads or writes n bytes, and returns the error number. */
static int whole(int fd, unsigned char *at, size_t n, size_t offset, int writing)
{
	while (n) {
		ssize_t done = writing ? pwrite(fd, at, n, (off_t)offset) : pread(fd, at, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? errno : EIO;
		at += done;
		n -= (size_t)done;
		offset += (size_t)done;
	}
	return 0;
}

/* A piece of n bytes goes by way of staging from the device to the file, or back. */
static int piece_out(struct block *b, struct copies *c, unsigned char *staging, size_t at, size_t n, struct pausable_failure *f)
{
	size_t pages = (n + PAGE - 1) / PAGE * PAGE;
	int kind = copies_out(c, staging, b->at + at, n, f);
	if (!kind)
		kind = copies_wait(c, f);
	if (kind)
		return kind;
	memset(staging + n, 0, pages - n);
	int code = whole(b->backup.fd, staging, pages, at, 1);
	return code ? failed(f, PAUSABLE_HOST_MEMORY, code, -1, "cannot write a backup: %s", strerror(code)) : PAUSABLE_OK;
}

static int piece_in(struct block *b, struct copies *c, unsigned char *staging, size_t at, size_t n, struct pausable_failure *f)
{
	int code = whole(b->backup.fd, staging, (n + PAGE - 1) / PAGE * PAGE, at, 0);
	if (code)
		return failed(f, PAUSABLE_DAMAGED, code, -1, "cannot read a backup: %s", strerror(code));
	int kind = copies_in(c, b->at + at, staging, n, f);
	return kind ? kind : copies_wait(c, f);
}

typedef int piece(struct block *, struct copies *, unsigned char *, size_t, size_t, struct pausable_failure *);

/* in_pieces does that with all contents, and sums them up. */
static int in_pieces(piece *one, struct block *b, struct copies *c, uint64_t *out, struct pausable_failure *f)
{
	unsigned char *staging = copies_staging(c, f);
	struct sum sum;
	sum_begin(&sum);
	int kind = staging ? PAUSABLE_OK : f->kind;
	for (size_t at = 0, n; at < b->bytes && !kind; at += n) {
		n = b->bytes - at < STAGING ? b->bytes - at : STAGING;
		kind = one(b, c, staging, at, n, f);
		if (!kind)
			sum_add(&sum, staging, n);
	}
	*out = sum_end(&sum);
	return kind;
}

int file_save(struct block *b, struct copies *c, struct pausable_failure *f)
{
	return in_pieces(piece_out, b, c, &b->backup.sum, f);
}

int file_load(struct block *b, struct copies *c, struct pausable_failure *f)
{
	uint64_t sum;
	int kind = in_pieces(piece_in, b, c, &sum, f);
	if (!kind && sum != b->backup.sum)
		kind = failed(f, PAUSABLE_DAMAGED, 0, b->device, "the backup of %s of tag %s in a file is not what was written", SIZE(b->bytes), b->tag->name);
	return kind;
}
