package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"strandline/internal/sorts"
	"strandline/internal/sqlite"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// schema is the database: tables as the snapshot has them, and views that
// answer the usual questions.
const schema = `
create table info (key text primary key, value) without rowid;
create table frames (id integer primary key, function text, file text, line integer);
create table stacks (id integer primary key, depth integer not null, site integer references frames);
create table stack_frames (stack integer references stacks, depth integer, frame integer references frames,
	primary key (stack, depth)) without rowid;
create table segments (id integer primary key, device integer, addr integer, total_size integer, allocated_size integer,
	active_size integer, requested_size integer, stream integer, pool text, type text, expandable integer,
	stack integer references stacks);
create table blocks (id integer primary key, segment integer references segments, device integer, addr integer,
	size integer, requested_size integer, state text, stack integer references stacks);
create table events (device integer, event integer, action text, addr integer, size integer, stream integer, pool text,
	time_us integer, device_free integer, stack integer references stacks, compile_context text, user_metadata text,
	category text, primary key (device, event)) without rowid;
create table annotations (id integer primary key, device integer, name text, stage text, time_us integer);

create view sites as
	select stacks.id as stack, function, file, line from stacks left join frames on frames.id = stacks.site;
create view stack_lines as
	select stack, depth, function, file, line from stack_frames join frames on frames.id = frame order by stack, depth;
create view live_by_site as
	select device, file, line, function, sum(requested_size) as bytes, count(*) as count
	from blocks left join sites using (stack) where state like 'active%'
	group by device, file, line, function order by bytes desc;
create view allocated_by_site as
	select device, file, line, function, sum(size) as bytes, count(*) as count
	from events left join sites using (stack) where action = 'alloc'
	group by device, file, line, function order by bytes desc;
create view totals as
	select device, count(*) as segments, sum(total_size) as reserved_bytes,
		(select sum(size) from blocks b where b.device = s.device and state = 'active_allocated') as allocated_bytes,
		(select sum(size) from blocks b where b.device = s.device and state like 'active%') as active_bytes,
		(select sum(requested_size) from blocks b where b.device = s.device and state like 'active%') as requested_bytes
	from segments s group by device;
create view free_by_segment as
	select s.id as segment, s.device, s.pool, s.stream, s.total_size, sum(b.size) as free_bytes, max(b.size) as largest,
		s.total_size = sum(b.size) as releasable
	from segments s join blocks b on b.segment = s.id where b.state = 'inactive'
	group by s.id order by free_bytes desc;
create view ooms as
	select device, event, size, device_free, time_us, stack, file, line, function
	from events left join sites using (stack) where action = 'oom';
`

// SQLite writes a database to an empty file. Addresses above 2^63 are negative there, as
// SQLite's integers are signed.
func SQLite(ctx context.Context, w io.WriterAt, s *snapshot.Snapshot) error {
	d := &database{sqlite.NewWriter(until{ctx, w}), s, map[string]string{}}
	statements := strings.Split(strings.TrimSuffix(strings.TrimSpace(schema), ";"), ";\n")
	for i, statement := range statements {
		statements[i] = strings.TrimSpace(statement)
		d.create[strings.Fields(statements[i])[2]] = statements[i]
	}
	d.info()
	d.stacks()
	d.segments()
	d.events()
	d.annotations()
	for _, statement := range statements {
		if strings.HasPrefix(statement, "create view") {
			d.to.View(statement)
		}
	}
	if err := d.to.Close(); err != nil {
		return fmt.Errorf("write database: %w", err)
	}
	return nil
}

// until writes to a file until a context ends.
type until struct {
	ctx context.Context
	w   io.WriterAt
}

func (u until) WriteAt(b []byte, at int64) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.WriteAt(b, at)
}

// A database is one that is being filled.
type database struct {
	to     *sqlite.Writer
	s      *snapshot.Snapshot
	create map[string]string // the statements of the schema, by the name of what they create
}

// insert calls rows with a function that adds a row to a table.
func (d *database) insert(table string, rows func(add func(...any))) {
	d.to.Table(d.create[table], rows)
}

func (d *database) info() {
	f := d.s.Format
	d.insert("info", func(add func(...any)) {
		if d.s.Settings != nil {
			add("allocator_conf", valid(d.s.Settings.Conf))
		}
		add("format", f.String())
		if d.s.Partial != nil {
			add("partial", 1)
		}
		add("torch_version", d.s.TorchVersion())
	})
}

// stacks writes the stacks, and the frames that they have.
func (d *database) stacks() {
	t := d.s.Stacks
	site := sitesOf(t)
	d.insert("frames", func(add func(...any)) {
		for id := range frameCount(t) {
			f := t.At(stack.FrameID(id))
			add(id, valid(f.Function), valid(f.File), positive(f.Line))
		}
	})
	d.insert("stacks", func(add func(...any)) {
		for id := stack.Empty + 1; int(id) < t.Len(); id++ {
			add(int64(id), len(t.Frames(id)), site[id])
		}
	})
	d.insert("stack_frames", func(add func(...any)) {
		for id := stack.Empty + 1; int(id) < t.Len(); id++ {
			for depth, f := range t.Frames(id) {
				add(int64(id), depth, int64(f))
			}
		}
	})
}

// sitesOf is the frame of each stack's site.
func sitesOf(t *stack.Table) []any {
	out := make([]any, t.Len())
	for id := stack.Empty + 1; int(id) < t.Len(); id++ {
		site := t.Site(id)
		for _, f := range t.Frames(id) {
			if site != (stack.Site{}) && t.At(f) == site {
				out[id] = int64(f)
				break
			}
		}
	}
	return out
}

func (d *database) segments() {
	s := d.s
	d.insert("segments", func(add func(...any)) {
		for i := range s.Segments {
			g := &s.Segments[i]
			add(i, g.Device, int64(g.Addr), g.TotalSize, g.AllocatedSize, g.ActiveSize, g.RequestedSize,
				int64(s.Stream(g.Stream)), poolName(s, g.Pool), text(s.String(g.Type)), g.Expandable, known(g.Stack))
		}
	})
	n := 0
	d.insert("blocks", func(add func(...any)) {
		for i := range s.Segments {
			for _, b := range s.Segments[i].Blocks {
				var requested any // stale where nothing is in the block
				if b.State.Active() {
					requested = b.Requested
				}
				add(n, i, s.Segments[i].Device, int64(b.Addr), b.Size, requested, b.State.String(), known(b.Stack))
				n++
			}
		}
	})
}

func (d *database) events() {
	s := d.s
	devices := s.Devices()
	sorts.By(devices, func(a, b snapshot.Device) int { return cmp.Compare(a.Index, b.Index) }) // as the key demands
	d.insert("events", func(add func(...any)) {
		for _, device := range devices {
			t := device.Trace
			for k := range t.Action {
				var addr, free any = int64(t.Addr[k]), nil
				if t.Action[k] == snapshot.OOM {
					addr, free = nil, t.DeviceFree(k)
				}
				var pool, time any
				if t.Pool != nil {
					pool = poolName(s, t.Pool[k])
				}
				if t.Time != nil {
					time = positive(t.Time[k])
				}
				add(t.Device, k, valid(actionName(t, k)), addr, t.Size[k], int64(s.Stream(t.Stream[k])), pool, time, free,
					known(t.Stack[k]), d.column(t.CompileContext, k), d.column(t.UserMetadata, k), d.column(t.Category, k))
			}
		}
	})
}

func (d *database) annotations() {
	d.insert("annotations", func(add func(...any)) {
		for i, a := range d.s.Annotations {
			stage := "START"
			if a.End {
				stage = "END"
			}
			add(i, a.Device, valid(a.Name), stage, positive(a.Time))
		}
	})
}

// column is the text of event k in a column, nil if there is none.
func (d *database) column(ids []snapshot.StringID, k int) any {
	if ids == nil {
		return nil
	}
	return text(d.s.String(ids[k]))
}

// What is absent is null.

func text(s string) any {
	if s == "" {
		return nil
	}
	return valid(s)
}

func positive(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}

func known(id stack.ID) any {
	if id <= stack.Empty {
		return nil
	}
	return int64(id)
}

func poolName(s *snapshot.Snapshot, id snapshot.PoolID) any {
	if id == 0 {
		return nil
	}
	return s.PoolOf(id).String()
}
