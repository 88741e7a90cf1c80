// Small blocks of malloc that a list keeps.
#include "pace.h"
struct node { struct node *next; char data[200]; } *kept;
NOINLINE void keep_node(void) {
  struct node *n = malloc(sizeof *n);
  memset(n->data, 1, sizeof n->data);
  n->next = kept;
  kept = n;
}
int main(void) {
  begin();
  for (;;) {
    for (int i = 0; i < 1000; i++) keep_node();
    pace(1000 * sizeof *kept);
  }
}
