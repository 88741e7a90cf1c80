// A library that is loaded while the program runs.
#ifndef NAME
#define NAME plugged
#endif
__attribute__((noinline)) static int inner(int (*map)(int), int i) { return map(i) + 1; }
int NAME(int (*map)(int), int i) { return inner(map, i) + 1; }
