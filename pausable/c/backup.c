#include "backup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* pageable makes a backup in memory that returns to the host when it is dropped. */
static int pageable(struct block *b, struct pausable_failure *f)
{
	void *at = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return failed(f, PAUSABLE_HOST_MEMORY, errno, -1, "the host has no %s for a backup of tag %s: %s", SIZE(b->bytes), b->tag->name, strerror(errno));
	madvise(at, b->bytes, MADV_DONTFORK); /* children would keep it from the host, and copy its page tables */
	madvise(at, b->bytes, MADV_HUGEPAGE); /* to have it in small pages can take longer than to copy into it */
	b->backup.kind = PAUSABLE_PAGEABLE;
	b->backup.at = at;
	b->backup.size = b->bytes;
	return PAUSABLE_OK;
}

/* place finds where the contents go. */
static int place(struct block *b, struct pausable_failure *f)
{
	struct backup *k = &b->backup;
	if (k->kind) /* left from a try before, or retained */
		return PAUSABLE_OK;
	if (b->wanted == PAUSABLE_FILE)
		return file_make(b, f);
	if (b->wanted == PAUSABLE_PINNED) {
		size_t size = 0;
		void *at = pinned_take(b->bytes, &size);
		if (at) {
			k->kind = PAUSABLE_PINNED;
			k->at = at;
			k->size = size;
			return PAUSABLE_OK;
		} /* else it may not be pinned: slower, and as good, if there is memory */
		uint64_t available = host_available(1);
		if (available < b->bytes)
			return failed(f, PAUSABLE_HOST_MEMORY, 0, -1, "the host has %s available, and a backup of tag %s needs %s", SIZE(available), b->tag->name, SIZE(b->bytes));
	}
	return pageable(b, f);
}

int backup_save(struct block *b, struct copies *c, struct pausable_failure *f)
{
	int kind = place(b, f);
	if (kind)
		return kind;
	b->backup.whole = 0;
	return b->backup.kind == PAUSABLE_FILE ? file_save(b, c, f) : copies_out(c, b->backup.at, b->at, b->bytes, f);
}

static uint64_t sum_of(const struct block *b)
{
	struct sum s;
	sum_begin(&s);
	sum_add(&s, b->backup.at, b->bytes);
	return sum_end(&s);
}

void backup_saved(struct block *b)
{
	struct backup *k = &b->backup;
	if (k->kind != PAUSABLE_FILE)
		k->sum = setting(PAUSABLE_VERIFY) ? sum_of(b) : 0;
	k->valid = k->whole = 1;
}

int backup_load(struct block *b, struct copies *c, struct pausable_failure *f)
{
	if (b->backup.kind == PAUSABLE_FILE)
		return file_load(b, c, f);
	if (b->backup.sum && setting(PAUSABLE_VERIFY) && sum_of(b) != b->backup.sum)
		return failed(f, PAUSABLE_DAMAGED, 0, b->device, "the backup of %s of tag %s in the host's memory was changed", SIZE(b->bytes), b->tag->name);
	return copies_in(c, b->at, b->backup.at, b->bytes, f);
}

int backup_loaded(struct block *b, struct copies *c, struct pausable_failure *f)
{
	if (!b->backup.sum || !setting(PAUSABLE_VERIFY))
		return PAUSABLE_OK;
	unsigned char *staging = copies_staging(c, f);
	if (!staging)
		return f->kind;
	struct sum s;
	sum_begin(&s);
	uint64_t *done = c->done, ignored = 0;
	c->done = &ignored;
	for (size_t at = 0, n; at < b->bytes; at += n) {
		n = b->bytes - at < STAGING ? b->bytes - at : STAGING;
		int kind = copies_out(c, staging, b->at + at, n, f);
		if (!kind)
			kind = copies_wait(c, f);
		if (kind) {
			c->done = done;
			return kind;
		}
		sum_add(&s, staging, n);
	}
	c->done = done;
	if (sum_end(&s) != b->backup.sum)
		return failed(f, PAUSABLE_DAMAGED, 0, b->device, "%s of tag %s came back otherwise than they were saved", SIZE(b->bytes), b->tag->name);
	return PAUSABLE_OK;
}

void backup_drop(struct block *b)
{
	struct backup *k = &b->backup;
	switch (k->kind) {
	case PAUSABLE_PINNED:
		pinned_give(k->at, k->size);
		break;
	case PAUSABLE_PAGEABLE:
		munmap(k->at, k->size);
		break;
	case PAUSABLE_FILE:
		while (ftruncate(k->fd, 0) && errno == EINTR) /* children may have it open, too, and keep its space */
			;
		close(k->fd);
		break;
	}
	*k = (struct backup){.kind = PAUSABLE_NONE};
}
