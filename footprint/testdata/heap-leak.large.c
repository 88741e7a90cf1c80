// Blocks so large that malloc maps each for itself.
#include "common.h"
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		char *kept = malloc(400 << 10);
		memset(kept, 7, 400 << 10);
	}
	end();
}
