/* The part of the driver API that takes no memory: what a device is, and functions of
 * modules, which do nothing. */
#include "fk.h"

#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
typedef unsigned long long CUdeviceptr;
typedef int CUresult;

/* Attribute numbers are shared with cudaDeviceGetAttribute. */
EXPORT CUresult cuDeviceGetAttribute(int *v, int attr, int dev) {
  if (dev < 0 || dev >= fk_device_count()) return FK_EINVAL;
  switch (attr) {
    case 1: *v = 1024; break;                     /* threads per block */
    case 2: case 3: *v = 1024; break;             /* block x, y */
    case 4: *v = 64; break;                       /* block z */
    case 5: *v = 2147483647; break;               /* grid x */
    case 6: case 7: *v = 65535; break;            /* grid y, z */
    case 8: *v = 49152; break;                    /* shared memory per block */
    case 9: *v = 65536; break;                    /* constant memory */
    case 10: *v = 32; break;                      /* warp size */
    case 12: *v = 65536; break;                   /* registers per block */
    case 13: *v = 1410000; break;                 /* clock, kHz */
    case 14: *v = 512; break;                     /* texture alignment */
    case 15: *v = 1; break;                       /* copy overlap */
    case 16: *v = fk_sm_count(); break;                 /* multiprocessors */
    case 19: *v = 1; break;                       /* maps host memory */
    case 31: *v = 1; break;                       /* concurrent kernels */
    case 33: *v = 1 + dev; break;                 /* PCI bus */
    case 38: *v = 50 << 20; break;                /* L2 size */
    case 39: *v = 2048; break;                    /* threads per SM */
    case 40: *v = 3; break;                       /* async engines */
    case 41: *v = 1; break;                       /* unified addressing */
    case 75: *v = fk_sm() / 10; break;
    case 76: *v = fk_sm() % 10; break;
    case 78: *v = 1; break;                       /* stream priorities */
    case 81: *v = 233472; break;                  /* shared memory per SM */
    case 82: *v = 65536; break;                   /* registers per SM */
    case 83: *v = 1; break;                       /* managed memory */
    case 95: *v = 1; break;                       /* cooperative launch */
    case 97: *v = 232448; break;                  /* shared opt-in */
    case 102: *v = 1; break;                      /* VMM supported */
    case 103: *v = 1; break;                      /* POSIX fd handles */
    case 106: *v = 32; break;                     /* blocks per SM */
    case 115: *v = 1; break;                      /* memory pools */
    default: *v = 0;
  }
  return 0;
}

EXPORT CUresult cuInit(unsigned f) { (void)f; return 0; }
EXPORT CUresult cuDriverGetVersion(int *v) { *v = CUDA * 1000 + 80 * (CUDA == 12); return 0; }
EXPORT CUresult cuDeviceGetCount(int *n) { *n = fk_device_count(); return 0; }
EXPORT CUresult cuDeviceGet(int *d, int ord) { *d = ord; return 0; }
EXPORT CUresult cuDeviceGetName(char *s, int len, int d) {
  (void)d;
  snprintf(s, (size_t)len, "Fake CUDA device");
  return 0;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t *n, int d) {
  *n = fk_total(d);
  return 0;
}
EXPORT CUresult cuGetErrorString(CUresult e, const char **s) {
  *s = e == 0 ? "no error" : e == 2 ? "out of memory" : "fake cuda error";
  return 0;
}
EXPORT CUresult cuGetErrorName(CUresult e, const char **s) {
  *s = e == 0 ? "CUDA_SUCCESS"
       : e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, void *s) {
  (void)s;
  if (n * 4 <= fk_copy_limit())
    for (size_t i = 0; i < n; i++) ((unsigned *)(uintptr_t)p)[i] = v;
  return 0;
}
static char module_object;
EXPORT CUresult cuModuleLoadData(void **m, const void *img) {
  (void)img;
  *m = &module_object;
  return 0;
}
EXPORT CUresult cuModuleLoadDataEx(void **m, const void *img, unsigned n,
                                   void *o, void *v) {
  (void)n; (void)o; (void)v;
  return cuModuleLoadData(m, img);
}
EXPORT CUresult cuModuleGetFunction(void **f, void *m, const char *name) {
  (void)name;
  *f = m;
  return 0;
}
EXPORT CUresult cuFuncGetAttribute(int *v, int a, void *f) {
  (void)f;
  *v = a == 0 ? 1024 : a == 4 ? 32 : 0;
  return 0;
}
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f,
                                                            int bs, size_t sh) {
  (void)f; (void)bs; (void)sh;
  *n = 2;
  return 0;
}
EXPORT CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz,
                               unsigned bx, unsigned by, unsigned bz,
                               unsigned sh, void *s, void **a, void **e) {
  (void)f; (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz;
  (void)sh; (void)s; (void)a; (void)e;
  fk_work();
  return 0;
}

/* Not supported: answered with CUDA_ERROR_NOT_SUPPORTED. */
#define UNSUPPORTED(name) EXPORT CUresult name(void) { return 801; }
UNSUPPORTED(cuMulticastAddDevice)
UNSUPPORTED(cuMulticastBindMem)
UNSUPPORTED(cuMulticastCreate)
UNSUPPORTED(cuStreamWriteValue32)
