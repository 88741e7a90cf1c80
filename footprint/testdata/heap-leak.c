// Small blocks of malloc, a chain of them, that nobody frees.
#include "common.h"
struct node { struct node *next; char data[200]; };
int main(void) {
	struct node *list = 0;
	begin();
	for (int i = 0; i < STEPS; i++, step())
		for (int j = 0; j < 2000; j++) {
			struct node *n = malloc(sizeof *n);
			memset(n, 7, sizeof *n);
			n->next = list;
			list = n;
			free(malloc(600));
		}
	end();
}
