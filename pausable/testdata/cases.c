/* What is not about a call of the driver that fails: full devices, misuse, forks, files, many cycles. */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* full has a resume not fit, and a margin. */
void full(void)
{
	snprintf(doing, sizeof doing, "a full device");
	new_block("w", PAUSABLE_PINNED, 0, 8 * FAKE_UNIT);
	unsigned char *at = blocks[0].at;
	check(!op_pause(), "cannot pause");
	fake_occupy(0, FAKE_MEMORY - 4 * FAKE_UNIT);
	check(op_resume() == PAUSABLE_DEVICE_MEMORY, "it is not refused");
	const struct pausable_failure *f = pausable_failure();
	check(f->needed == 8 * FAKE_UNIT && f->available == 4 * FAKE_UNIT && !f->device, "it asks for %llu and sees %llu",
		(unsigned long long)f->needed, (unsigned long long)f->available);
	paused("w");
	fake_occupy(0, -8 * FAKE_UNIT);
	pausable_set(PAUSABLE_MARGIN, 6 * FAKE_UNIT);
	check(op_resume() == PAUSABLE_DEVICE_MEMORY, "the margin is not kept");
	check(!pausable_malloc(7 * FAKE_UNIT, 0, NULL), "the margin is not kept");
	pausable_set(PAUSABLE_MARGIN, 0);
	check(!op_resume(), "it still does not fit");
	check(blocks[0].at == at, "the address changed");
	same("w");
	fake_occupy(0, -(FAKE_MEMORY - 12 * FAKE_UNIT));
	empty();
}

/* stated shows what is said of calls that do nothing, and of arguments. */
void stated(void)
{
	snprintf(doing, sizeof doing, "no-ops and arguments");
	char tag[100];
	memset(tag, 'x', sizeof tag);
	tag[sizeof tag - 1] = 0;
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	check(pausable_pause("unknown") == PAUSABLE_ARGUMENT && pausable_resume("unknown") == PAUSABLE_ARGUMENT, "an unknown tag is known");
	check(pausable_region(tag, 0, 0) == PAUSABLE_ARGUMENT && pausable_region("w", 9, 0) == PAUSABLE_ARGUMENT, "a bad region is accepted");
	check(pausable_set(99, 0) == PAUSABLE_ARGUMENT && pausable_set_folder("") == PAUSABLE_ARGUMENT, "a bad setting is accepted");
	check(pausable_release(tag) == PAUSABLE_ARGUMENT, "an unknown address is freed");
	void *none;
	check(pausable_allocate(&none, 1, FAKE_DEVICES) && pausable_allocate(&none, 1, -1) && pausable_allocate(&none, 1, 64), "there are more devices");
	check(pausable_allocate(&none, (size_t)-5, 0) == PAUSABLE_DEVICE_MEMORY, "it has endless memory");
	check(!op_resume(), "resume of what is active fails");
	check(!op_pause() && !op_pause(), "pause of what is paused fails");
	check(pausable_backup(blocks[0].at + 100, 50) && !memcmp((const char *)pausable_backup(blocks[0].at + 100, 1), &(unsigned char){value(&blocks[0], 100)}, 1),
		"the backup cannot be read");
	check(!pausable_backup(blocks[0].at + 100, 100000), "the backup is longer than the block");
	check(!op_resume(), "cannot resume");
	same("w");
	check(!op_pause(), "cannot pause");
	empty(); /* freed while it is paused */
}

/* running has a kernel still at work as a pause begins, and what it writes is kept. */
void running(void)
{
	snprintf(doing, sizeof doing, "a kernel that runs");
	new_block("w", PAUSABLE_PINNED, 1, 100000);
	fake_launch(1, blocks[0].at, 99, blocks[0].bytes);
	check(!op_pause() && !op_resume(), "it fails");
	for (size_t i = 0; i < blocks[0].bytes; i++)
		check(blocks[0].at[i] == 99, "byte %zu is not what the kernel wrote", i);
	fake_launch(1, blocks[0].at, 1, blocks[0].bytes);
	empty(); /* freed while it runs */
}

/* unpinned has the host pin no memory. */
void unpinned(void)
{
	snprintf(doing, sizeof doing, "memory that cannot be pinned");
	pausable_set(PAUSABLE_PINNED_POOL, 0);
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	fake_fail_name("cuMemHostAlloc", OOM);
	check(!op_pause(), "it fails");
	fake_fail_name(NULL, 0);
	check(!strcmp(status_of("w").backup, "pageable"), "the backup is %s", status_of("w").backup);
	check(!op_resume(), "cannot resume");
	same("w");
	check(!op_pause() && !strcmp(status_of("w").backup, "pinned") && !op_resume(), "it is not pinned the next time");
	empty();
	pausable_set(PAUSABLE_PINNED_POOL, 1 << 20);
}

/* peers lets another device access a block, until it is gone. */
void peers(void)
{
	snprintf(doing, sizeof doing, "peers");
	void *none;
	pausable_set(PAUSABLE_PEERS, 1 << 9);
	check(pausable_allocate(&none, 1, 0) == PAUSABLE_DRIVER && !none, "a peer that is not there has access");
	pausable_set(PAUSABLE_PEERS, 1 << 2);
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	check(!op_pause(), "cannot pause");
	fake_vanish(2);
	check(op_resume() == PAUSABLE_DRIVER, "a peer that is gone has access");
	paused("w");
	check(((const unsigned char *)pausable_backup(blocks[0].at, 1))[0] == value(&blocks[0], 0), "the backup cannot be read");
	fake_vanish(-1);
	check(!op_resume(), "cannot resume");
	same("w");
	pausable_set(PAUSABLE_PEERS, 0);
	empty();
}

/* retained keeps backups for the next pause, and they can be read meanwhile. */
void retained(void)
{
	snprintf(doing, sizeof doing, "retained backups");
	pausable_set(PAUSABLE_RETAIN, 1);
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	check(!pausable_backup(blocks[0].at, 1), "there is a backup before any pause");
	check(!op_pause() && !op_resume(), "it fails");
	const unsigned char *kept = pausable_backup(blocks[0].at, blocks[0].bytes);
	blocks[0].at[5]++;
	check(kept && kept[5] == value(&blocks[0], 5), "the backup is not that of the pause");
	blocks[0].at[5]--;
	fake_fail_name("cuStreamSynchronize", BROKEN);
	check(op_pause() == PAUSABLE_DRIVER, "it does not fail");
	fake_fail_name(NULL, 0);
	check(!pausable_backup(blocks[0].at, 1), "half a backup can be read");
	check(!op_pause() && pausable_backup(blocks[0].at, 1) == kept && !op_resume(), "the memory is not used again");
	same("w");
	empty();
	pausable_set(PAUSABLE_RETAIN, 0);
}

/* exits ends processes while memory is paused, which leaves nothing behind. */
void exits(const char *folder)
{
	snprintf(doing, sizeof doing, "an exit");
	for (int backup = PAUSABLE_NONE; backup <= PAUSABLE_FILE; backup++)
		for (int hard = 0; hard < 2; hard++) {
			fflush(NULL);
			pid_t child = fork();
			if (!child) {
				struct block b = {.bytes = 100000, .tag = "w", .backup = backup};
				pausable_set_folder(folder);
				check(!allocate(&b) && !op_pause(), "it fails");
				if (hard)
					raise(SIGKILL);
				exit(0);
			}
			int status;
			while (waitpid(child, &status, 0) < 0 && errno == EINTR)
				;
			check(hard ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && !WEXITSTATUS(status), "it ended with %#x", status);
		}
	check(!rmdir(folder), "files are left in %s", folder);
}

/* damage changes a backup. */
void damage(void)
{
	snprintf(doing, sizeof doing, "a damaged backup");
	pausable_set(PAUSABLE_VERIFY, 1);
	new_block("w", PAUSABLE_PAGEABLE, 0, 100000);
	check(!op_pause(), "cannot pause");
	unsigned char *kept = (unsigned char *)pausable_backup(blocks[0].at + 777, 1);
	*kept ^= 1;
	check(op_resume() == PAUSABLE_DAMAGED, "nobody notices");
	paused("w");
	*kept ^= 1;
	check(!op_resume(), "cannot resume");
	same("w");
	empty();
	pausable_set(PAUSABLE_VERIFY, 0);
}

/* folders for files that cannot be used. */
void folders(const char *good)
{
	snprintf(doing, sizeof doing, "folders");
	new_block("w", PAUSABLE_FILE, 0, 300000);
	pausable_set_folder("/nowhere/at/all");
	check(op_pause() == PAUSABLE_HOST_MEMORY, "a folder that is not there is used");
	active("w");
	same("w");
	pausable_set_folder(good);
	struct rlimit before, small;
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 100000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	int kind = op_pause();
	setrlimit(RLIMIT_FSIZE, &before);
	check(kind == PAUSABLE_HOST_MEMORY, "a file that is too large is written");
	active("w");
	same("w");
	check(!op_pause(), "cannot pause");
	paused("w");
	check(!op_resume(), "cannot resume");
	same("w");
	empty();
}

static int refused_in_child(void)
{
	void *at;
	char text[64];
	return pausable_allocate(&at, 1, 0) == PAUSABLE_FORKED && op_pause() == PAUSABLE_FORKED && op_resume() == PAUSABLE_FORKED &&
		pausable_release(blocks[0].at) == PAUSABLE_FORKED && !pausable_status(text, sizeof text) && !pausable_backup(blocks[0].at, 1) &&
		pausable_region("w", 0, 0) == PAUSABLE_FORKED && pausable_set(PAUSABLE_VERIFY, 0) == PAUSABLE_FORKED &&
		pausable_set_folder("/") == PAUSABLE_FORKED && pausable_set_log("/") == PAUSABLE_FORKED && !pausable_note(NULL) && !pausable_note("x") &&
		!pausable_size(blocks[0].at) && !pausable_in_region() && !pausable_get(PAUSABLE_PINNED_POOL);
}

static void ended_well(pid_t child, const char *what)
{
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	check(WIFEXITED(status) && !WEXITSTATUS(status), "%s: %#x", what, status);
}

static int pausing; /* whether the thread goes on */

static void *keep_pausing(void *none)
{
	while (__atomic_load_n(&pausing, __ATOMIC_ACQUIRE))
		check(!op_pause() && !op_resume(), "it fails");
	return none;
}

/* forked uses the library in children, which are made while it is idle, while memory is
 * paused, and in the middle of pauses. */
void forked(const char *folder)
{
	snprintf(doing, sizeof doing, "a fork");
	new_block("w", PAUSABLE_PAGEABLE, 0, 100000);
	new_block("w", PAUSABLE_FILE, 0, 100000);
	check(!op_pause(), "cannot pause");
	const void *kept = pausable_backup(blocks[0].at, 1);
	int go[2];
	check(kept && !pipe(go), "no backup");
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		char c;
		struct stat is;
		int ok = refused_in_child() && write(go[1], kept, 1) < 0 && errno == EFAULT; /* it has no copy of a backup */
		close(go[1]);
		ok = ok && read(go[0], &c, 1) == 0; /* until it is resumed */
		for (int i = 3; i < 100; i++)
			ok = ok && (fstat(i, &is) || !S_ISREG(is.st_mode) || is.st_nlink || !is.st_size);
		_exit(!ok);
	}
	close(go[0]);
	check(!op_resume(), "cannot resume");
	close(go[1]);
	ended_well(child, "a child may use it, or keeps a backup");
	check(!pausable_set_log(folder), "there is no log");
	pthread_t thread;
	__atomic_store_n(&pausing, 1, __ATOMIC_RELEASE);
	check(!pthread_create(&thread, NULL, keep_pausing, NULL), "no thread");
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (!child) {
			alarm(60);
			_exit(!refused_in_child());
		}
		ended_well(child, "in the middle of a pause");
	}
	__atomic_store_n(&pausing, 0, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	check(!pausable_set_log(NULL), "the log does not end");
	same("w");
	empty();
}

static void host_file(const char *name, const char *text)
{
	char path[300] = HOST_ROOT;
	mkdir(path, 0700);
	for (size_t at = strlen(path); at < sizeof path - 1 && *name; path[++at] = 0) {
		if (*name == '/')
			mkdir(path, 0700);
		path[at] = *name++;
	}
	FILE *f = fopen(path, "w");
	check(f && fputs(text, f) >= 0 && !fclose(f), "cannot write %s", path);
}

static void host_gone(const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s%s", HOST_ROOT, name);
	check(!unlink(path), "cannot remove %s", path);
}

/* hosts have no memory for backups: that is met before anything is copied. */
void hosts(void)
{
	snprintf(doing, sizeof doing, "a host without memory");
	new_block("w", PAUSABLE_PAGEABLE, 0, 300000);
	new_block("w", PAUSABLE_PAGEABLE, 1, 300000);
	host_file("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:  500 kB\nSwapFree: 50 kB\n");
	check(op_pause() == PAUSABLE_HOST_MEMORY && strstr(pausable_failure()->text, "has 550 KiB available"), "the host gives what it has not: %s", pausable_failure()->text);
	active("w");
	host_file("/proc/meminfo", "MemAvailable:  500 kB\nSwapFree: 500 kB\n");
	check(!op_pause() && !op_resume(), "the host does not give what it has");
	host_file("/proc/meminfo", "MemAvailable:  50000 kB\nSwapFree: 0 kB\n");
	host_file("/proc/self/cgroup", "3:cpu:/\n0::/a/b\n");
	host_file("/sys/fs/cgroup/a/memory.max", "700000\n");
	host_file("/sys/fs/cgroup/a/memory.current", "650000\n");
	host_file("/sys/fs/cgroup/a/b/memory.max", "max\n");
	host_file("/sys/fs/cgroup/a/b/memory.current", "1\n");
	check(op_pause() == PAUSABLE_HOST_MEMORY, "a group gives what it has not");
	host_file("/sys/fs/cgroup/a/memory.stat", "anon 7\ninactive_file 300000\nactive_file 300000\n");
	check(!op_pause() && !op_resume(), "a group does not give its page cache");
	host_file("/proc/self/cgroup", "4:memory:/c\n0::/\n");
	host_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"); /* as a container sees its own */
	host_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
	check(op_pause() == PAUSABLE_HOST_MEMORY, "a group gives what it has not");
	same("w");
	empty();
	pausable_set(PAUSABLE_PINNED_POOL, 0);
	new_block("w", PAUSABLE_PINNED, 0, 700000);
	check(!op_pause() && !op_resume(), "pinned memory is not of the group");
	fake_fail_name("cuMemHostAlloc", OOM);
	check(op_pause() == PAUSABLE_HOST_MEMORY, "what cannot be pinned is taken of a group that has it not");
	fake_fail_name(NULL, 0);
	active("w");
	host_file("/proc/meminfo", "MemAvailable:  600 kB\nSwapFree: 0 kB\n");
	check(op_pause() == PAUSABLE_HOST_MEMORY, "the host pins what it has not");
	host_gone("/proc/meminfo");
	check(!op_pause() && !op_resume(), "it fails");
	same("w");
	empty();
	pausable_set(PAUSABLE_PINNED_POOL, 1 << 20);
}

static int lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0;
	for (int c; f && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* cycles pauses and resumes often, and grows nothing. */
void cycles(int n, int from, int to)
{
	snprintf(doing, sizeof doing, "%d cycles, backup %s to %s", n, kinds[from], kinds[to]);
	for (int i = from; i <= to; i++)
		new_block("w", i, 0, 20000);
	int before = 0, fd = dup(0);
	size_t pinned = 0;
	close(fd);
	for (int i = 0; i < n; i++) {
		check(!op_pause() && !op_resume(), "cycle %d fails", i);
		if (i == 10) {
			before = lines_of("/proc/self/maps");
			pinned = fake_pinned();
		}
	}
	same("w");
	int now = dup(0), after = lines_of("/proc/self/maps");
	close(now);
	/* Threads that end keep stacks and heaps for the next ones, a few of them. */
	check(after < before + 50, "%d mappings became %d", before, after);
	check(now <= fd, "descriptor %d became %d", fd, now); /* of which another thread may have had some */
	check(pinned == fake_pinned(), "pinned memory of %zu bytes became %zu", pinned, fake_pinned());
	empty();
}

/* logged keeps a log, and goes without one where there cannot be one. */
void logged(const char *folder)
{
	snprintf(doing, sizeof doing, "a log");
	check(pausable_set_log("/nowhere/at/all") == PAUSABLE_HOST_MEMORY && pausable_set_log("") == PAUSABLE_ARGUMENT, "a log is kept nowhere");
	check(!pausable_note(NULL), "there is a log already");
	check(!pausable_set_log(folder) && !pausable_set_log(folder) && pausable_note("a\nline"), "there is no log");
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	check(pausable_size(blocks[0].at) >= 100000 && !pausable_size(blocks[0].at + 1), "the size is %llu", (unsigned long long)pausable_size(blocks[0].at));
	check(!op_pause() && !op_resume(), "it fails");
	struct rlimit before, small;
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 10;
	setrlimit(RLIMIT_FSIZE, &small);
	int kind = op_pause();
	setrlimit(RLIMIT_FSIZE, &before);
	check(!kind && !pausable_note(NULL), "a log that cannot be written is kept");
	check(!op_resume() && !pausable_set_log(NULL), "it fails");
	same("w");
	empty();
	char victim[300], path[600] = "";
	snprintf(victim, sizeof victim, "%s/victim", folder);
	FILE *f = fopen(victim, "w");
	check(f && !fclose(f), "cannot write %s", victim);
	check(!pausable_set_log(folder), "there is no log");
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) { /* the newest of this process is the one of the most seconds */
		char name[600];
		snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
		if (atoi(e->d_name) == getpid() && strcmp(name, path) > 0)
			strcpy(path, name);
	}
	check(d && !closedir(d) && *path && !unlink(path) && !symlink(victim, path), "cannot put a link in the way of %s", path);
	pausable_note("x");
	struct stat is;
	check(!stat(victim, &is) && !is.st_size && !pausable_note(NULL), "the log is written through a link");
	check(!unlink(path) && !unlink(victim) && !pausable_set_log(NULL), "cannot clean up");
}
