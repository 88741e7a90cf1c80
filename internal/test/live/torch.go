package live

import (
	"path/filepath"
	"testing"
)

// caching is an allocator for tests that is built as PyTorch's: it exports the same
// variable, its virtual functions are in the same order, and blocks, pools and
// tables have the same fields. It gives the first block that is large enough.
const caching = `
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>
typedef unsigned long long u64;
extern "C" int cuMemAlloc_v2(u64 *, size_t);
extern "C" int cuMemFree_v2(u64);
#define APART __attribute__((noinline))
#define EXPORT __attribute__((visibility("default")))
struct Block;
typedef bool (*Less)(const Block *, const Block *);
struct Pool {
  std::set<Block *, Less> blocks, unmapped;
  const bool small;
  void *owner = nullptr;
  long calls = 0;
  Pool(Less l, bool small) : blocks(l), unmapped(l), small(small) {}
};
struct Block {
  signed char device;
  void *stream;
  u64 uses[4];
  size_t size, requested;
  Pool *pool;
  void *ptr;
  bool allocated, mapped;
  Block *prev, *next;
  int events;
  long gc;
};
static bool less(const Block *a, const Block *b) {
  if (a->stream != b->stream) return a->stream < b->stream;
  if (a->size != b->size) return a->size < b->size;
  return a->ptr < b->ptr;
}
struct Table {
  struct Entry { signed char distance = -1; void *key; Block *value; } *entries;
  size_t last = 8191;
  signed char shift = 51, reach = 60;
  float full = 0.5f;
  size_t n = 0;
  Table() : entries(new Entry[8192 + 60]) { entries[8192 + 59].distance = 0; entries[8192 + 59].value = (Block *)8; }
  size_t place(void *p) { return (u64)p * 11400714819323198485ull >> shift; }
  void put(void *p, Block *b) {
    for (signed char d = 0; d < reach - 1; d++) {
      Entry &e = entries[place(p) + d];
      if (e.distance < 0) { e.distance = d; e.key = p; e.value = b; n++; return; }
    }
    abort();
  }
  Block *take(void *p) {
    for (signed char d = 0; d < reach - 1; d++) {
      Entry &e = entries[place(p) + d];
      if (e.distance >= 0 && e.key == p) { e.distance = -1; n--; return e.value; }
    }
    return nullptr;
  }
};
struct Stat {
  long current = 0, peak = 0, allocated = 0, freed = 0;
  void add(long n) {
    current += n;
    if (current > peak) peak = current;
    (n > 0 ? allocated : freed) += n > 0 ? n : -n;
  }
};
struct Array {
  Stat all, small, large;
  void add(bool s, long n) { all.add(n); (s ? small : large).add(n); }
};
struct Stats {
  Array allocation, segment, active, inactive_split, allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  long retries = 0;
  void use(Block *b, int n) {
    bool s = b->pool->small;
    allocation.add(s, n);
    active.add(s, n);
    allocated_bytes.add(s, n * (long)b->size);
    active_bytes.add(s, n * (long)b->size);
    requested_bytes.add(s, n * (long)b->requested);
  }
};
struct Device {
  std::recursive_mutex mutex;
  Stats stats;
  Pool large{less, false}, small{less, true};
  APART Block *get(int device, size_t n, void *stream) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    size_t size = (n + 511) & ~511ull;
    Pool &pool = size <= 1 << 20 ? small : large;
    Block *b = nullptr;
    for (Block *x : pool.blocks)
      if (x->stream == stream && x->size >= size) { b = x; break; }
    if (b) {
      pool.blocks.erase(b);
    } else {
      size_t whole = pool.small ? 2 << 20 : (size + 0x1fffff) & ~0x1fffffull;
      u64 at;
      if (cuMemAlloc_v2(&at, whole)) throw std::runtime_error("out of memory");
      stats.segment.add(pool.small, 1);
      stats.reserved_bytes.add(pool.small, whole);
      b = new Block{(signed char)device, stream, {}, whole, 0, &pool, (void *)at, false, true, nullptr, nullptr, 0, 0};
    }
    if (b->size - size >= (pool.small ? 512 : 1 << 20)) {
      Block *rest = new Block(*b);
      rest->ptr = (char *)b->ptr + size;
      rest->size -= size;
      rest->prev = b;
      if (rest->next) rest->next->prev = rest;
      b->next = rest;
      b->size = size;
      pool.blocks.insert(rest);
    }
    b->allocated = true;
    b->requested = n;
    stats.use(b, 1);
    return b;
  }
  void join(Block *b, Block *gone) {
    b->pool->blocks.erase(gone);
    b->size += gone->size;
    if (b->prev == gone) { b->ptr = gone->ptr; b->prev = gone->prev; if (b->prev) b->prev->next = b; }
    else { b->next = gone->next; if (b->next) b->next->prev = b; }
    delete gone;
  }
  APART void put(Block *b) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    b->allocated = false;
    stats.use(b, -1);
    if (b->prev && !b->prev->allocated) join(b, b->prev);
    if (b->next && !b->next->allocated) join(b, b->next);
    b->pool->blocks.insert(b);
  }
  void empty() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    for (Pool *p : {&large, &small})
      for (auto it = p->blocks.begin(); it != p->blocks.end();) {
        Block *b = *it;
        if (b->prev || b->next) { ++it; continue; }
        cuMemFree_v2((u64)b->ptr);
        stats.segment.add(p->small, -1);
        stats.reserved_bytes.add(p->small, -(long)b->size);
        it = p->blocks.erase(it);
        delete b;
      }
  }
};
struct DataPtr {
  void *data;
  void (*deleter)(void *);
  void *context;
  signed char type, index;
  ~DataPtr() { asm volatile(""); }
};
static void *stream;
static bool uncached;
static volatile signed char device;
static APART void *current() { asm volatile(""); return stream; }
static APART void no_delete(void *p) { asm volatile("" ::"r"(p)); }
struct Any {
  virtual ~Any() {}
  virtual DataPtr allocate(size_t n) = 0;
  virtual bool is_simple_data_ptr(const DataPtr &) const { return false; }
  virtual void (*raw_deleter() const)(void *) { return nullptr; }
  virtual void copy_data(void *, const void *, size_t) const = 0;
};
namespace c10 { namespace cuda { namespace CUDACachingAllocator {
struct CUDAAllocator : Any {
  virtual void *raw_alloc(size_t) = 0;
  virtual void *raw_alloc_with_stream(size_t, void *) = 0;
  virtual void raw_delete(void *) = 0;
  virtual void init(int) = 0;
  virtual bool initialized() = 0;
  virtual void emptyCache() = 0;
};
EXPORT std::atomic<CUDAAllocator *> allocator;
void local_raw_delete(void *p);
namespace SPACE {
struct NativeCachingAllocator final : CUDAAllocator {
  std::mutex mutex;
  Table blocks;
  std::vector<Device *> devices;
  APART void malloc(void **p, signed char device, size_t n, void *stream) {
    Block *b = devices.at(device)->get(device, n, stream);
    std::lock_guard<std::mutex> lock(mutex);
    blocks.put(b->ptr, b);
    *p = b->ptr;
  }
  APART void free(void *p) {
    if (!p) return;
    mutex.lock();
    Block *b = blocks.take(p);
    mutex.unlock();
    if (b) devices.at(b->device)->put(b);
  }
  DataPtr allocate(size_t n) override {
    void *p = nullptr;
    void (*deleter)(void *) = &local_raw_delete;
    if (uncached) { deleter = &no_delete; p = ::malloc(n); }
    else if (n) malloc(&p, device, n, current());
    return DataPtr{p, deleter, p, 1, 0};
  }
  void (*raw_deleter() const override)(void *) { return uncached ? &no_delete : &local_raw_delete; }
  void copy_data(void *, const void *, size_t) const override {}
  void *raw_alloc(size_t n) override {
    if (!n) return nullptr;
    void *p = nullptr;
    malloc(&p, device, n, current());
    return p;
  }
  void *raw_alloc_with_stream(size_t n, void *s) override {
    if (!n) return nullptr;
    void *p = nullptr;
    malloc(&p, device, n, s);
    return p;
  }
  void raw_delete(void *p) override { free(p); }
  void init(int n) override { while ((int)devices.size() < n) devices.push_back(new Device); }
  bool initialized() override { return !devices.empty(); }
  void emptyCache() override { for (Device *d : devices) d->empty(); }
};
}
static SPACE::NativeCachingAllocator here;
APART void local_raw_delete(void *p) { here.free(p); }
struct Begin { Begin() { allocator = &here; here.init(1); } } begun;
static CUDAAllocator *get() { return allocator; }
extern "C" {
EXPORT void *request(size_t n) {
  try { return get()->allocate(n).data; } catch (const std::exception &) { return nullptr; }
}
EXPORT void *request_here(size_t n) { void *p = nullptr; here.malloc(&p, device, n, current()); return p; }
EXPORT void *request_on(size_t n, void *s) { return get()->raw_alloc_with_stream(n, s); }
EXPORT void release(void *p) { get()->raw_deleter()(p); }
EXPORT void release_raw(void *p) { get()->raw_delete(p); }
EXPORT size_t reserved() { return here.devices.at(0)->stats.reserved_bytes.all.current; }
EXPORT size_t allocated() { return here.devices.at(0)->stats.allocated_bytes.all.current; }
EXPORT void empty() { get()->emptyCache(); }
EXPORT void storm(size_t times) { for (size_t i = 0; i < times; i++) release(request(1024)); }
}
}}}
`

// Caching builds a stand-in for PyTorch's library of the caching allocator, of which
// the allocator's class is the one of that name space, which is Native in PyTorch,
// and returns where it is. A program calls request(size), release(address) and the
// other functions at its end; reserved() and allocated() are its counters.
func Caching(t testing.TB, space string) string {
	t.Helper()
	driver := Libcuda(t)
	Tool(t, "g++")
	dir := t.TempDir()
	out := filepath.Join(dir, "libc10_cuda.so")
	compile(t, "g++", dir, "caching.cc", caching, "-std=c++17", "-fvisibility=hidden", "-fno-devirtualize", "-shared", "-fPIC", "-DSPACE="+space, "-o", out, driver, "-Wl,-rpath,"+filepath.Dir(driver))
	return out
}
