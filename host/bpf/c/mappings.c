// The programs that watch system calls which change a process's mappings.
//
// A call's arguments are read at its exit from the registers that it left as
// they were, so that one program runs a call. Only what ends a mapping is seen
// at its entry: from then on another thread can be given the same addresses. A
// call of mremap ends one and makes another: it carries both times.
//
// A mapping that is made and unmapped whole costs no event: it waits in
// `pending` until user space takes it from there. That is an array, in which the
// address tells the place: a hash table costs ten times as much.
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
	u64 key; // FREE, TAKEN while someone reads or writes it, or of whom it is
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

// One watched process. Owner is whose memory it uses: after vfork its parent's.
// Epoch counts what may have put something inside of older mappings.
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
	u64 code_tag; // bits of a code pointer that are no address
	u32 interpreters, threads;
	u32 thread_next, thread_id, native_id;
	u32 frame, cframe_current;
	u32 code, previous, instruction, owner;
	u32 instruction_size;
	u32 code_file, code_name; // in a code object
};

struct python_frame {
	u64 frame, code, instruction;
	u32 owner, mark; // mark tells the code from another that comes to lie in its place
};

#define PYTHON_FRAMES 128
#define PAGE 4096
#define SMALL_PAGES 5
#define LARGE_PAGES 17

// A copied stack starts at the page in which the stack pointer lies. If that is
// a stack of its own on which a signal is handled, own_bytes of the copy are of
// it; the others begin at the page of the stack that was interrupted.
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

// The pid namespace by whose numbers processes are named, and how deep it lies:
// the one of the /proc that user space reads. It sets them before loading. At
// level 0 the numbers are the kernel's own.
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
	c->place.ip = r->ip;
	read_user(&c->place.caller, 8, (void *)r->sp);
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

// innermost is the frame that a thread's state is in; 0 if it runs nothing.
INLINE u64 innermost(const struct python *p, u64 state)
{
	u64 frame = user_word(state + p->frame);
	return p->cframe_current == NONE ? frame : user_word(frame + p->cframe_current);
}

// python_thread finds the state of the current thread in the interpreter's list,
// if it runs something of Python. Up to CPython 3.11 the state of a thread that is
// being made bears the number of its maker, and stands before that.
INLINE u64 python_thread(const struct python *p, struct task_struct *task)
{
	u64 interpreter = user_word(p->runtime + p->interpreters);
	u64 state = user_word(interpreter + p->threads);
	u64 field, want;
	if (p->native_id != NONE) {
		struct pid *pid = task->thread_pid;
		u32 level = pid->level;
		struct upid own = {};
		read_kernel(&own, sizeof own, (void *)&pid->numbers[0] + (u64)(level & 31) * sizeof own);
		want = own.nr;
		field = p->native_id;
	} else {
		want = task->thread.fsbase;
		field = p->thread_id;
	}
	LOOP
	for (int i = 0; i < 256 && state; i++) {
		if (user_word(state + field) == want && innermost(p, state))
			return state;
		state = user_word(state + p->thread_next);
	}
	return 0;
}

enum python_state { NO_PYTHON, NO_THREAD, COMPLETE, CUT };

INLINE void walk_python(struct sample *s, u32 pid)
{
	s->python_frames = 0;
	s->python_state = NO_PYTHON;
	const struct python *p = map_lookup(&strand_python, &pid);
	if (!p)
		return;
	s->python_state = NO_THREAD;
	u64 thread = python_thread(p, current_task());
	if (!thread)
		return;
	u64 frame = innermost(p, thread);
	s->python_state = CUT;
	u32 n = 0;
	LOOP
	for (u32 i = 0; i < PYTHON_FRAMES; i++) {
		if (!frame) {
			s->python_state = COMPLETE;
			break;
		}
		struct python_frame *f = &s->python[i];
		f->frame = frame;
		f->code = user_word(frame + p->code) & ~p->code_tag;
		f->instruction = user_word(frame + p->instruction);
		if (p->instruction_size == 4)
			f->instruction &= 0xffffffff;
		f->owner = p->owner == NONE ? 0 : user_word(frame + p->owner) & 0xffff;
		f->mark = (user_word(f->code + p->code_name) ^ user_word(f->code + p->code_file) << 7) >> 3 | 1;
		frame = user_word(frame + p->previous);
		n = i + 1;
	}
	s->python_frames = n;
}

// signal_stack_end is the end of the page up to which the stack for signals goes,
// if sp is in it, else 0.
INLINE u64 signal_stack_end(u64 sp)
{
	struct task_struct *task = current_task();
	u64 from = task->sas_ss_sp, size = task->sas_ss_size;
	return size && sp - from <= size ? (from + size + PAGE - 1) & ~(u64)(PAGE - 1) : 0;
}

INLINE void fill(struct sample *s, u8 *stack, int pages, const struct event *c, const struct pt_regs *r)
{
	s->time = c->time;
	s->pid = c->pid;
	s->tid = c->tid;
	s->op = c->op;
	s->addr = c->addr;
	s->len = c->len;
	s->ip = r->ip;
	s->sp = r->sp;
	s->bp = r->bp;
	s->bx = r->bx;
	s->r12 = r->r12;
	s->r13 = r->r13;
	s->r14 = r->r14;
	s->r15 = r->r15;
	u64 from = r->sp & ~(u64)(PAGE - 1), end = signal_stack_end(r->sp);
	u32 n = 0, tid = current_pid_tgid();
	u64 *interrupted = end ? map_lookup(&strand_interrupted, &tid) : 0;
	s->interrupted = interrupted ? *interrupted & ~(u64)(PAGE - 1) : 0;
	LOOP
	for (int i = 0; i < pages; i++) {
		u64 at = from + i * PAGE;
		if (s->interrupted && at >= end)
			at = s->interrupted + (at - end);
		if (read_user(stack + i * PAGE, PAGE, (void *)at))
			break;
		n += PAGE;
	}
	s->stack_bytes = n;
	s->own_bytes = s->interrupted ? end - from : n;
	walk_python(s, c->pid);
}

// due tells whether the stack of a call is to be copied.
INLINE int due(struct event *c)
{
	u32 zero = 0;
	s64 *budget = map_lookup(&strand_budget, &zero);
	if (!budget || *budget <= 0)
		return 0;
	struct site_key key = { .place = c->place, .pid = c->pid, .op = c->op, .class = c->class };
	struct site *s = map_lookup(&strand_sites, &key);
	if (!s) {
		struct site first = { .next = c->time + FIRST_INTERVAL, .interval = FIRST_INTERVAL };
		map_update(&strand_sites, &key, &first, BPF_NOEXIST);
	} else {
		if (c->time < s->next)
			return 0;
		s->next = c->time + s->interval;
	}
	__sync_fetch_and_add(budget, -1);
	return c->sampled = 1;
}

// copy_stack hands a call over to the program that copies its stack. It is a
// program of its own because the kernel takes long to verify it.
INLINE void copy_stack(void *ctx, const struct event *c, const struct watched_process *w)
{
	u32 zero = 0;
	struct sampled_call *to = map_lookup(&strand_sampled, &zero);
	if (!to)
		return;
	to->call = *c;
	to->large_stacks = w->large_stacks;
	tail_call(ctx, &strand_tail, 0);
}

// sample copies the stack of the call that copy_stack noted.
INLINE int sample(const struct pt_regs *r)
{
	u32 zero = 0;
	const struct sampled_call *from = map_lookup(&strand_sampled, &zero);
	if (!from)
		return 0;
	if (from->large_stacks) {
		struct large_sample *to = ring_reserve(&strand_samples, sizeof *to, 0);
		if (!to)
			goto lost;
		fill(&to->head, to->stack, LARGE_PAGES, &from->call, r);
		ring_submit(to, BPF_RB_NO_WAKEUP);
	} else {
		struct small_sample *to = ring_reserve(&strand_samples, sizeof *to, 0);
		if (!to)
			goto lost;
		fill(&to->head, to->stack, SMALL_PAGES, &from->call, r);
		ring_submit(to, BPF_RB_NO_WAKEUP);
	}
	return 0;
lost:
	count(LOST_SAMPLES, 1);
	return 0;
}

SEC("tracepoint/sample")
int strand_sample(void *ctx)
{
	return sample(registers());
}

INLINE int failed(s64 ret) { return ret < 0 && ret >= -4095; }

// pending_key is 0 for a mapping that cannot wait. A page's address leaves room
// for the process.
INLINE u64 pending_key(u64 addr, u32 pid) { return addr >> 54 ? 0 : addr << 10 | pid; }

INLINE struct pending_map *pending(u64 key)
{
	u32 i = key * 0x9e3779b97f4a7c15 >> (64 - PENDING_BITS);
	return map_lookup(&strand_pending, &i);
}

// take tells whether a place was in a state, and is ours now.
INLINE int take(struct pending_map *p, u64 state)
{
	return __sync_val_compare_and_swap(&p->key, state, TAKEN) == state;
}

INLINE void leave(struct pending_map *p, u64 state)
{
	__sync_lock_test_and_set(&p->key, state);
}

// send_pending reports a mapping that waited.
INLINE void send_pending(u32 pid, u64 addr, const struct pending_map *p)
{
	struct event e = { .time = p->time, .pid = pid, .tid = p->tid, .op = MAP, .sampled = p->sampled,
		.addr = addr, .len = p->len, .prot = p->prot, .flags = p->flags, .fd = p->fd,
		.class = p->class, .place = p->place };
	send(&e);
}

#define MAP_FIXED 0x10

// wait_for_end keeps a new mapping until it is unmapped or taken by user space.
INLINE void wait_for_end(struct event *c, struct watched_process *w)
{
	if (c->flags & MAP_FIXED) {
		w->epoch++;
		send(c);
		return;
	}
	u64 key = pending_key(c->addr, c->pid);
	struct pending_map *p = pending(key);
	if (!p || !key) {
		send(c);
		return;
	}
	if (!take(p, FREE)) {
		if (!take(p, key)) { // another waits there
			send(c);
			return;
		}
		send_pending(c->pid, c->addr, p); // its end was not seen
	}
	p->time = c->time;
	p->len = c->len;
	p->place = c->place;
	p->tid = c->tid;
	p->epoch = w->epoch;
	p->prot = c->prot;
	p->flags = c->flags;
	p->fd = c->fd;
	p->class = c->class;
	p->sampled = c->sampled;
	leave(p, key);
}

SEC("tracepoint/mmap")
int strand_mmap(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || failed(ctx->ret))
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, MAP);
	c.addr = ctx->ret;
	c.len = (r->si + PAGE - 1) & ~(u64)(PAGE - 1);
	c.prot = r->dx;
	c.flags = r->r10;
	c.fd = r->r8;
	c.class = size_class(c.len);
	locate(&c, r);
	due(&c);
	wait_for_end(&c, w);
	if (c.sampled)
		copy_stack(ctx, &c, w);
	return 0;
}

SEC("tracepoint/munmap")
int strand_munmap(struct on_enter *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	u64 addr = ctx->args[0], len = (ctx->args[1] + PAGE - 1) & ~(u64)(PAGE - 1);
	if (addr & (PAGE - 1) || !len)
		return 0;
	u64 key = pending_key(addr, w->owner);
	struct pending_map *p = pending(key);
	if (p && key && p->key == key && take(p, key)) {
		int whole = p->len == len && p->epoch == w->epoch;
		if (!whole)
			send_pending(w->owner, addr, p);
		leave(p, FREE);
		if (whole) {
			count(PAIRED, 1);
			count(PAIRED_BYTES, len);
			return 0;
		}
	}
	struct event c = {};
	begin(&c, w, UNMAP);
	c.addr = addr;
	c.len = len;
	send(&c);
	return 0;
}

// report sends a call, with its stack where that is due.
INLINE void report(void *ctx, struct event *c, const struct watched_process *w)
{
	due(c);
	send(c);
	if (c->sampled)
		copy_stack(ctx, c, w);
}

SEC("tracepoint/mremap_enter")
int strand_mremap_enter(struct on_enter *ctx)
{
	if (!watched())
		return 0;
	u32 tid = current_pid_tgid();
	u64 now = ktime();
	map_update(&strand_moving, &tid, &now, 0);
	return 0;
}

SEC("tracepoint/mremap")
int strand_mremap(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || failed(ctx->ret))
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, REMAP);
	u32 tid = current_pid_tgid();
	u64 *entered = map_lookup(&strand_moving, &tid);
	if (entered) {
		u64 took = c.time - *entered;
		c.took = took >> 32 ? ~0u : took;
	}
	c.addr = ctx->ret;
	c.len = (r->dx + PAGE - 1) & ~(u64)(PAGE - 1);
	c.old = r->di;
	c.old_len = (r->si + PAGE - 1) & ~(u64)(PAGE - 1);
	c.flags = r->r10;
	w->epoch++;
	locate(&c, r);
	report(ctx, &c, w);
	return 0;
}

SEC("tracepoint/brk")
int strand_brk(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	struct pt_regs *r = registers();
	if (r->di != ctx->ret) // a question, or refused
		return 0;
	struct event c = {};
	begin(&c, w, BRK);
	c.addr = ctx->ret;
	locate(&c, r);
	report(ctx, &c, w);
	return 0;
}

#define PROT_WRITE 2

SEC("tracepoint/mprotect")
int strand_mprotect(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || ctx->ret)
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, PROTECT);
	c.addr = r->di;
	c.len = (r->si + PAGE - 1) & ~(u64)(PAGE - 1);
	c.prot = r->dx;
	if (c.prot & PROT_WRITE) {
		locate(&c, r);
		report(ctx, &c, w);
	} else {
		send(&c);
	}
	return 0;
}

// The advice that takes pages away or makes them huge.
INLINE int matters(u64 advice)
{
	return advice == 4 || advice == 8 || advice == 9 || advice == 14 || advice == 15 || advice == 24;
}

SEC("tracepoint/madvise")
int strand_madvise(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || ctx->ret)
		return 0;
	struct pt_regs *r = registers();
	if (!matters(r->dx))
		return 0;
	struct event c = {};
	begin(&c, w, ADVISE);
	c.addr = r->di;
	c.len = (r->si + PAGE - 1) & ~(u64)(PAGE - 1);
	c.flags = r->dx;
	send(&c);
	return 0;
}

// shmat's size is not among its arguments: user space looks it up.
SEC("tracepoint/shmat")
int strand_shmat(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || failed(ctx->ret))
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, ATTACH);
	c.addr = ctx->ret;
	c.fd = r->di;
	w->epoch++;
	locate(&c, r);
	report(ctx, &c, w);
	return 0;
}

SEC("tracepoint/shmdt")
int strand_shmdt(struct on_enter *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	struct event c = {};
	begin(&c, w, DETACH);
	c.addr = ctx->args[0];
	send(&c);
	return 0;
}

SEC("tracepoint/memfd_create")
int strand_memfd(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || failed(ctx->ret))
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, MEMFD);
	c.fd = ctx->ret;
	c.flags = r->si;
	locate(&c, r);
	report(ctx, &c, w);
	return 0;
}

SEC("tracepoint/ftruncate")
int strand_ftruncate(struct on_exit *ctx)
{
	struct watched_process *w = watched();
	if (!w || ctx->ret)
		return 0;
	struct pt_regs *r = registers();
	struct event c = {};
	begin(&c, w, TRUNCATE);
	c.fd = r->di;
	c.len = r->si;
	locate(&c, r);
	report(ctx, &c, w);
	return 0;
}

SEC("tracepoint/signal_deliver")
int strand_signal(void *ctx)
{
	if (!watched() || !current_task()->sas_ss_size)
		return 0;
	u64 sp = registers()->sp;
	if (signal_stack_end(sp)) // in another handler
		return 0;
	u32 tid = current_pid_tgid();
	map_update(&strand_interrupted, &tid, &sp, 0);
	return 0;
}

#define CLONE_VM 0x100
#define CLONE_THREAD 0x10000

SEC("raw_tracepoint/task_newtask")
int strand_fork(struct on_newtask *ctx)
{
	struct watched_process *w = watched();
	if (!w || ctx->clone_flags & CLONE_THREAD)
		return 0;
	struct pid *of = 0;
	read_kernel(&of, sizeof of, &ctx->task->thread_pid);
	u32 pid = number(of);
	struct watched_process child = { .owner = ctx->clone_flags & CLONE_VM ? w->owner : pid };
	struct event c = {};
	begin(&c, w, FORK);
	c.addr = pid;
	c.old = child.owner;
	if (map_update(&strand_watched, &pid, &child, 0))
		count(UNWATCHED, 1);
	send(&c);
	return 0;
}

SEC("tracepoint/sched_process_exec")
int strand_exec(void *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	w->owner = numbers() >> 32;
	w->epoch++;
	map_delete(&strand_python, &w->owner);
	struct event c = {};
	begin(&c, w, EXEC);
	send(&c);
	return 0;
}

SEC("tracepoint/sched_process_exit")
int strand_exit(void *ctx)
{
	u32 pid = numbers() >> 32;
	struct watched_process *w = map_lookup(&strand_watched, &pid);
	if (!w || current_task()->signal->live.counter)
		return 0;
	struct event c = {};
	begin(&c, w, EXIT);
	c.addr = pid;
	send(&c);
	map_delete(&strand_watched, &pid);
	map_delete(&strand_python, &pid);
	return 0;
}

// What a process cannot see itself of the pid namespaces in which it has a
// number, from the first one down. User space has it told before it loads the
// rest.
#define LEVELS 33

struct namespaces {
	u32 level, pad;
	u64 at[LEVELS];
};

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct namespaces);
} strand_self_namespaces SEC(".maps");

SEC("raw_tracepoint/self")
int strand_self(void *ctx)
{
	u32 zero = 0;
	struct namespaces *to = map_lookup(&strand_self_namespaces, &zero);
	if (!to)
		return 0;
	struct pid *p = current_task()->thread_pid;
	to->level = p->level;
	LOOP
	for (u32 i = 0; i < LEVELS && i <= to->level; i++) {
		struct upid n = {};
		read_kernel(&n, sizeof n, (void *)&p->numbers[0] + (u64)i * sizeof n);
		to->at[i] = (u64)n.ns;
	}
	return 0;
}

#include "driver.c"
