// The programs that watch the functions of the GPU driver's library that allocate and
// free memory. They are attached to the library in each watched process; what a
// function does is in the cookie with which its program is attached: the op, and in
// the upper half how its arguments are read.
//
// mappings.c includes this file.

enum reads {
	READS_OUT = 1,  // (*address, size)
	READS_DIRECT,   // (address, size, …, handle)
	READS_CREATE,   // (*handle, size, *properties)
	READS_HANDLE,   // (*handle, the memory that it is of)
	READS_PITCH,    // (*address, *pitch, width, height)
	READS_ARRAY,    // (*array, *{width, height, format, channels})
	READS_ARRAY_3D, // (*array, *{width, height, depth, format, channels})
};

// A call that has not returned yet. It is kept for the outermost function alone:
// functions of the driver call each other.
struct driver_call {
	u64 time, sp;
	u64 args[4];
};

// How often stacks of one place may be copied: on average, and in a burst.
struct driver_site_key {
	u64 ip;
	u32 pid;
	u16 op, class;
};

#define DRIVER_INTERVAL 2000000ull
#define DRIVER_BURST (64 * DRIVER_INTERVAL)

// A call that takes longer than this is taken not to return: its thread has ended.
#define DRIVER_LOST 60000000000ull

struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, struct driver_call);
} strand_driver_calls SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LRU_HASH);
	UINT(max_entries, 4096);
	TYPE(key, struct driver_site_key);
	TYPE(value, u64);
} strand_driver_sites SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, s64);
} strand_driver_budget SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_PROG_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} strand_driver_tail SEC(".maps");

static u64 (*attach_cookie)(void *ctx) = (void *)174;

// driver_due reports whether the stack of a call is to be copied.
INLINE int driver_due(struct event *c)
{
	u32 zero = 0;
	s64 *budget = map_lookup(&strand_driver_budget, &zero);
	if (!budget || *budget <= 0)
		return 0;
	struct driver_site_key key = { .ip = c->place.ip, .pid = c->pid, .op = c->op, .class = c->class };
	u64 from = c->time - DRIVER_BURST;
	u64 *next = map_lookup(&strand_driver_sites, &key);
	if (!next) {
		from += DRIVER_INTERVAL;
		map_update(&strand_driver_sites, &key, &from, BPF_NOEXIST);
	} else {
		if (*next > c->time)
			return 0;
		*next = (*next > from ? *next : from) + DRIVER_INTERVAL;
	}
	__sync_fetch_and_add(budget, -1);
	return c->sampled = 1;
}

SEC("uprobe/driver_enter")
int strand_driver_enter(struct pt_regs *ctx)
{
	if (!watched())
		return 0;
	u32 tid = current_pid_tgid();
	struct driver_call now = { .time = ktime(), .sp = ctx->sp, .args = { ARG1(ctx), ARG2(ctx), ARG3(ctx), ARG4(ctx) } };
	struct driver_call *outer = map_lookup(&strand_driver_calls, &tid);
	if (outer && now.sp < outer->sp && now.time - outer->time < DRIVER_LOST)
		return 0;
	map_update(&strand_driver_calls, &tid, &now, 0);
	return 0;
}

INLINE void read_array(struct event *e, u64 described, int three)
{
	u64 height = user_word(described + 8), depth = three ? user_word(described + 16) : 1;
	u64 format = user_word(described + (three ? 24 : 16)); // and the channels in its upper half
	e->len = user_word(described) * (height ? height : 1) * (depth ? depth : 1) * (format >> 32);
	e->prot = format;
}

SEC("uretprobe/driver_return")
int strand_driver_return(struct pt_regs *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	u32 tid = current_pid_tgid();
	struct driver_call *out = map_lookup(&strand_driver_calls, &tid);
	if (!out || ctx->sp != out->sp + RETURNED)
		return 0;
	struct driver_call call = *out;
	map_delete(&strand_driver_calls, &tid);
	if ((u32)RESULT(ctx))
		return 0;
	u64 cookie = attach_cookie(ctx);
	u32 reads = cookie >> 32;
	struct event e = {};
	begin(&e, w, cookie);
	e.addr = reads == READS_DIRECT ? call.args[0] : user_word(call.args[0]);
	e.len = call.args[1];
	switch (reads) {
	case READS_DIRECT:
		e.old = call.args[3];
		break;
	case READS_CREATE:
		e.prot = user_word(call.args[2] + 8);
		break;
	case READS_HANDLE:
		e.old = call.args[1];
		e.len = 0;
		break;
	case READS_PITCH:
		e.len = user_word(call.args[1]) * call.args[3];
		break;
	case READS_ARRAY:
		read_array(&e, call.args[1], 0);
		break;
	case READS_ARRAY_3D:
		read_array(&e, call.args[1], 1);
		break;
	}
	e.class = size_class(e.len);
	locate(&e, ctx);
	driver_due(&e);
	send(&e);
	if (!e.sampled)
		return 0;
	u32 zero = 0;
	struct sampled_call *to = map_lookup(&strand_sampled, &zero);
	if (!to)
		return 0;
	to->call = e;
	to->large_stacks = w->large_stacks;
	tail_call(ctx, &strand_driver_tail, 0);
	return 0;
}

SEC("uretprobe/driver_sample")
int strand_driver_sample(struct pt_regs *ctx)
{
	return sample(ctx);
}

// A release is reported when it begins: from then on another thread can be given the
// same addresses.
SEC("uprobe/driver_free")
int strand_driver_free(struct pt_regs *ctx)
{
	struct watched_process *w = watched();
	if (!w)
		return 0;
	struct event e = {};
	begin(&e, w, attach_cookie(ctx));
	e.addr = ARG1(ctx);
	e.len = ARG2(ctx);
	send(&e);
	return 0;
}
