/*
 * Reads the memory of NVIDIA's devices through the driver's library, for a program that
 * is static and therefore cannot load it. It runs as a process of its own: a call that
 * hangs can be killed then, and one that crashes costs nothing else.
 *
 * It says "ready VERSION" or "fail CODE TEXT". For each line "read MASK" on its input it
 * then writes what the devices hold but for those whose bit in MASK is set, and "done":
 *
 *	device N                     what follows is of this device; said before it is asked
 *	instance K                   of this part (MIG) of that device
 *	uuid TEXT
 *	name TEXT
 *	parts N                      MIG is on, with so many parts
 *	memory TOTAL USED FREE RESERVED
 *	process PID USED
 *	error CODE WHAT              a question without an answer: device, memory, processes
 *
 * Sizes are bytes; "-" is one that the driver does not report. Types, values and layouts
 * are those of NVML's documentation.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef void *device;

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, FUNCTION_NOT_FOUND = 13 };
static const u64 NOT_AVAILABLE = ~0ULL;

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
struct process_v1 { unsigned pid; u64 used; };
struct process { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; };

static struct {
	int (*init)(void);
	const char *(*error_string)(int);
	int (*version)(char *, unsigned);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, device *);
	int (*uuid)(device, char *, unsigned);
	int (*name)(device, char *, unsigned);
	int (*memory)(device, struct memory *);
	int (*memory_v2)(device, struct memory_v2 *);
	int (*mig_mode)(device, unsigned *, unsigned *);
	int (*mig_count)(device, unsigned *);
	int (*mig_by_index)(device, unsigned, device *);
	/* Those that compute, that draw, and that share a device (MPS). A process can be
	 * in several lists, with the same size in each. */
	struct { int (*list)(device, unsigned *, void *); int old; } processes[3];
} nvml;

static char out[1 << 16];
static unsigned length;

static void flush(void)
{
	unsigned done = 0;
	while (done < length) {
		long n = write(1, out + done, length - done);
		if (n <= 0)
			_exit(0); /* nobody reads any more */
		done += n;
	}
	length = 0;
}

static void say(const char *format, ...)
{
	char line[512];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n++] = '\n';
	if (length + n > sizeof out)
		flush();
	memcpy(out + length, line, n);
	length += n;
}

/* begin says what is asked for next, at once: it may hang. */
static void begin(const char *what, unsigned n)
{
	say("%s %u", what, n);
	flush();
}

static const char *number(u64 n, char *text)
{
	if (n == NOT_AVAILABLE)
		return "-";
	snprintf(text, 24, "%llu", n);
	return text;
}

static int memory(device d)
{
	char a[24], b[24], c[24], e[24];
	int rc = FUNCTION_NOT_FOUND;
	if (nvml.memory_v2) {
		struct memory_v2 m;
		memset(&m, 0, sizeof m);
		m.version = sizeof m | 2 << 24;
		rc = nvml.memory_v2(d, &m);
		if (rc == SUCCESS)
			say("memory %s %s %s %s", number(m.total, a), number(m.used, b), number(m.free, c), number(m.reserved, e));
	}
	if (rc != SUCCESS && nvml.memory) { /* before driver 510; what is used includes what is reserved */
		struct memory m;
		memset(&m, 0, sizeof m);
		rc = nvml.memory(d, &m);
		if (rc == SUCCESS)
			say("memory %s %s %s -", number(m.total, a), number(m.used, b), number(m.free, c));
	}
	return rc;
}

enum { MOST = 4096 };
static struct process list[MOST];

static int processes(device d)
{
	int known = 0, failed = FUNCTION_NOT_FOUND;
	for (int k = 0; k < 3; k++) {
		if (!nvml.processes[k].list)
			continue;
		unsigned n = MOST;
		int rc = nvml.processes[k].list(d, &n, list);
		if (rc != SUCCESS) {
			if (k == 0)
				failed = rc;
			continue;
		}
		known |= k == 0;
		for (unsigned i = 0; i < n && i < MOST; i++) {
			char text[24];
			if (nvml.processes[k].old) {
				struct process_v1 *p = (struct process_v1 *)list + i;
				say("process %u %s", p->pid, number(p->used, text));
			} else {
				say("process %u %s", list[i].pid, number(list[i].used, text));
			}
		}
	}
	return known ? SUCCESS : failed;
}

static void describe(device d)
{
	char text[128] = "";
	if (nvml.uuid(d, text, sizeof text) == SUCCESS)
		say("uuid %s", text);
	if (nvml.name && nvml.name(d, text, sizeof text) == SUCCESS)
		say("name %s", text);
	int rc = memory(d);
	if (rc != SUCCESS)
		say("error %d memory", rc);
}

static void holders(device d)
{
	int rc = processes(d);
	if (rc != SUCCESS)
		say("error %d processes", rc);
}

/* instances reads the parts of a device; it reports whether it has any. */
static int instances(device d)
{
	unsigned now = 0, next, most = 0, found = 0;
	if (!nvml.mig_mode || !nvml.mig_count || !nvml.mig_by_index)
		return 0;
	if (nvml.mig_mode(d, &now, &next) != SUCCESS || now != 1 || nvml.mig_count(d, &most) != SUCCESS)
		return 0;
	for (unsigned k = 0; k < most; k++) {
		device part;
		int rc = nvml.mig_by_index(d, k, &part);
		if (rc == NOT_FOUND)
			continue; /* a place that is empty */
		if (found++ == 0)
			say("parts %u", most);
		begin("instance", k);
		if (rc != SUCCESS) {
			say("error %d device", rc);
			continue;
		}
		describe(part);
		holders(part);
	}
	return found > 0;
}

static void read_all(u64 skip)
{
	unsigned n = 0;
	int rc = nvml.count(&n);
	if (rc != SUCCESS)
		say("error %d count", rc);
	for (unsigned i = 0; i < n; i++) {
		device d;
		if (i < 64 && skip >> i & 1)
			continue;
		begin("device", i);
		rc = nvml.by_index(i, &d);
		if (rc != SUCCESS) {
			say("error %d device", rc);
			continue;
		}
		describe(d);
		if (!instances(d))
			holders(d);
	}
	say("done");
	flush();
}

static void *symbol(void *library, const char *a, const char *b)
{
	void *f = dlsym(library, a);
	return f || !b ? f : dlsym(library, b);
}

/* open_library loads the library; why says what is wrong with the first place. */
static void *open_library(char *why, unsigned size)
{
	static const char *const places[] = {
		"libnvidia-ml.so.1",
		"/usr/local/nvidia/lib64/libnvidia-ml.so.1", /* Kubernetes */
		"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		void *library = dlopen(places[i], RTLD_NOW);
		if (library)
			return library;
		const char *text = dlerror();
		if (i == 0)
			snprintf(why, size, "%s", text ? text : "");
	}
	return 0;
}

static void load(void)
{
	static const char *const kinds[3][3] = {
		{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"},
		{"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses"},
		{"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses"},
	};
	char why[256] = "";
	void *library = open_library(why, sizeof why);
	if (!library) {
		say("fail library %s", why);
		flush();
		_exit(0);
	}
	nvml.init = symbol(library, "nvmlInit_v2", "nvmlInit");
	nvml.error_string = symbol(library, "nvmlErrorString", 0);
	nvml.version = symbol(library, "nvmlSystemGetDriverVersion", 0);
	nvml.count = symbol(library, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount");
	nvml.by_index = symbol(library, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex");
	nvml.uuid = symbol(library, "nvmlDeviceGetUUID", 0);
	nvml.name = symbol(library, "nvmlDeviceGetName", 0);
	nvml.memory = symbol(library, "nvmlDeviceGetMemoryInfo", 0);
	nvml.memory_v2 = symbol(library, "nvmlDeviceGetMemoryInfo_v2", 0);
	nvml.mig_mode = symbol(library, "nvmlDeviceGetMigMode", 0);
	nvml.mig_count = symbol(library, "nvmlDeviceGetMaxMigDeviceCount", 0);
	nvml.mig_by_index = symbol(library, "nvmlDeviceGetMigDeviceHandleByIndex", 0);
	for (int k = 0; k < 3; k++)
		for (int v = 0; v < 3 && !nvml.processes[k].list; v++) {
			nvml.processes[k].list = dlsym(library, kinds[k][v]);
			nvml.processes[k].old = v == 2;
		}
	if (!nvml.init || !nvml.count || !nvml.by_index || !nvml.uuid) {
		say("fail library it is not the driver's: functions are missing");
		flush();
		_exit(0);
	}
}

int main(void)
{
	char text[96] = "-", input[64];
	load();
	int rc = nvml.init();
	if (rc != SUCCESS) {
		const char *words = nvml.error_string ? nvml.error_string(rc) : 0;
		say("fail %d %s", rc, words ? words : "");
		flush();
		_exit(0);
	}
	if (!nvml.version || nvml.version(text, sizeof text) != SUCCESS)
		strcpy(text, "-");
	say("ready %s", text);
	flush();
	for (;;) {
		/* A question is one write of its asker, which waits for the answer. */
		long n = read(0, input, sizeof input - 1);
		if (n <= 0)
			_exit(0);
		u64 skip = 0;
		for (long i = 5; i < n && input[i] >= '0' && input[i] <= '9'; i++)
			skip = 10 * skip + (input[i] - '0');
		read_all(skip);
	}
}
