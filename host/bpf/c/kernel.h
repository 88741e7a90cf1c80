// What the programs use of the kernel, so that building them needs a compiler
// and no headers. Structures marked CORE hold only the fields that are read;
// the loader puts in the running kernel's offsets.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
// A function of its own, so that the object holds its code once.
#define OWN static __attribute__((noinline))
// A loop that stays one.
#define LOOP _Pragma("clang loop unroll(disable)")
#define CORE __attribute__((preserve_access_index))

// A map's attributes are written as pointers' types, as the loader reads them.
#define UINT(name, n) int(*name)[n]
#define TYPE(name, t) typeof(t) *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PROG_ARRAY 3
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27

#define BPF_NOEXIST 1
#define BPF_F_MMAPABLE (1 << 10)
#define BPF_RB_NO_WAKEUP 1

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*ktime)(void) = (void *)5;
static long (*tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static u64 (*current_pid_tgid)(void) = (void *)14;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *data, u64 flags) = (void *)132;
static struct task_struct *(*current_task)(void) = (void *)158;
static long (*task_pt_regs)(struct task_struct *task) = (void *)175;

struct upid {
	int nr;
	void *ns;
};

struct pid {
	u32 level;
	struct upid numbers[1];
} CORE;

struct atomic_int {
	int counter;
};

struct signal_struct {
	struct atomic_int live;
} CORE;

struct thread_struct {
	u64 fsbase;
} CORE;

struct task_struct {
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
	u64 sas_ss_sp, sas_ss_size; // the stack for signals
} CORE;

// The registers that a system call leaves as the program had set them, its
// arguments among them. The layout is part of the kernel's interface on x86-64.
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx;
	u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

// What the tracepoints hand over.
struct on_enter {
	u64 common;
	s64 nr;
	u64 args[2];
};

struct on_exit {
	u64 common;
	s64 nr;
	s64 ret;
};

struct on_newtask {
	struct task_struct *task;
	u64 clone_flags;
};
