/*
 * A program that allocates by CUDA's runtime, in a library that it loads, as Python does. It
 * ends with 3 if nothing was preloaded, and with 1 at the first thing that is not as it
 * should be. Its argument is what the environment asks for: region, start or backup.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MAIN
int main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(const char *) = NULL;
	void *at = library ? dlsym(library, "run") : NULL;
	memcpy(&run, &at, sizeof at);
	if (!run)
		fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "usage: preloaded LIBRARY region|start|backup");
	return run ? run(argv[2]) : 2;
}
#else

extern int runtime_blocks;
int cudaMalloc(void **, size_t), cudaFree(void *), cudaSetDevice(int);

#define check(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

enum { SIZE = 100000, MEMORY = 64 << 20 };
static int (*region)(const char *, int, int), (*set_aside)(const char *), (*take_again)(const char *);
static uint64_t (*hooked)(void);

static int find(const char *name, void *to)
{
	void *at = dlsym(RTLD_DEFAULT, name);
	memcpy(to, &at, sizeof at);
	return at != NULL;
}

/* allocate returns whether a new block is pausable, and frees it. */
static int allocate(size_t n)
{
	void *at;
	int before = runtime_blocks;
	check(!cudaMalloc(&at, n) && at);
	int pausable = runtime_blocks == before;
	check(!cudaFree(at) && runtime_blocks == before);
	return pausable;
}

static void *elsewhere(void *out)
{
	*(int *)out = allocate(SIZE);
	return out;
}

/* in_thread is allocate in a new thread. */
static int in_thread(void)
{
	pthread_t t;
	int pausable;
	check(!pthread_create(&t, NULL, elsewhere, &pausable) && !pthread_join(t, NULL));
	return pausable;
}

static void regions(void)
{
	char *at;
	check(!allocate(SIZE) && !in_thread());
	check(!region("w", 1, 0) && allocate(SIZE) && !in_thread());
	check(!region("w", 1, 1) && in_thread());
	check(!region("", 0, 0) && !allocate(SIZE) && in_thread());
	check(!region("w", 1, 0) && !region(NULL, 0, 1));
	check(!cudaSetDevice(2));
	check(!cudaMalloc((void **)&at, SIZE));
	memset(at, 42, SIZE);
	check(!set_aside("w") && !take_again("w"));
	check(at[0] == 42 && at[SIZE - 1] == 42);
	check(cudaMalloc((void **)&at, MEMORY) == 2 && !at); /* as PyTorch expects it: it then empties its cache */
	check(cudaSetDevice(77) == 0 && cudaMalloc((void **)&at, SIZE) != 0 && !at);
	check(!cudaSetDevice(0) && !region(NULL, 0, 0) && !allocate(SIZE));
	check(!cudaFree(NULL));
}

static void from_the_start(int kept)
{
	char *at;
	check(allocate(SIZE) && in_thread());
	check(!region("", 0, 1) && !allocate(SIZE) && !in_thread());
	check(!region(NULL, 0, 1) && allocate(SIZE));
	check(!cudaMalloc((void **)&at, SIZE));
	memset(at, 42, SIZE);
	check(!set_aside("default") && !take_again(NULL));
	check(!kept || (at[0] == 42 && at[SIZE - 1] == 42));
	check(!cudaFree(at));
}

int run(const char *what)
{
	if (!find("pausable_region", &region) || !find("pausable_pause", &set_aside) || !find("pausable_resume", &take_again) ||
		!find("pausable_hooked", &hooked))
		return 3;
	check(!hooked());
	if (strcmp(what, "region"))
		from_the_start(!strcmp(what, "backup"));
	else
		regions();
	check(hooked() > 3);
	pid_t child = fork();
	if (!child) /* the child of a program that has used CUDA */
		_exit(allocate(SIZE));
	int status;
	check(waitpid(child, &status, 0) == child && !status);
	return 0;
}
#endif
