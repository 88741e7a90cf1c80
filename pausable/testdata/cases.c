/* What is not about a call of the driver that fails: full devices, misuse, forks, files, many cycles. */
#include "faults.h"

#include <errno.h>
#include <signal.h>
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

/* child uses the library in a process that was forked. */
void forked(void)
{
	snprintf(doing, sizeof doing, "a fork");
	new_block("w", PAUSABLE_PINNED, 0, 100000);
	fflush(NULL);
	pid_t child = fork();
	if (!child) {
		void *at;
		char text[64];
		_exit(pausable_allocate(&at, 1, 0) == PAUSABLE_FORKED && op_pause() == PAUSABLE_FORKED && op_resume() == PAUSABLE_FORKED &&
			pausable_release(blocks[0].at) == PAUSABLE_FORKED && !pausable_status(text, sizeof text) && !pausable_backup(blocks[0].at, 1) ? 0 : 1);
	}
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	check(WIFEXITED(status) && !WEXITSTATUS(status), "a child may use it");
	same("w");
	empty();
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
	check(now == fd, "descriptor %d became %d", fd, now);
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
}
