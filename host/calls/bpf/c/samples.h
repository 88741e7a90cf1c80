// The copies of stacks: of the machine's, and the frames of Python that belong to it.
#pragma once
#include "events.h"

// innermost is the frame that a thread runs, by its state; 0 if it runs none.
INLINE u64 innermost(const struct python *p, u64 state)
{
	u64 frame = user_word(state + p->frame);
	return p->cframe_current == NONE ? frame : user_word(frame + p->cframe_current);
}

// own_number is a thread's number in its own namespace.
INLINE u64 own_number(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	u32 level = pid->level;
	struct upid own = {};
	read_kernel(&own, sizeof own, (void *)&pid->numbers[0] + (u64)(level & 31) * sizeof own);
	return own.nr;
}

// python_thread finds the state of the current thread in the interpreter's list, if it
// runs Python. Up to CPython 3.11 the state of a thread that is being created has the
// number of its creator, and precedes the creator's state.
INLINE u64 python_thread(const struct python *p, struct task_struct *task)
{
	u64 interpreter = user_word(p->runtime + p->interpreters);
	u64 state = user_word(interpreter + p->threads);
	u64 field, want;
	if (p->native_id != NONE) {
		want = own_number(task);
		field = p->native_id;
	} else {
		want = THREAD_POINTER(task);
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

// signal_stack_end is the end of the last page of the stack for signals, if sp is in
// it, else 0.
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
	s->ip = IP(r);
	s->sp = r->sp;
	s->bp = KEPT_BP(r);
	s->bx = KEPT_BX(r);
	s->r12 = KEPT_R12(r);
	s->r13 = KEPT_R13(r);
	s->r14 = KEPT_R14(r);
	s->r15 = KEPT_R15(r);
	u64 from = r->sp & ~(u64)(PAGE - 1), end = signal_stack_end(r->sp);
	u32 n = 0, tid = current_pid_tgid();
	u64 *interrupted = end ? map_lookup(&strand_interrupted, &tid) : 0;
	s->interrupted = interrupted ? *interrupted & ~(u64)(PAGE - 1) : 0;
	// One condition in the loop, not two: of two, clang makes a loop that is entered in its
	// middle, which kernels refuse if it is not a jump that leads back.
	u64 own = s->interrupted ? end : ~0ULL, onward = s->interrupted - end;
	LOOP
	for (int i = 0; i < pages; i++) {
		u64 at = from + i * PAGE;
		if (at >= own)
			at += onward;
		if (read_user(stack + i * PAGE, PAGE, (void *)at))
			break;
		n += PAGE;
	}
	s->stack_bytes = n;
	s->own_bytes = s->interrupted ? end - from : n;
	walk_python(s, c->pid);
}

// due reports whether the stack of a call is to be copied.
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
// separate program because the kernel takes long to verify it.
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
