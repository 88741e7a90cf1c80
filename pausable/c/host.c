/*
 * What the host can still give to backups. Linux grants memory that it does not have, and
 * later kills a process for it: so this is asked before a pause begins.
 */
#include "backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HOST_ROOT /* tests have another */
#define HOST_ROOT ""
#endif
enum { TEXT = 8192, PATH = 512 };

/* text_of reads the beginning of a file; nonzero if there is none. */
static int text_of(const char *path, char text[TEXT])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 0;
	while (fd >= 0 && n < TEXT - 1 && (got = read(fd, text + n, TEXT - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	if (fd >= 0)
		close(fd);
	return fd < 0 || got < 0;
}

/* number_after is the number that follows a word at the beginning of a line; 0 without one. */
static uint64_t number_after(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, word, n))
			return strtoull(line + n, NULL, 10);
	return 0;
}

/* number_in reads a file that is a number; most for one that is "max" or not there. */
static uint64_t number_in(const char *folder, const char *name, char text[TEXT])
{
	char path[PATH + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return text_of(path, text) || *text < '0' || *text > '9' ? UINT64_MAX : strtoull(text, NULL, 10);
}

/* left is what a group may still take: its page cache gives way. */
static uint64_t left(const char *folder, const char *limit, const char *usage, const char *stat[3])
{
	char text[TEXT], path[PATH + 32];
	uint64_t most = number_in(folder, limit, text), now = number_in(folder, usage, text), gives = 0;
	if (most == UINT64_MAX || now == UINT64_MAX)
		return UINT64_MAX;
	snprintf(path, sizeof path, "%s/memory.stat", folder);
	if (!text_of(path, text))
		for (int i = 0; i < 3; i++)
			gives += number_after(text, stat[i]);
	now -= gives < now ? gives : now;
	return now < most ? most - now : 0;
}

/* of_groups is what the process's control groups let it take, of version 1 or 2. */
static uint64_t of_groups(void)
{
	static const char *v1[3] = {"total_inactive_file ", "total_active_file ", "total_none "};
	static const char *v2[3] = {"inactive_file ", "active_file ", "slab_reclaimable "};
	char text[TEXT], folder[PATH];
	uint64_t least = UINT64_MAX;
	if (text_of(HOST_ROOT "/proc/self/cgroup", text))
		return least;
	char *old = strstr(text, ":memory:"), *now = strstr(text, "0::");
	const char *root = old ? HOST_ROOT "/sys/fs/cgroup/memory" : HOST_ROOT "/sys/fs/cgroup";
	char *path = old ? old + 8 : now ? now + 3 : NULL;
	if (!path)
		return least;
	path[strcspn(path, "\n")] = 0;
	/* A container may see the path outside, and its own group as the root. */
	for (int more = 1; more;) {
		snprintf(folder, sizeof folder, "%s%s", root, path);
		uint64_t n = old ? left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", v1) : left(folder, "memory.max", "memory.current", v2);
		least = n < least ? n : least;
		char *last = strrchr(path, '/');
		more = *path && last;
		if (last)
			*last = 0;
	}
	return least;
}

uint64_t host_available(int grouped)
{
	char text[TEXT];
	if (text_of(HOST_ROOT "/proc/meminfo", text) || !strstr(text, "MemAvailable:"))
		return UINT64_MAX;
	uint64_t swap = number_after(text, "SwapFree:") << 10;
	uint64_t machine = (number_after(text, "MemAvailable:") << 10) + swap, group = grouped ? of_groups() : UINT64_MAX;
	if (group != UINT64_MAX)
		group += swap;
	return group < machine ? group : machine;
}
