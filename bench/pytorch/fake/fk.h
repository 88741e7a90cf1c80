/* Internal interface of the fake CUDA device, exported by the fake
 * libcuda.so.1 and used by those of libcudart and libnvidia-ml.so.1.
 *
 * The "device" is nothing but an address allocator with a byte budget.  All
 * device addresses are lazily committed host memory, so copies work, but no
 * kernel ever runs. */
#ifndef FK_H
#define FK_H
#include <stddef.h>
#include <stdint.h>

#define FK_MAX_DEVICES 8
#define FK_PAGE ((size_t)2 << 20) /* physical granularity of the fake device */

enum { FK_OK = 0, FK_EINVAL = 1, FK_ENOMEM = 2, FK_ENOTREADY = 600 };

struct fk_deps { /* nodes of a graph */
  void **list;
  size_t n;
};
struct fk_stream {
  int device;
  int priority;
  unsigned flags;
  uint64_t capture; /* id of the capture this stream takes part in, 0: none */
  struct fk_deps deps; /* of its next node */
};

struct fk_event {
  int recorded;
  uint64_t tick; /* value of the work counter when recorded */
  uint64_t done; /* when the device has done what came before it, in ns */
  uint64_t capture;
  struct fk_deps deps;
};

int fk_device_count(void);
int fk_device(void);
int fk_set_device(int dev);
size_t fk_total(int dev);
size_t fk_used(int dev); /* by this process, without the context overhead */
size_t fk_free(int dev);
size_t fk_context(void); /* configured context overhead */
size_t fk_copy_limit(void); /* bytes; larger copies are skipped */
int fk_sm(void);         /* 80, 90, ... */
int fk_sm_count(void);

size_t fk_others(int dev);          /* used by other processes, see shared.c */
void fk_enter(int dev, size_t used); /* tells them what this one uses */

int fk_malloc(int dev, size_t n, void **out);
int fk_release(void *p);
int fk_is_device_ptr(const void *p, int *dev);
int fk_range_mapped(const void *p);

int fk_is_host_ptr(const void *p);

void fk_copy(void *dst, const void *src, size_t n);
void fk_fill(void *dst, int v, size_t n);

/* "Work" is a counter of launched kernels and copies.  An event becomes ready
 * when FAKE_CUDA_EVENT_LAG further units of work were issued after it was
 * recorded, or on any synchronisation.  Each unit takes FAKE_CUDA_KERNEL_NS. */
void fk_work(void);
uint64_t fk_tick(void);
uint64_t fk_done(void);
void fk_sync(void);
int fk_event_ready(struct fk_event *e);

void fk_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
