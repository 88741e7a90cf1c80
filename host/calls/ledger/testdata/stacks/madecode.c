// Code that is made at run time: with a frame pointer, or with an argument
// without one, and then nobody can tell who called it.
#include "maps.h"

static NOINLINE int middle(int i) { return map_here(i) + 1; }

static const unsigned char with[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, 0xff, 0xd6, 0xc9, 0xc3};
static const unsigned char without[] = {0x48, 0x83, 0xec, 0x48, 0xff, 0xd6, 0x48, 0x83, 0xc4, 0x48, 0xc3};
static int (*made)(int, int (*)(int));

static NOINLINE int outer(int i) { return made(i, middle) + 1; }

static void run(void)
{
	while (calls < 3 * SIZES) {
		outer(next_call());
		usleep(300);
	}
}

int main(int argc, char **argv)
{
	void *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, argc > 1 ? without : with, argc > 1 ? sizeof without : sizeof with);
	made = p;
	on_every_line(run);
	(void)argv;
}
