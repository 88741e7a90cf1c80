/*
 * Linked in place of the C library, so that the program needs no version of its symbols
 * and starts with any glibc: the linker only looks for names here.
 */
#ifdef DL
void *dlopen(const char *name, int flags) { return 0; }
void *dlsym(void *library, const char *name) { return 0; }
char *dlerror(void) { return 0; }
#else
int __libc_start_main(void) { return 0; }
void _exit(int status) { for (;;); }
long read(int fd, void *to, unsigned long n) { return 0; }
long write(int fd, const void *from, unsigned long n) { return 0; }
int snprintf(char *to, unsigned long n, const char *format, ...) { return 0; }
int vsnprintf(char *to, unsigned long n, const char *format, __builtin_va_list args) { return 0; }
void *memcpy(void *to, const void *from, unsigned long n) { return 0; }
void *memset(void *to, int c, unsigned long n) { return 0; }
char *strcpy(char *to, const char *from) { return 0; }
void abort(void) { for (;;); }
#endif
