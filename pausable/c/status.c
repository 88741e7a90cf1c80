/*
 * What the library holds, in lines:
 *
 *	tag NAME BYTES BLOCKS STATE BACKUP BACKUP_BYTES HELD
 *	part NAME N BYTES HELD KEEP BACKUP_BYTES
 *	device N FREE TOTAL
 *	margin BYTES              of a device that stay free, if that is set
 *	doing pause|resume NAME|- TOTAL DONE
 *	did pause|resume NAME|- COPIED NANOSECONDS KIND COUNT
 *	freed BLOCKS BYTES        what the driver did not free
 *	kept BYTES                pinned memory for the next pause
 *
 * and, for those who ask for blocks, one for each:
 *
 *	block N ADDRESS BYTES
 *
 * Sizes are bytes. BYTES are those of the addresses, which tags keep, and HELD those of the
 * device's memory. A part is what a tag has on device N, and a pause of it copies KEEP bytes.
 * STATE is active, paused or partial, and BACKUP is none, pinned, pageable or file. The
 * operation that ended last is the COUNT-th, and KIND is 0 if it succeeded, else that of its
 * failure. In a name, what is not a printable character of ASCII is %XX, as are space and %,
 * and - where it is the whole name.
 */
#include "backup.h"
#include "block.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *at;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = t->length < t->size ? t->size - t->length : 0;
	int n = vsnprintf(room ? t->at + t->length : NULL, room, format, args);
	va_end(args);
	t->length += n < 0 ? 0 : (size_t)n;
}

void name_encode(const char *name, char to[ENCODED])
{
	int all = !strcmp(name, "-"); /* which stands for all tags */
	*to = 0;
	for (int i = 0; *name && i < ENCODED - 3; name++) {
		unsigned char c = (unsigned char)*name;
		i += snprintf(to + i, 4, c > ' ' && c < 0x7f && c != '%' && !all ? "%c" : "%%%02X", c);
	}
}

static void say_name(struct text *t, const char *name)
{
	char text[ENCODED];
	name_encode(name, text);
	say(t, "%s", text);
}

static void say_tag(struct text *t, struct tag *tag)
{
	static const char *kinds[] = {"none", "pinned", "pageable", "file"};
	struct { size_t bytes, held, keep, kept; } parts[MOST_DEVICES] = {{0}}, *p;
	size_t blocks = 0, active = 0, bytes = 0, held = 0, kept = 0, kind = 0;
	for (struct block *b = table_first(); b; b = b->after) {
		if (b->tag != tag)
			continue;
		size_t now = b->busy ? b->was_backup : b->backup.valid ? b->backup.kind : PAUSABLE_NONE;
		int is_active = (b->busy ? b->was_state : b->state) == ACTIVE;
		p = &parts[b->device];
		blocks++;
		active += (size_t)is_active;
		p->bytes += b->size;
		p->held += (b->busy ? b->was_held : b->held) ? b->size : 0;
		p->keep += is_active && b->wanted ? b->bytes : 0;
		p->kept += now ? b->bytes : 0;
		kind = now ? now : kind ? kind : b->wanted;
	}
	for (p = parts; p < parts + MOST_DEVICES; p++)
		bytes += p->bytes, held += p->held, kept += p->kept;
	if (!blocks)
		return;
	say(t, "tag ");
	say_name(t, tag->name);
	say(t, " %zu %zu %s %s %zu %zu\n", bytes, blocks, active == blocks ? "active" : active ? "partial" : "paused", kinds[kind], kept, held);
	for (p = parts; p < parts + MOST_DEVICES; p++) {
		if (!p->bytes)
			continue;
		say(t, "part ");
		say_name(t, tag->name);
		say(t, " %d %zu %zu %zu %zu\n", (int)(p - parts), p->bytes, p->held, p->keep, p->kept);
	}
}

static void say_operation(struct text *t, const char *word, const struct progress *p)
{
	say(t, "%s %s ", word, p->doing);
	if (p->tag)
		say_name(t, p->tag->name);
	else
		say(t, "-");
}

struct memory { size_t available, total; int index; };

static int ask(void *arg, struct pausable_failure *f)
{
	struct memory *m = arg;
	return CU(f, m->index, cuMemGetInfo_v2, &m->available, &m->total);
}

size_t pausable_status(char *to, size_t size)
{
	struct text t = {to, size, 0};
	if (size)
		*to = 0;
	if (in_fork())
		return 0;
	table_lock();
	for (struct tag *tag = tag_first(); tag; tag = tag->next)
		say_tag(&t, tag);
	struct progress p = progress_now();
	if (p.doing) {
		say_operation(&t, "doing", &p);
		say(&t, " %llu %llu\n", (unsigned long long)p.total, (unsigned long long)p.done);
	}
	struct ended e = ended_last();
	if (e.of.doing) {
		say_operation(&t, "did", &e.of);
		say(&t, " %llu %llu %d %llu\n", (unsigned long long)e.of.done, (unsigned long long)e.nanoseconds, e.kind, (unsigned long long)e.count);
	}
	size_t blocks = 0, bytes = 0;
	for (struct block *b = remnant_all(); b; b = b->chain) {
		blocks++;
		bytes += b->held ? b->size : 0;
	}
	table_unlock();
	if (blocks)
		say(&t, "freed %zu %zu\n", blocks, bytes);
	if (pinned_kept())
		say(&t, "kept %llu\n", (unsigned long long)pinned_kept());
	if (setting(PAUSABLE_MARGIN))
		say(&t, "margin %llu\n", (unsigned long long)setting(PAUSABLE_MARGIN));
	for (int i = 0; i < MOST_DEVICES; i++) {
		struct memory m = {.index = i};
		struct pausable_failure f;
		if (device_used(i) && !on_device(i, ask, &m, &f))
			say(&t, "device %d %zu %zu\n", i, m.available, m.total);
	}
	return t.length;
}

size_t blocks_text(char *to, size_t size)
{
	struct text t = {to, size, 0};
	if (size)
		*to = 0;
	table_lock();
	for (struct block *b = table_first(); b; b = b->after)
		say(&t, "block %d %llu %zu\n", b->device, b->at, b->size);
	table_unlock();
	return t.length;
}
