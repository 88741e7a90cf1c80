// The programs that watch system calls which change a process's mappings.
//
// A call's arguments are read at its exit, from the registers that it left
// unchanged, so that one program runs for each call. Only what ends a mapping is
// seen at its entry: from then on another thread can be given the same addresses.
// A call of mremap ends one and makes another: its event has both times.
//
// A mapping that is made and unmapped whole costs no event: it waits in
// `pending` until user space takes it from there. That is an array, in which the
// address determines the place: a hash table costs ten times as much.
#include "events.h"
#include "samples.h"

INLINE int failed(s64 ret) { return ret < 0 && ret >= -4095; }

// pending_key is 0 for a mapping that cannot wait. A page's address leaves room
// for the process.
INLINE u64 pending_key(u64 addr, u32 pid) { return addr >> 54 ? 0 : addr << 10 | pid; }

INLINE struct pending_map *pending(u64 key)
{
	u32 i = key * 0x9e3779b97f4a7c15 >> (64 - PENDING_BITS);
	return map_lookup(&strand_pending, &i);
}

// take reports whether a place was in a state; it is then ours.
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
	c.len = (ARG2(r) + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	c.prot = ARG3(r);
	c.flags = SYSCALL4(r);
	c.fd = ARG5(r);
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
	u64 addr = ctx->args[0], len = (ctx->args[1] + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	if (addr & (WHOLE_PAGE - 1) || !len)
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
	c.len = (ARG3(r) + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	c.old = SYSCALL1(r);
	c.old_len = (ARG2(r) + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	c.flags = SYSCALL4(r);
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
	if (SYSCALL1(r) != ctx->ret) // a query, or refused
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
	c.addr = SYSCALL1(r);
	c.len = (ARG2(r) + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	c.prot = ARG3(r);
	if (c.prot & PROT_WRITE) {
		locate(&c, r);
		report(ctx, &c, w);
	} else {
		send(&c);
	}
	return 0;
}

// matters reports whether an advice takes pages away or makes them huge.
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
	if (!matters(ARG3(r)))
		return 0;
	struct event c = {};
	begin(&c, w, ADVISE);
	c.addr = SYSCALL1(r);
	c.len = (ARG2(r) + WHOLE_PAGE - 1) & ~(u64)(WHOLE_PAGE - 1);
	c.flags = ARG3(r);
	send(&c);
	return 0;
}

// The size is not an argument of shmat: user space looks it up.
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
	c.fd = SYSCALL1(r);
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
	c.flags = ARG2(r);
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
	c.fd = SYSCALL1(r);
	c.len = ARG2(r);
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

// The pid namespaces in which a process has a number, from the first one down, which
// it cannot see itself. User space asks for them before it loads the other programs.
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
#include "requests.c"
