// The programs that watch the requests to PyTorch's caching allocator. They are
// attached to places in the code of its library which user space found: where its
// function malloc begins, where its callers continue after it, and where the functions
// that release memory begin. None of them is a return probe: malloc throws, and an
// exception does not pass a return address that a return probe has replaced.
//
// A stack is the frames of Python alone. Its hash goes with the event; the frames
// themselves are sent only if the hash was not seen recently.
//
// mappings.c includes this file.

enum request_op {
	REQUEST_ALLOC = 1,
	REQUEST_FREE,
	REQUEST_FAILED,  // malloc did not return: its thread made another call
	SEGMENT_ALLOC,   // the driver gave memory within a call of malloc
	SEGMENT_FREE,    // the driver was asked to free memory, whoever had taken it
	SEGMENT_MAP,     // the driver mapped memory within a call of malloc
	SEGMENT_UNMAP,
};

struct request_event {
	u64 time;
	u32 tid;
	u16 op, device;
	u64 addr, size, stream;
	u64 stack; // the hash of its frames, 0 if there are none
};

// From 3.11 on most frames of a thread lie one behind another: they are read together,
// this many bytes at a time.
#define WINDOW 1024

// A thread: the call of malloc that it is in, the call of the driver, its state in the
// interpreter, and a copy of memory from base on.
struct request_thread {
	u64 out, size, stream, sp;
	u64 driver_out, driver_size;
	u64 state, looked; // for the state last, if there was none
	u64 own;           // its number or address, as in the state
	u32 device, open;
	u64 base;
	u8 window[WINDOW];
};

// Of frames: how many bytes hold the fields that are read, and whether frames lie one
// behind another.
struct request_python {
	struct python at;
	u32 span, together;
};

struct request_frame {
	u64 code, instruction;
	u32 owner, mark;
};

struct request_stack {
	u64 id;
	u32 frames, cut;
	struct request_frame at[PYTHON_FRAMES];
};

enum request_count { REQUESTS, LOST_REQUESTS, LOST_STACKS, OPEN, REQUEST_COUNTS };

struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, struct request_thread);
} strand_request_threads SEC(".maps");

// A thread of which nothing is known yet, which is too large for a stack.
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct request_thread);
} strand_request_none SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct request_python);
} strand_request_python SEC(".maps");

// The hashes that were sent recently, each at the place that it determines.
#define SEEN_BITS 14

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1 << SEEN_BITS);
	TYPE(key, u32);
	TYPE(value, u64);
} strand_request_seen SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, REQUEST_COUNTS);
	TYPE(key, u32);
	TYPE(value, u64);
} strand_request_counts SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 16 << 20);
} strand_request_events SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_RINGBUF);
	UINT(max_entries, 8 << 20);
} strand_request_stacks SEC(".maps");

INLINE void request_add(u32 what, u64 n)
{
	u64 *v = map_lookup(&strand_request_counts, &what);
	if (v)
		__sync_fetch_and_add(v, n);
}

INLINE void request_count(u32 what) { request_add(what, 1); }

INLINE struct request_thread *request_thread(u32 tid)
{
	struct request_thread *t = map_lookup(&strand_request_threads, &tid);
	if (t)
		return t;
	u32 zero = 0;
	struct request_thread *none = map_lookup(&strand_request_none, &zero);
	if (!none)
		return 0;
	map_update(&strand_request_threads, &tid, none, BPF_NOEXIST);
	return map_lookup(&strand_request_threads, &tid);
}

#define SPAN 128

// field is a word of a frame that was read in one piece.
INLINE u64 field(const u64 *words, u32 offset)
{
	return words[offset >> 3 & (SPAN / 8 - 1)] >> ((offset & 7) * 8);
}

// How long a thread is assumed not to run Python.
#define NO_STATE 1000000ull

// request_state is the current thread's state in the interpreter. That of the last call
// is checked first.
INLINE u64 request_state(const struct python *p, struct request_thread *t, u64 now)
{
	struct task_struct *task = current_task();
	if (!t->state && now - t->looked < NO_STATE)
		return 0;
	if (t->state && user_word(t->state + (p->native_id == NONE ? p->thread_id : p->native_id)) == t->own)
		return t->state;
	t->own = p->native_id == NONE ? THREAD_POINTER(task) : own_number(task);
	t->state = python_thread(p, task);
	t->looked = now;
	return t->state;
}

#define MIX 0x9e3779b97f4a7c15

INLINE u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * MIX;
	return h ^ h >> 29;
}

INLINE int read_frame(u64 *words, const struct request_python *p, u64 frame)
{
	return read_user(words, (p->span & (SPAN - 1)), (void *)frame);
}

INLINE u64 frame_instruction(const u64 *words, const struct python *p)
{
	u64 v = field(words, p->instruction);
	return p->instruction_size == 4 ? v & 0xffffffff : v;
}

// How far below the copy a frame may lie to be read with those around it.
#define NEAR 16384ull

// frame_at is where in the copy of a thread's memory a frame lies; WINDOW if it does
// not. The first frame, and those not far below the copy, are read into it.
INLINE u64 frame_at(struct request_thread *t, const struct request_python *p, u64 frame, int first)
{
	u64 at = frame - t->base;
	if (!first && at <= WINDOW - SPAN)
		return at;
	if (!p->together || (!first && t->base - frame > NEAR))
		return WINDOW;
	u64 page = frame & ~(u64)(PAGE - 1); // what lies before need not be mapped
	t->base = frame + SPAN - WINDOW;
	if (t->base < page)
		t->base = page;
	if (!read_user(t->window, WINDOW, (void *)t->base))
		return frame - t->base;
	t->base = 0;
	return WINDOW;
}

INLINE u64 copied(const struct request_thread *t, u64 at)
{
	return *(const u64 *)&t->window[at & (WINDOW - 8)];
}

// stack_hash is the hash of the frames from the given one outwards.
OWN u64 stack_hash(struct request_thread *t, const struct request_python *p, u64 frame)
{
	u64 h = MIX, words[SPAN / 8] = {};
	if (!p || !t)
		return 0;
	LOOP
	for (u32 i = 0; i < PYTHON_FRAMES && frame; i++) {
		u64 at = frame_at(t, p, frame, !i);
		if (at < WINDOW) {
			h = mix(mix(h, copied(t, at + p->at.code)), copied(t, at + p->at.instruction));
			frame = copied(t, at + p->at.previous);
			continue;
		}
		if (read_frame(words, p, frame))
			break;
		h = mix(mix(h, field(words, p->at.code)), frame_instruction(words, &p->at));
		frame = field(words, p->at.previous);
	}
	return h;
}

// send_stack sends the frames from the given one outwards.
OWN int send_stack(const struct request_python *p, u64 frame, u64 id)
{
	u64 words[SPAN / 8] = {};
	if (!p)
		return 1;
	struct request_stack *s = ring_reserve(&strand_request_stacks, sizeof *s, 0);
	if (!s)
		return 1;
	u32 n = 0;
	LOOP
	for (u32 i = 0; i < PYTHON_FRAMES && frame; i++) {
		if (read_frame(words, p, frame))
			break;
		struct request_frame *f = &s->at[i];
		f->code = field(words, p->at.code) & ~p->at.code_tag;
		f->instruction = frame_instruction(words, &p->at);
		f->owner = p->at.owner == NONE ? 0 : field(words, p->at.owner) & 0xffff;
		f->mark = (user_word(f->code + p->at.code_name) ^ user_word(f->code + p->at.code_file) << 7) >> 3 | 1;
		frame = field(words, p->at.previous);
		n = i + 1;
	}
	s->id = id;
	s->frames = n;
	s->cut = frame != 0;
	ring_submit(s, BPF_RB_NO_WAKEUP);
	return 0;
}

// request_stack is the hash of the current stack of Python. The stack is sent first if
// it was not sent recently: an address can be reused for another object.
INLINE u64 request_stack(struct request_thread *t, u64 now)
{
	u32 zero = 0;
	const struct request_python *p = map_lookup(&strand_request_python, &zero);
	if (!p || !p->span)
		return 0;
	u64 state = request_state(&p->at, t, now);
	u64 frame = state ? innermost(&p->at, state) : 0;
	if (!frame)
		return 0;
	u64 id = mix(stack_hash(t, p, frame), now >> 30) | 1;
	u32 place = id >> (64 - SEEN_BITS);
	u64 *seen = map_lookup(&strand_request_seen, &place);
	if (!seen || *seen == id)
		return id;
	if (send_stack(p, frame, id))
		request_count(LOST_STACKS);
	else
		*seen = id;
	return id;
}

// The order of events is that of the ring and not that of their times: a program can be
// delayed between the two. An event counts from when it is in the ring.
INLINE void request_send(struct request_event *e)
{
	struct request_event *to = ring_reserve(&strand_request_events, sizeof *to, 0);
	if (to) {
		*to = *e;
		ring_submit(to, BPF_RB_NO_WAKEUP);
	} else {
		request_count(LOST_REQUESTS);
	}
	request_count(REQUESTS);
}

// Of malloc(this, *address, device, size, stream).
SEC("uprobe/request_enter")
int strand_request_enter(struct pt_regs *ctx)
{
	u32 tid = numbers();
	struct request_thread *t = request_thread(tid);
	if (!t) {
		request_count(LOST_REQUESTS);
		request_count(REQUESTS);
		return 0;
	}
	if (t->open) {
		struct request_event e = { .time = ktime(), .tid = tid, .op = REQUEST_FAILED, .device = t->device, .size = t->size, .stream = t->stream };
		request_send(&e);
	} else {
		request_count(OPEN);
	}
	t->out = ARG2(ctx);
	t->device = ARG3(ctx) & 0xff;
	t->size = ARG4(ctx);
	t->stream = ARG5(ctx);
	t->sp = ctx->sp;
	t->open = 1;
	return 0;
}

SEC("uprobe/request_done")
int strand_request_done(struct pt_regs *ctx)
{
	u32 tid = numbers();
	struct request_thread *t = map_lookup(&strand_request_threads, &tid);
	if (!t || !t->open || NOT_RETURNED(ctx, t->sp))
		return 0;
	t->open = 0;
	struct request_event e = { .time = ktime(), .tid = tid, .op = REQUEST_ALLOC, .device = t->device,
		.addr = user_word(t->out), .size = t->size, .stream = t->stream };
	if (e.addr) {
		e.stack = request_stack(t, e.time);
		request_send(&e);
	}
	request_add(OPEN, -1);
	return 0;
}

// given_back reports a call that releases memory, with its stack.
INLINE int given_back(u32 op, u64 addr, u64 size)
{
	u32 tid = numbers();
	struct request_thread *t = addr ? request_thread(tid) : 0;
	if (!t)
		return 0;
	struct request_event e = { .time = ktime(), .tid = tid, .op = op, .device = 0xff, .addr = addr, .size = size };
	e.stack = request_stack(t, e.time);
	request_send(&e);
	return 0;
}

// The cookie states which argument is the address.
SEC("uprobe/request_free")
int strand_request_free(struct pt_regs *ctx)
{
	u64 first = ARG1(ctx), second = ARG2(ctx);
	asm volatile("" : "+r"(first), "+r"(second)); // otherwise the compiler makes the pointer variable, which the kernel refuses
	return given_back(REQUEST_FREE, attach_cookie(ctx) ? second : first, 0);
}

// Of cuMemAlloc(*address, size).
SEC("uprobe/request_driver_enter")
int strand_request_driver_enter(struct pt_regs *ctx)
{
	u32 tid = numbers();
	struct request_thread *t = map_lookup(&strand_request_threads, &tid);
	if (!t || !t->open)
		return 0;
	t->driver_out = ARG1(ctx);
	t->driver_size = ARG2(ctx);
	return 0;
}

SEC("uretprobe/request_driver_return")
int strand_request_driver_return(struct pt_regs *ctx)
{
	u32 tid = numbers();
	struct request_thread *t = map_lookup(&strand_request_threads, &tid);
	if (!t || !t->driver_out)
		return 0;
	struct request_event e = { .time = ktime(), .tid = tid, .op = SEGMENT_ALLOC, .device = t->device,
		.addr = user_word(t->driver_out), .size = t->driver_size, .stream = t->stream };
	t->driver_out = 0;
	if ((u32)RESULT(ctx) || !t->open)
		return 0;
	request_send(&e);
	return 0;
}

// The cookie is what the driver does with the bytes at the address.
SEC("uprobe/request_driver_at")
int strand_request_driver_at(struct pt_regs *ctx)
{
	u32 op = attach_cookie(ctx), tid = numbers();
	struct request_thread *t = request_thread(tid);
	if (!t || (op == SEGMENT_MAP && !t->open))
		return 0;
	struct request_event e = { .time = ktime(), .tid = tid, .op = op, .device = t->open ? t->device : 0xff,
		.addr = ARG1(ctx), .size = ARG2(ctx), .stream = t->stream };
	if (op != SEGMENT_MAP)
		e.stack = request_stack(t, e.time);
	request_send(&e);
	return 0;
}
