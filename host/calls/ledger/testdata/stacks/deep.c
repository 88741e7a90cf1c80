// Stacks that are larger than what is copied at first.
#include "maps.h"

static NOINLINE int wide(int n, int i)
{
	volatile char b[700];
	b[n] = i;
	return (n ? wide(n - 1, i) : map_here(i)) + b[n];
}

static void run(void)
{
	while (calls < 5 * SIZES) {
		int i = next_call();
		wide(i % 70, i);
		usleep(300);
	}
}

int main(void) { on_every_line(run); }
