/*
 * A library in place of the driver's, for tests. The file that FAKE_NVML names states what
 * it answers, and is read again when it was replaced:
 *
 *	version TEXT
 *	init CODE                         nvmlInit fails so
 *	count CODE                        so does the number of devices
 *	device UUID NAME TOTAL USED FREE RESERVED
 *	instance UUID NAME TOTAL USED FREE RESERVED     of the device before it (MIG)
 *	process KIND PID USED             of the one before it; KIND is compute, graphics or mps
 *	error WHAT CODE                   of it: device, memory, processes
 *	hang WHAT                         of it: init (of no device), device, memory, processes
 *	crash                             of it, when its memory is asked for
 *
 * Sizes are bytes; -1 is not available. _ in a name is a blank. Compiled with -DOLD, it
 * has only the functions of before driver 450.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long u64;
enum { DEVICES = 64, PROCESSES = 4096 };

static struct device {
	char uuid[96], name[96], hang[16], error[16];
	u64 total, used, free, reserved;
	int code, parent, place, parts, crash;
} devices[DEVICES];
static struct { int device, kind; unsigned pid; u64 used; } list[PROCESSES];
static int count, listed, init_code, count_code, init_hangs;
static char version[96];

static void hang(void)
{
	for (;;)
		pause();
}

static void line(char *text)
{
	static const char *const kinds[] = {"compute", "graphics", "mps"};
	char word[32] = "", what[32] = "";
	struct device *d = count ? &devices[count - 1] : 0;
	sscanf(text, "%31s", word);
	if (!strcmp(word, "version"))
		sscanf(text, "%*s %95s", version);
	else if (!strcmp(word, "init"))
		init_code = atoi(text + 5);
	else if (!strcmp(word, "count"))
		count_code = atoi(text + 6);
	else if ((!strcmp(word, "device") || !strcmp(word, "instance")) && count < DEVICES) {
		int parent = -1, place = 0;
		if (word[0] == 'i')
			for (int i = 0; i < count; i++)
				if (devices[i].parent < 0) {
					parent = i;
					place = devices[i].parts;
				}
		d = &devices[count++];
		memset(d, 0, sizeof *d);
		d->parent = parent;
		d->place = place;
		if (parent >= 0)
			devices[parent].parts = place + 2; /* every other place is empty */
		sscanf(text, "%*s %95s %95s %lld %lld %lld %lld", d->uuid, d->name, (long long *)&d->total, (long long *)&d->used, (long long *)&d->free, (long long *)&d->reserved);
		for (char *c = d->name; *c; c++)
			if (*c == '_')
				*c = ' ';
	} else if (!strcmp(word, "process") && listed < PROCESSES) {
		sscanf(text, "%*s %31s %u %lld", what, &list[listed].pid, (long long *)&list[listed].used);
		list[listed].device = count - 1;
		for (int k = 0; k < 3; k++)
			if (!strcmp(what, kinds[k]))
				list[listed].kind = k;
		listed++;
	} else if (!strcmp(word, "error") && d)
		sscanf(text, "%*s %15s %d", d->error, &d->code);
	else if (!strcmp(word, "hang") && d)
		sscanf(text, "%*s %15s", d->hang);
	else if (!strcmp(word, "hang"))
		init_hangs = 1;
	else if (!strcmp(word, "crash") && d)
		d->crash = 1;
}

static void load(void)
{
	static ino_t inode;
	static struct timespec changed;
	struct stat now;
	char text[512];
	const char *name = getenv("FAKE_NVML");
	if (!name || stat(name, &now) || now.st_ino == inode && !memcmp(&now.st_mtim, &changed, sizeof changed))
		return;
	FILE *f = fopen(name, "r");
	if (!f)
		return;
	inode = now.st_ino;
	changed = now.st_mtim;
	count = listed = init_code = count_code = init_hangs = 0;
	strcpy(version, "580.65.06");
	memset(devices, 0, sizeof devices);
	memset(list, 0, sizeof list);
	while (fgets(text, sizeof text, f))
		line(text);
	fclose(f);
}

/* asked answers for a device: 0, or the error that the file states; or never. */
static int asked(void *handle, const char *what)
{
	struct device *d = handle;
	if (!strcmp(d->hang, what))
		hang();
	return strcmp(d->error, what) ? 0 : d->code;
}

int nvmlInit_v2(void)
{
	load();
	if (init_hangs)
		hang();
	return init_code;
}

const char *nvmlErrorString(int code) { return code == 18 ? "Driver/library version mismatch" : "Some Error"; }

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	snprintf(text, size, "%s", version);
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
	load();
	*n = 0;
	for (int i = 0; i < count; i++)
		*n += devices[i].parent < 0;
	return count_code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
	for (int i = 0; i < count; i++)
		if (devices[i].parent < 0 && index-- == 0) {
			*handle = &devices[i];
			return asked(*handle, "device");
		}
	return 2;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned size)
{
	snprintf(text, size, "%s", ((struct device *)handle)->uuid);
	return 0;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size)
{
	snprintf(text, size, "%s", ((struct device *)handle)->name);
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, void *to)
{
	struct { u64 total, free, used; } *m = to;
	struct device *d = handle;
	if (d->crash)
		*(volatile int *)0 = 1;
	m->total = d->total;
	m->free = d->free;
	m->used = d->used + d->reserved;
	return asked(handle, "memory");
}

static int processes(void *handle, unsigned *n, void *to, int kind, int old)
{
	struct { unsigned pid; u64 used; } *v1 = to;
	struct { unsigned pid; u64 used; unsigned gpu, compute; } *v2 = to;
	unsigned most = *n;
	int rc = asked(handle, "processes");
	*n = 0;
	for (int i = 0; i < listed && rc == 0; i++) {
		if (&devices[list[i].device] != handle || list[i].kind != kind)
			continue;
		if (*n >= most)
			return 7;
		if (old) {
			v1[*n].pid = list[i].pid;
			v1[*n].used = list[i].used;
		} else {
			v2[*n].pid = list[i].pid;
			v2[*n].used = list[i].used;
			v2[*n].gpu = v2[*n].compute = -1;
		}
		++*n;
	}
	return rc;
}

#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, void *to) { return processes(d, n, to, 0, 1); }
int nvmlDeviceGetGraphicsRunningProcesses(void *d, unsigned *n, void *to) { return processes(d, n, to, 1, 1); }
#else
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *to) { return processes(d, n, to, 0, 0); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, void *to) { return processes(d, n, to, 1, 0); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *d, unsigned *n, void *to) { return processes(d, n, to, 2, 0); }

int nvmlDeviceGetMemoryInfo_v2(void *handle, void *to)
{
	struct { unsigned version; u64 total, reserved, free, used; } *m = to;
	struct device *d = handle;
	if (m->version != (sizeof *m | 2 << 24))
		return 25;
	if (d->crash)
		*(volatile int *)0 = 1;
	m->total = d->total;
	m->reserved = d->reserved;
	m->free = d->free;
	m->used = d->used;
	return asked(handle, "memory");
}

int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *next)
{
	*now = *next = ((struct device *)handle)->parts > 0;
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *n)
{
	*n = 7;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned place, void **part)
{
	for (int i = 0; i < count; i++)
		if (devices[i].parent >= 0 && &devices[devices[i].parent] == handle && devices[i].place == (int)place) {
			*part = &devices[i];
			return asked(*part, "device");
		}
	return 6;
}
#endif
