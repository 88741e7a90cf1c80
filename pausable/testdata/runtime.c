/* CUDA's runtime for tests: what it allocates is memory of the host, which it counts. */
#include <stdlib.h>

int runtime_blocks;
static int device;

int cudaGetDevice(int *out) { return *out = device, 0; }
int cudaSetDevice(int to) { return device = to, 0; }
int cudaMalloc(void **at, size_t bytes)
{
	*at = malloc(bytes);
	runtime_blocks += *at != NULL;
	return *at ? 0 : 2;
}
int cudaFree(void *at)
{
	runtime_blocks -= at != NULL;
	free(at);
	return 0;
}
