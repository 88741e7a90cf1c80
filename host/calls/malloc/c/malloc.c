/*
 * Samples the calls of malloc in a process that was started with the library in LD_PRELOAD.
 * On average every so many bytes, a call waits until whoever samples has read its stack. The
 * allocation is noted until it is freed. As long as nothing is sampled, each function only
 * calls the one that it stands before.
 *
 * The library takes no memory, calls no function that might, and is linked with nothing, so
 * that it works with any C library.
 */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define API __attribute__((visibility("default")))
#define WEAK __attribute__((weak))
#define LOCAL static __thread __attribute__((tls_model("initial-exec")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

static long call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined __x86_64__
	long out;
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(out) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return out;
#elif defined __aarch64__
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#endif
}

/* The functions that ours stand before. A program that loads no libdl has no dlsym in old
 * versions of the C library, whose own names are taken then. */
extern WEAK void *dlsym(void *, const char *);
extern WEAK void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern WEAK void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t), __libc_free(void *);
extern WEAK unsigned long pthread_self(void);
struct account { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };
extern WEAK struct account mallinfo2(void);
extern WEAK char **environ;

static struct {
	void *(*malloc)(size_t), *(*calloc)(size_t, size_t), *(*realloc)(void *, size_t), *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t), *(*valloc)(size_t), *(*pvalloc)(size_t), (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
} next;

static uint64_t none[8]; /* the beginning of one in which nothing is sampled */
static struct shared *shared = (struct shared *)none;
static uint64_t born;
static uint32_t late; /* how many calls in a row were not answered in time */

LOCAL bool finding; /* the next functions */
LOCAL uint64_t interval, chance;
LOCAL int64_t left; /* bytes until the next sample */

/* What is allocated while the next functions are being found, which some versions of dlsym
 * do. It is never returned. */
static char early[16 << 10] __attribute__((aligned(16)));
static size_t early_used;

static bool is_early(const void *at) { return (const char *)at >= early && (const char *)at < early + sizeof early; }

static void *allocate_early(size_t n)
{
	size_t at = __atomic_fetch_add(&early_used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
	if (n > sizeof early || at > sizeof early - n - 16)
		return NULL;
	*(size_t *)(early + at) = n;
	return early + at + 16;
}

static __attribute__((noinline)) bool find(void)
{
	if (finding)
		return false;
	finding = true;
	struct { void *to; const char *name; void *other; } functions[] = {
		{&next.malloc, "malloc", __libc_malloc}, {&next.calloc, "calloc", __libc_calloc}, {&next.realloc, "realloc", __libc_realloc},
		{&next.memalign, "memalign", __libc_memalign}, {&next.aligned_alloc, "aligned_alloc", __libc_memalign},
		{&next.valloc, "valloc", __libc_valloc}, {&next.pvalloc, "pvalloc", __libc_pvalloc},
		{&next.posix_memalign, "posix_memalign", NULL}, {&next.free, "free", __libc_free},
	};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *at = dlsym ? dlsym((void *)-1L, functions[i].name) : NULL; /* RTLD_NEXT */
		if (!at)
			at = functions[i].other;
		__atomic_store_n((void **)functions[i].to, at, __ATOMIC_RELEASE);
	}
	finding = false;
	return true;
}

/* KNOWN reports whether a function that ours stands before is known. */
#define KNOWN(name) (LIKELY(LOAD(next.name)) || (find() && next.name))

static bool is_prefix(const char *prefix, const char *text)
{
	while (*prefix)
		if (*prefix++ != *text++)
			return false;
	return true;
}

/* now is the monotonic time in ns. */
static uint64_t now(void)
{
	struct timespec t;
	call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* join maps the memory of whoever samples, which the environment names: a path, a space and
 * a number that tells that it is the right one. */
static __attribute__((constructor)) void join(void)
{
	static const char name[] = "STRANDLINE_MALLOC=";
	static char path[64];
	uint64_t token = 0;
	size_t n = 0;
	char **e = &environ ? environ : NULL;
	while (e && *e && !is_prefix(name, *e))
		e++;
	if (!e || !*e)
		return;
	const char *at = *e + sizeof name - 1;
	for (; *at && *at != ' ' && n < sizeof path - 1; at++)
		path[n++] = *at;
	if (*at != ' ')
		return;
	for (at++; *at >= '0' && *at <= '9'; at++)
		token = token * 10 + (uint64_t)(*at - '0');
	long fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC | O_NOCTTY, 0, 0, 0);
	if (fd < 0)
		return;
	/* Memory beyond the end of a smaller file cannot be read. */
	long size = call(SYS_lseek, fd, 0, 2, 0, 0, 0);
	long map = size == sizeof(struct shared) ? call(SYS_mmap, 0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : -1;
	call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (map < 0 && map > -4096)
		return;
	if (((struct shared *)map)->token != token) {
		call(SYS_munmap, map, sizeof(struct shared), 0, 0, 0, 0);
		return;
	}
	born = now();
	__atomic_store_n(&shared, (struct shared *)map, __ATOMIC_RELEASE);
}

/* draw returns how many bytes there are until the next sample: each byte is sampled with the
 * same chance, so that a small allocation is as likely to be sampled as its part of the bytes. */
static int64_t draw(uint64_t mean)
{
	if (!chance)
		chance = (uint64_t)(uintptr_t)&chance * 0x9e3779b97f4a7c15 ^ born;
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	uint64_t random = chance * 0x2545f4914f6cdd1d | 1;
	int zeros = __builtin_clzll(random);
	double m = (double)(random << zeros << 1) * 0x1p-64;       /* random is (1+m) * 2^(63-zeros) */
	double log2 = zeros + 1 - (m + m * (1 - m) * 0.34375);      /* of 2^64 / random, within 0.01 */
	return (int64_t)(log2 * 0.6931471805599453 * (double)mean) + 1;
}

static bool due(size_t n, uint64_t mean)
{
	if (mean != interval) {
		interval = mean;
		left = draw(mean);
	}
	left -= n > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)n;
	if (left > 0)
		return false;
	left = draw(mean);
	return true;
}

/* How many addresses of a kind are in the table, so that it is not read whenever something is
 * freed. A number that was ever too large stays so. */
static uint8_t noted[1 << 16];

static uint64_t hash(uint64_t at) { return (at >> 4) * 0x9e3779b97f4a7c15; }

static void note(uint64_t at, int n)
{
	uint8_t *number = &noted[hash(at) >> 48], was = LOAD(*number);
	while (was != UINT8_MAX && !__atomic_compare_exchange_n(number, &was, (uint8_t)(was + n), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static bool is_noted(uint64_t at) { return LOAD(noted[hash(at) >> 48]); }

static uint64_t *places(struct shared *s, uint64_t at) { return &s->addresses[hash(at) >> 40 & (ENTRIES - 1) & ~(WAYS - 1)]; }

static void forget(struct shared *s, uint64_t at)
{
	uint64_t *place = places(s, at);
	uint32_t pid = 0;
	for (int i = 0; i < WAYS; i++) {
		struct entry *e = &s->entries[place + i - s->addresses];
		if (LOAD(place[i]) != at)
			continue;
		if (!pid)
			pid = (uint32_t)call(SYS_getpid, 0, 0, 0, 0, 0, 0);
		if (e->pid == pid && e->born == born) {
			__atomic_store_n(&place[i], 0, __ATOMIC_RELEASE);
			return;
		}
	}
}

static void wait_for(uint32_t *futex, uint32_t value, long ns)
{
	struct timespec most = {0, ns};
	call(SYS_futex, (long)futex, FUTEX_WAIT, value, (long)&most, 0, 0);
}

/* in_use returns how many bytes malloc has in use by its own account, of a moment ago. It walks all
 * that is free, so it is asked seldom. */
static uint64_t in_use(uint64_t at)
{
	enum { PAUSE = 250000000 /* ns */, SHARE = 100 };
	static uint64_t bytes, again;
	uint64_t due = LOAD(again);
	if (!mallinfo2 || next.malloc != __libc_malloc)
		return 0;
	if (at >= due && __atomic_compare_exchange_n(&again, &due, UINT64_MAX, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		struct account a = mallinfo2();
		__atomic_store_n(&bytes, a.uordblks + a.hblkhd, __ATOMIC_RELAXED);
		__atomic_store_n(&again, at + PAUSE + SHARE * (now() - at), __ATOMIC_RELAXED);
	}
	return LOAD(bytes);
}

/* ask has the stack of this thread read, and reports whether it was. The more calls were not
 * answered, the fewer ask: whoever samples may have ended. */
static bool ask(struct shared *s, uint32_t pid, uint32_t entry, const uint64_t *frame, uint64_t sp)
{
	enum { PATIENCE = 50000000, LONGEST = 200000000 /* ns */, MOST = 16 };
	static uint32_t from;
	struct request *r = NULL;
	uint32_t first = __atomic_fetch_add(&from, 1, __ATOMIC_RELAXED), state = FREE;
	for (uint32_t i = 0; i < REQUESTS && !r; i++) {
		state = FREE;
		if (__atomic_compare_exchange_n(&s->requests[(first + i) % REQUESTS].state, &state, FILLING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			r = &s->requests[(first + i) % REQUESTS];
	}
	if (!r)
		return false;
	r->pid = pid;
	r->tid = (uint32_t)call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	r->entry = entry;
	r->born = born;
	r->self = (uint64_t)(uintptr_t)r;
	r->pthread = pthread_self ? pthread_self() : 0;
	r->in_use = in_use(now());
	r->bp = frame[0];
	r->ip = frame[1];
	r->sp = sp;
	__atomic_store_n(&r->state, WAITING, __ATOMIC_RELEASE);
	__atomic_add_fetch(&s->asked, 1, __ATOMIC_RELEASE);
	call(SYS_futex, (long)&s->asked, FUTEX_WAKE, 1, 0, 0, 0);
	for (uint64_t began = now();;) { /* by the clock, as signals end a wait */
		state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
		if (state == ANSWERED)
			break;
		wait_for(&r->state, state, PATIENCE);
		if (now() - began < (state == WAITING ? PATIENCE : LONGEST))
			continue;
		if (__atomic_compare_exchange_n(&r->state, &state, state == WAITING ? FREE : LEFT, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			uint32_t n = __atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
			left <<= n < MOST ? n : MOST;
			return false;
		}
	}
	__atomic_store_n(&late, 0, __ATOMIC_RELAXED);
	bool read = r->entry == entry; /* otherwise it could not be */
	__atomic_compare_exchange_n(&r->state, &state, FREE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return read;
}

/* sample notes an allocation, and has its stack read. */
static __attribute__((noinline)) void sample(void *p, size_t n, uint64_t mean, const uint64_t *frame, uint64_t sp)
{
	struct shared *s = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
	uint64_t at = (uint64_t)(uintptr_t)p, *place = places(s, at);
	uint32_t pid = (uint32_t)call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	for (int i = 0; i < WAYS; i++) {
		uint64_t empty = 0;
		if (!__atomic_compare_exchange_n(&place[i], &empty, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		uint32_t entry = (uint32_t)(place + i - s->addresses);
		s->entries[entry] = (struct entry){.bytes = n, .interval = mean, .born = born, .pid = pid};
		note(at, 1);
		__atomic_store_n(&place[i], at, __ATOMIC_RELEASE);
		if (!ask(s, pid, entry, frame, sp)) {
			__atomic_store_n(&place[i], 0, __ATOMIC_RELEASE);
			note(at, -1);
			__atomic_add_fetch(&s->dropped, 1, __ATOMIC_RELAXED);
		}
		return;
	}
	__atomic_add_fetch(&s->dropped, 1, __ATOMIC_RELAXED);
}

/* other_memalign is posix_memalign where the C library's own is not found. */
static int other_memalign(void **out, size_t align, size_t n)
{
	if (!align || align % sizeof(void *) || (align & (align - 1)))
		return EINVAL;
	void *p = KNOWN(memalign) ? next.memalign(align, n) : NULL;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

/* ALLOCATED returns what is allocated, and samples it where that is due. Other calls end in
 * the function that ours stands before, so that ours is in no stack of theirs. */
#define ALLOCATED(allocated, n) do { \
		uint64_t mean = LOAD(shared->interval); \
		if (LIKELY(!mean || !due(n, mean))) \
			return allocated; \
		void *at = allocated; \
		if (at) \
			sample(at, n, mean, __builtin_frame_address(0), (uint64_t)(uintptr_t)__builtin_dwarf_cfa()); \
		return at; \
	} while (0)

API void *malloc(size_t n)
{
	if (!KNOWN(malloc))
		return allocate_early(n);
	ALLOCATED(next.malloc(n), n);
}

API void *calloc(size_t n, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(n, size, &all))
		all = SIZE_MAX;
	if (!KNOWN(calloc))
		return allocate_early(all);
	ALLOCATED(next.calloc(n, size), all);
}

/* freed notes that an allocation ends. */
static inline void freed(void *p)
{
	struct shared *s = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
	if (LOAD(s->began) && is_noted((uint64_t)(uintptr_t)p))
		forget(s, (uint64_t)(uintptr_t)p);
}

API void free(void *p)
{
	if (!p || is_early(p) || !KNOWN(free))
		return;
	freed(p);
	next.free(p);
}

API void free_sized(void *p, size_t n) { (void)n, free(p); }
API void free_aligned_sized(void *p, size_t align, size_t n) { (void)align, (void)n, free(p); }

API void *realloc(void *p, size_t n)
{
	if (is_early(p) || !KNOWN(realloc)) {
		void *new = malloc(n);
		if (new && p) {
			size_t old = ((size_t *)p)[-2];
			for (size_t i = 0; i < old && i < n; i++)
				((char *)new)[i] = ((char *)p)[i];
		}
		return new;
	}
	if (p)
		freed(p);
	ALLOCATED(next.realloc(p, n), n);
}

API int posix_memalign(void **out, size_t align, size_t n)
{
	int (*allocate)(void **, size_t, size_t) = KNOWN(posix_memalign) ? next.posix_memalign : other_memalign;
	uint64_t mean = LOAD(shared->interval);
	if (LIKELY(!mean || !due(n, mean)))
		return allocate(out, align, n);
	int error = allocate(out, align, n);
	if (!error)
		sample(*out, n, mean, __builtin_frame_address(0), (uint64_t)(uintptr_t)__builtin_dwarf_cfa());
	return error;
}

#define ALIGNED(name) \
	API void *name(size_t align, size_t n) \
	{ \
		if (!KNOWN(name)) \
			return NULL; \
		ALLOCATED(next.name(align, n), n); \
	}

ALIGNED(memalign)
ALIGNED(aligned_alloc)

API void *valloc(size_t n)
{
	if (!KNOWN(valloc))
		return NULL;
	ALLOCATED(next.valloc(n), n);
}

API void *pvalloc(size_t n)
{
	if (!KNOWN(pvalloc))
		return NULL;
	ALLOCATED(next.pvalloc(n), n);
}
