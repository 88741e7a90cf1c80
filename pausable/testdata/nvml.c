/* The library by which a driver reports its processes, for tests: the one that asks, and
 * one that is not there. */
#include <string.h>
#include <unistd.h>

struct process { unsigned pid; unsigned long long bytes; unsigned instances[2]; };

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	*device = (void *)bus;
	return strcmp(bus, "0000:01:00.0") ? 6 : 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process *to)
{
	if (!device || *n < 3)
		return 7;
	*n = 3;
	to[0] = (struct process){.pid = (1 << 22) + 1, .bytes = 7};
	to[1] = (struct process){.pid = (unsigned)getpid(), .bytes = 1000};
	to[2] = (struct process){.pid = 1, .bytes = ~0ull}; /* unknown */
	return 0;
}
