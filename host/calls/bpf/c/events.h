// What the programs share: the forms of events and samples, the maps, which processes
// are watched, and how an event is sent.
#pragma once
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum op {
	MAP = 1,
	UNMAP,
	REMAP,
	BRK,
	PROTECT,
	ADVISE,
	ATTACH,
	DETACH,
	MEMFD,
	TRUNCATE,
	FORK,
	EXEC,
	EXIT,
};

// Where a call was made: the instruction, and the word on top of the stack,
// which is the return address of the small functions that make system calls.
struct place {
	u64 ip, caller;
};

struct event {
	u64 time;
	u32 pid, tid;
	u32 op, sampled;
	u64 addr, len;
	u64 old, old_len;
	union {
		u32 prot;
		u32 took; // of mremap, in ns
	};
	u32 flags;
	s32 fd;
	u32 class;
	struct place place;
};

// A mapping that waits, 64 bytes.
struct pending_map {
	u64 key; // FREE, TAKEN while it is read or written, or the key of the mapping
	u64 time, len;
	struct place place;
	u32 tid, epoch;
	u32 prot, flags;
	s32 fd;
	u16 class, sampled;
};

#define PENDING_BITS 14
#define FREE 0
#define TAKEN 1

// One watched process. Owner is the process whose memory it uses: after vfork its
// parent. Epoch counts the calls that may have put something inside older mappings.
struct watched_process {
	u32 owner, epoch, large_stacks, pad;
};

// Calls of one kind and size from one place.
struct site_key {
	struct place place;
	u32 pid;
	u16 op, class;
};

struct site {
	u64 next;     // when its stack may be copied again
	u64 interval; // ns between copies
};

// Where CPython keeps its frames: offsets in bytes, NONE where there is no such
// field.
#define NONE 0xffffffff

struct python {
	u64 runtime;  // address of _PyRuntime
	u64 code_tag; // bits of a code pointer that are not part of the address
	u32 interpreters, threads;
	u32 thread_next, thread_id, native_id;
	u32 frame, cframe_current;
	u32 code, previous, instruction, owner;
	u32 instruction_size;
	u32 code_file, code_name; // in a code object
};

struct python_frame {
	u64 frame, code, instruction;
	u32 owner, mark; // mark differs if other code has come to lie in its place
};

#define PYTHON_FRAMES 128
#define PAGE 4096
#define SMALL_PAGES 5
#define LARGE_PAGES 17

// A copied stack starts at the page in which the stack pointer lies. If that is a
// separate stack on which a signal is handled, own_bytes of the copy are of it; the
// others begin at the page of the stack that was interrupted.
struct sample {
	u64 time;
	u32 pid, tid;
	u32 op, stack_bytes;
	u64 addr, len;
	u64 ip, sp, bp, bx, r12, r13, r14, r15;
	u32 python_frames, python_state;
	u64 interrupted, own_bytes;
	struct python_frame python[PYTHON_FRAMES];
};

struct small_sample {
	struct sample head;
	u8 stack[SMALL_PAGES * PAGE];
};

struct large_sample {
	struct sample head;
	u8 stack[LARGE_PAGES * PAGE];
};

// A call whose stack is copied next.
struct sampled_call {
	struct event call;
	u64 large_stacks;
};

enum count { LOST_EVENTS, LOST_SAMPLES, PAIRED, PAIRED_BYTES, UNWATCHED, COUNTS };

// The pid namespace whose numbers identify processes, and its depth: that of the
// /proc that user space reads, which sets them before loading. At level 0 the numbers
// are the kernel's own.
const volatile u32 strand_level = 0;
const volatile u64 strand_namespace = 0;

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	UINT(max_entries, 16384);
	TYPE(key, u32);
	TYPE(value, struct watched_process);
} strand_watched SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1 << PENDING_BITS);
	UINT(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct pending_map);
} strand_pending SEC(".maps");

// Where the stacks of threads ended when a signal came that may be handled on
// another.
struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, u64);
} strand_interrupted SEC(".maps");

// When the threads that are in mremap entered it.
struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, u64);
} strand_moving SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 8192);
	TYPE(key, struct site_key);
	TYPE(value, struct site);
} strand_sites SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, struct python);
} strand_python SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, COUNTS);
	TYPE(key, u32);
	TYPE(value, u64);
} strand_counts SEC(".maps");

// How many stacks may still be copied until user space allows more.
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, s64);
} strand_budget SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct sampled_call);
} strand_sampled SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_PROG_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} strand_tail SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 8 << 20);
} strand_events SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 16 << 20);
} strand_samples SEC(".maps");

#define FIRST_INTERVAL 50000000ull

INLINE void count(u32 what, u64 n)
{
	u64 *v = map_lookup(&strand_counts, &what);
	if (v)
		__sync_fetch_and_add(v, n);
}

// number is a process's or thread's in our namespace; 0 if it has none there.
INLINE u32 number(struct pid *p)
{
	struct upid n = {};
	u32 level = 0;
	read_kernel(&level, sizeof level, &p->level);
	if (level < strand_level)
		return 0;
	read_kernel(&n, sizeof n, (void *)&p->numbers[0] + (u64)strand_level * sizeof n);
	return strand_level && (u64)n.ns != strand_namespace ? 0 : n.nr;
}

OWN u64 inner_numbers(void)
{
	struct task_struct *task = current_task();
	return (u64)number(task->group_leader->thread_pid) << 32 | number(task->thread_pid);
}

// numbers are those of the current process, in the upper half, and its thread.
INLINE u64 numbers(void) { return strand_level ? inner_numbers() : current_pid_tgid(); }

INLINE struct watched_process *watched(void)
{
	u32 pid = numbers() >> 32;
	return map_lookup(&strand_watched, &pid);
}

INLINE struct pt_regs *registers(void)
{
	return (struct pt_regs *)task_pt_regs(current_task());
}

INLINE void send(const struct event *e)
{
	struct event *to = ring_reserve(&strand_events, sizeof *e, 0);
	if (!to) {
		count(LOST_EVENTS, 1);
		return;
	}
	*to = *e;
	ring_submit(to, BPF_RB_NO_WAKEUP);
}

INLINE void begin(struct event *c, const struct watched_process *w, u32 op)
{
	u64 id = numbers();
	c->time = ktime();
	c->pid = w->owner;
	c->tid = id;
	c->op = op;
	c->fd = -1;
}

INLINE void locate(struct event *c, const struct pt_regs *r)
{
	c->place.ip = IP(r);
	CALLER(&c->place.caller, r);
}

// size_class is the size rounded to three significant bits.
INLINE u32 size_class(u64 len)
{
	u64 n = len >> 12;
	u32 log = 0;
	if (n >> 34) { n >>= 32; log += 32; }
	if (n >> 18) { n >>= 16; log += 16; }
	if (n >> 10) { n >>= 8; log += 8; }
	if (n >> 6) { n >>= 4; log += 4; }
	if (n >> 4) { n >>= 2; log += 2; }
	if (n >> 3) { n >>= 1; log += 1; }
	return log << 3 | (n & 7);
}

INLINE u64 user_word(u64 addr)
{
	u64 v = 0;
	read_user(&v, 8, (void *)addr);
	return v;
}
