// A program that loads libraries, uses and unloads them, and has their files
// deleted and replaced while it does. What it has loaded last lies where another
// was before.
#include "maps.h"
#include <dlfcn.h>

static const char *names[] = {"first", "second"};

static int use(void *library, const char *name, int i)
{
	int (*f)(int (*)(int), int) = dlsym(library, name);
	return f(map_here, i);
}

static void run(void)
{
	for (int round = 0; round < 8; round++) {
		const char *name = names[round % 2];
		char path[4096], was[4096];
		snprintf(path, sizeof path, "%s/lib%s.so", getenv("LIBRARIES"), name);
		snprintf(was, sizeof was, "%s.kept", path);
		void *library = dlopen(path, RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		for (int k = 0; k < 60; k++) {
			if (k == 20)
				rename(path, was); // deleted
			if (k == 40)
				close(creat(path, 0600)); // replaced
			use(library, name, round % 2 + 2 * k); // so that the size identifies the library
			usleep(300);
		}
		rename(was, path);
		usleep(200000); // who reads the map of the process a moment later finds it
		dlclose(library);
	}
}

int main(void) { on_every_line(run); }
