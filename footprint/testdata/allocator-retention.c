// Bursts of blocks that are freed again, under another malloc.
#include "common.h"
int main(void) {
	static char *p[20000];
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		for (int j = 0; j < 200 * (i + 1); j++) memset(p[j] = malloc(3000), 7, 3000);
		for (int j = 0; j < 200 * (i + 1); j++) free(p[j]);
	}
	end();
}
