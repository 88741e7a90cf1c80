// Calls of all kinds, without frame pointers.
#include "maps.h"

static volatile int sink;

static NOINLINE int leaf(int i) { return map_here(i) + 1; }
static NOINLINE int by_jump(int i) { sink++; return leaf(i); }        // the last call is a jump
static NOINLINE int by_jumps(int i) { sink += i; return by_jump(i); } // and again
static NOINLINE int down(int n, int i) { return n ? down(n - 1, i) + n : by_jumps(i) + 1; }
static NOINLINE int grows(int n, int i)
{
	char *b = alloca(n * 50 + 1);
	memset(b, i, n * 50 + 1);
	return leaf(i) + b[n];
}
static NOINLINE int aligned(int n, int i)
{
	_Alignas(128) volatile char b[300];
	char *a = alloca(n + 1);
	a[n] = b[n] = i;
	return grows(n, i) + b[n] + a[n];
}
static int number;
static int compare(const void *a, const void *b)
{
	if (number >= 0)
		leaf(number);
	number = -1;
	return *(int *)a - *(int *)b;
}
static NOINLINE int called_back(int i)
{
	int a[] = {3, 2, 1};
	number = i;
	qsort(a, 3, sizeof *a, compare);
	return a[0];
}
static NOINLINE int even(int n, int i);
static NOINLINE int odd(int n, int i) { return n ? even(n - 1, i) + 1 : leaf(i); }
static NOINLINE int even(int n, int i) { return n ? odd(n - 1, i) * 2 : grows(n, i); }
static NOINLINE int raw(int i) { return syscall(SYS_mmap, 0, 4096 * (i % SIZES + 1), 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) > 0; }
static NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h) { return leaf(h) + a + b + c + d + e + f + g; }

static void run(void)
{
	while (calls < 5 * SIZES) {
		int i = next_call();
		switch (i % 8) {
		case 0: sink += down(i % 60, i); break;
		case 1: sink += grows(i % 40, i); break;
		case 2: sink += aligned(i % 30, i); break;
		case 3: sink += called_back(i); break;
		case 4: sink += even(i % 25, i); break;
		case 5: sink += raw(i); break;
		case 6: sink += many(1, 2, 3, 4, 5, 6, 7, i); break;
		case 7: sink += by_jumps(i); break;
		}
		usleep(100);
	}
}

int main(void) { on_every_line(run); }
