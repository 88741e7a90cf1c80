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
// A separate function, so that the object holds its code once.
#define OWN static __attribute__((noinline))
// A loop that is not unrolled.
#define LOOP _Pragma("clang loop unroll(disable)")
#define CORE __attribute__((preserve_access_index))

// A map's attributes are written as types of pointers, which is what the loader reads.
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

#ifdef __TARGET_ARCH_arm64
struct thread_user {
	u64 tp_value;
} CORE;

struct thread_struct {
	struct thread_user uw;
} CORE;

#define THREAD_POINTER(task) ((task)->thread.uw.tp_value)
#else
struct thread_struct {
	u64 fsbase;
} CORE;

#define THREAD_POINTER(task) ((task)->thread.fsbase)
#endif

struct task_struct {
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct thread_struct thread;
	u64 sas_ss_sp, sas_ss_size; // the stack for signals
} CORE;

// The registers that a system call leaves as the program had set them, its
// arguments among them. The layout is part of the kernel's interface.
//
// SYSCALL1 is the first argument of a system call and ARG1 that of a function, of
// which the others are the same. CALLER is where the small functions that make system
// calls return to, and RETURNED by how much a function's return has moved the stack
// pointer up since it began; NOT_RETURNED reports whether a call is inside another.
// KEPT are the registers of a sample: the frame pointer, and five that unwinding needs
// on the machine.
#ifdef __TARGET_ARCH_arm64
struct pt_regs {
	u64 regs[31], sp, pc, pstate, orig_x0;
};

#define IP(r) ((r)->pc)
#define SYSCALL1(r) ((r)->orig_x0)
#define SYSCALL4(r) ((r)->regs[3])
#define ARG1(r) ((r)->regs[0])
#define ARG2(r) ((r)->regs[1])
#define ARG3(r) ((r)->regs[2])
#define ARG4(r) ((r)->regs[3])
#define ARG5(r) ((r)->regs[4])
#define RESULT(r) ((r)->regs[0])
#define CALLER(to, r) (*(to) = (r)->regs[30])
#define RETURNED 0
#define NOT_RETURNED(r, begun) ((r)->sp < (begun))
#define KEPT_BP(r) ((r)->regs[29])
#define KEPT_BX(r) ((r)->regs[30])
#define KEPT_R12(r) ((r)->regs[19])
#define KEPT_R13(r) ((r)->regs[20])
#define KEPT_R14(r) ((r)->regs[21])
#define KEPT_R15(r) ((r)->regs[22])
// The size of a page depends on how the kernel was built: user space sets it.
const volatile u64 strand_page = 4096;
#define WHOLE_PAGE strand_page
#else
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx;
	u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

#define IP(r) ((r)->ip)
#define SYSCALL1(r) ((r)->di)
#define SYSCALL4(r) ((r)->r10)
#define ARG1(r) ((r)->di)
#define ARG2(r) ((r)->si)
#define ARG3(r) ((r)->dx)
#define ARG4(r) ((r)->cx)
#define ARG5(r) ((r)->r8)
#define RESULT(r) ((r)->ax)
#define CALLER(to, r) read_user(to, 8, (void *)(r)->sp)
#define RETURNED 8
#define NOT_RETURNED(r, begun) ((r)->sp <= (begun))
#define KEPT_BP(r) ((r)->bp)
#define KEPT_BX(r) ((r)->bx)
#define KEPT_R12(r) ((r)->r12)
#define KEPT_R13(r) ((r)->r13)
#define KEPT_R14(r) ((r)->r14)
#define KEPT_R15(r) ((r)->r15)
#define WHOLE_PAGE PAGE
#endif

// What the tracepoints pass to the programs.
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
