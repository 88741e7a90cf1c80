package sampler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strandline/host/gpu/cudaalloc"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
	"strandline/record"
)

// tree is a folder that looks like /proc.
type tree struct {
	t    testing.TB
	root string
}

func newTree(t testing.TB) tree {
	tr := tree{t, t.TempDir()}
	tr.write("self/mountinfo", "30 23 0:26 / "+tr.root+"/cgroup rw - cgroup2 cgroup rw\n")
	return tr
}

func (tr tree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		tr.t.Fatal(err)
	}
}

// process adds one, or changes what it holds.
func (tr tree) process(pid, parent, started int, name string, kib int) {
	dir, page := fmt.Sprint(pid), int(procfs.PageSize>>10)
	tr.write(dir+"/stat", fmt.Sprintf("%d (%s) S %d%s %d 0\n", pid, name, parent, strings.Repeat(" 0", 17), started))
	tr.write(dir+"/status", fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nPPid:\t%d\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nRssFile:\t1024 kB\nRssShmem:\t0 kB\nThreads:\t4\n", name, parent, kib+1024, kib))
	tr.write(dir+"/statm", fmt.Sprintf("%d %d %d 0 0 0 0\n", 2*kib, (kib+1024)/page, 1024/page))
	tr.write(dir+"/cmdline", name+"\x00--serve\x00")
	tr.write(dir+"/cgroup", "0::/jobs\n")
	tr.write(dir+"/environ", "RANK=3\x00CUDA_VISIBLE_DEVICES=1\x00")
	tr.write(dir+"/fd/0", "")
}

func (tr tree) end(pid int) {
	tr.t.Helper()
	if err := os.RemoveAll(filepath.Join(tr.root, fmt.Sprint(pid))); err != nil {
		tr.t.Fatal(err)
	}
}

// start begins to watch a tree, whose processes have no recorder but those in torch.
func (tr tree) start(pid int, devices sample.DeviceSource, torch map[int]record.Stats) *Sampler {
	tr.t.Helper()
	s, err := New(Options{root: tr.root, PID: pid, Devices: devices, Interval: time.Millisecond, dialTorch: recorder(torch)})
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { s.Close() })
	return s
}

// recorder answers like the recorders of processes.
func recorder(torch map[int]record.Stats) func(ctx context.Context, pid int) (*record.Control, error) {
	return func(ctx context.Context, pid int) (*record.Control, error) {
		stats, ok := torch[pid]
		if !ok {
			return nil, record.ErrNotRecorded
		}
		near, far := net.Pipe()
		context.AfterFunc(ctx, func() { far.Close() })
		go func() {
			in, out := bufio.NewReader(far), json.NewEncoder(far)
			if _, err := in.ReadBytes('\n'); err != nil {
				return
			}
			for out.Encode(stats) == nil {
			}
		}()
		return record.NewControl(ctx, near), nil
	}
}

func take(t *testing.T, s *Sampler) *sample.Sample {
	t.Helper()
	out, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// takeUntil takes samples until one is as it should be.
func takeUntil(t *testing.T, s *Sampler, good func(*sample.Sample) bool) *sample.Sample {
	t.Helper()
	live.Waits(t)
	for {
		if out := take(t, s); good(out) {
			return out
		}
		time.Sleep(time.Millisecond)
	}
}

// steady are devices that always answer the same.
type steady []sample.Device

func (steady) Name() string                                    { return "a fake" }
func (s steady) Read(context.Context) ([]sample.Device, error) { return slices.Clone(s), nil }
func (steady) Close() error                                    { return nil }

func pids(s *sample.Sample) (out []int) {
	for _, p := range s.Processes {
		out = append(out, p.PID)
	}
	return out
}

// TestGroupOutside watches a process of another container, whose limit cannot be seen.
func TestGroupOutside(t *testing.T) {
	tr := newTree(t)
	tr.process(10, 1, 100, "server", 5000)
	tr.write("10/cgroup", "0::/../../pod/jobs\n")
	tr.write("cgroup/jobs/memory.current", "6000000\n") // another
	tr.write("cgroup/jobs/memory.max", "8000000\n")
	tr.write("cgroup/jobs/memory.stat", "anon 1\n")
	got := take(t, tr.start(10, nil, nil)).Groups
	if len(got) != 1 || got[0].Name != "/../../pod/jobs" || got[0].Used != nil || got[0].Limit != nil || got[0].Note == "" {
		t.Errorf("%+v", got)
	}
}

func TestProcessAndChildren(t *testing.T) {
	tr := newTree(t)
	tr.process(10, 1, 100, "server", 5000)
	tr.process(11, 10, 101, "worker", 100)
	tr.process(12, 11, 102, "helper", 100)
	tr.process(20, 1, 103, "other", 9000)
	tr.write("cgroup/jobs/memory.current", "6000000\n")
	tr.write("cgroup/jobs/memory.max", "8000000\n")
	tr.write("cgroup/jobs/memory.stat", "anon 1\ninactive_file 1000000\n")
	s := tr.start(10, nil, nil)
	first := take(t, s)
	if got := pids(first); !slices.Equal(got, []int{10, 11, 12}) {
		t.Fatalf("watched %v", got)
	}
	p := first.Processes[0]
	if p.Command != "server --serve" || p.Host == nil || p.Host.Anonymous != 5000<<10 || p.Host.File != 1<<20 || p.State != "sleeping" ||
		*p.Rank != 3 || *p.Threads != 4 || *p.Descriptors != 1 || p.Started != 100 || p.Container != nil {
		t.Errorf("%+v %+v", p, p.Host)
	}
	if len(first.Groups) != 1 || first.Groups[0].Name != "/jobs" || *first.Groups[0].Used != 5000000 || *first.Groups[0].Limit != 8000000 {
		t.Errorf("groups %+v", first.Groups)
	}
	if p.Group != "/jobs" || first.Machine == nil {
		t.Errorf("group %q, machine %v", p.Group, first.Machine)
	}

	if first.Groups[0].Note != "" {
		t.Errorf("its limit is not known: %s", first.Groups[0].Note)
	}

	tr.process(10, 1, 100, "server", 6000)
	tr.end(11) // its child is adopted, and watched on
	tr.process(12, 1, 102, "helper", 200)
	second := take(t, s)
	if got := pids(second); !slices.Equal(got, []int{10, 12}) {
		t.Fatalf("after a child ended: %v", got)
	}
	if second.Processes[0].Host.Anonymous != 6000<<10 {
		t.Errorf("grown to %+v", second.Processes[0].Host)
	}

	tr.end(10) // and the number comes again
	if got := pids(take(t, s)); !slices.Equal(got, []int{12}) {
		t.Errorf("after it ended: %v", got)
	}
	tr.process(10, 1, 900, "stranger", 1)
	last := take(t, s)
	if len(last.Processes) != 2 || last.Processes[0].ID() == p.ID() || last.Processes[0].Command != "stranger --serve" {
		t.Errorf("another process of the same number: %+v", last.Processes)
	}
}

func TestStatesOfProcesses(t *testing.T) {
	tr := newTree(t)
	tr.process(10, 1, 100, "server", 5000)
	s := tr.start(10, nil, nil)
	take(t, s)
	tr.process(10, 1, 100, "other", 12) // exec
	for range statusEach {
		if p := take(t, s).Processes[0]; p.Host.Anonymous != 12<<10 || p.Host.File != 1<<20 {
			t.Errorf("after exec: %+v", p.Host)
		}
	}
	if p := take(t, s).Processes[0]; p.Command != "other --serve" {
		t.Errorf("after exec: %+v", p)
	}
	tr.write("10/status", "Name:\tother\nState:\tZ (zombie)\nPPid:\t1\nThreads:\t1\n")
	tr.write("10/statm", "0 0 0 0 0 0 0\n")
	tr.write("10/cmdline", "")
	if p := take(t, s).Processes[0]; p.State != sample.Zombie || p.Host != nil || p.Command != "other --serve" {
		t.Errorf("a zombie: %+v", p)
	}
	tr.write("10/status", "\x00\xff")
	if p := take(t, s).Processes[0]; p.Host != nil || p.Note == "" {
		t.Errorf("what cannot be read: %+v", p)
	}
}

func TestLargestWithoutDevices(t *testing.T) {
	tr := newTree(t)
	for i := range 30 {
		tr.process(100+i, 1, 100, "p", 1000*i)
	}
	if got := pids(take(t, tr.start(0, nil, nil))); len(got) != maxLargest || got[0] != 110 {
		t.Errorf("watched %v", got)
	}
}

// changing is a source whose devices are those of the test.
type changing struct {
	mu  sync.Mutex
	now []sample.Device
}

func (*changing) Name() string { return "a test" }
func (*changing) Close() error { return nil }

func (c *changing) Read(context.Context) ([]sample.Device, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		return nil, errors.New("no answer")
	}
	return c.now, nil
}

func (c *changing) set(now []sample.Device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// TestDevicesComeLate has a driver that answers at last, and later no longer.
func TestDevicesComeLate(t *testing.T) {
	tr := newTree(t)
	for i := range 3 {
		tr.process(100+i, 1, 100, "p", 1000*(i+1))
	}
	source := &changing{}
	s := tr.start(0, source, nil)
	if got := pids(take(t, s)); !slices.Equal(got, []int{100, 101, 102}) {
		t.Errorf("without an answer: %v", got)
	}
	source.set([]sample.Device{{Processes: []sample.Holding{{PID: 101}}}})
	got := takeUntil(t, s, func(s *sample.Sample) bool { return len(s.Devices) > 0 })
	if got := pids(got); !slices.Equal(got, []int{101}) {
		t.Errorf("with one: %v", got)
	}
	source.set(nil)
	got = takeUntil(t, s, func(s *sample.Sample) bool { return s.DevicesNote != "" })
	if got := pids(got); !slices.Equal(got, []int{101}) {
		t.Errorf("afterwards: %v", got)
	}
}

func TestDevicesAreShared(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tr := newTree(t)
	tr.process(10, 1, 100, "trainer", 5000)
	tr.process(11, 1, 100, "plain", 5000)
	source := steady{
		{Index: 0, UUID: "GPU-a", Used: n(500), Processes: []sample.Holding{{PID: 11, Used: n(300)}, {PID: 99, Used: n(150)}}},
		{Index: 1, UUID: "GPU-b", Used: n(1000), Processes: []sample.Holding{{PID: 10, Used: n(900)}, {PID: 11}}},
	}
	s := tr.start(0, source, map[int]record.Stats{10: {Devices: []record.DeviceStats{{Device: 0, Allocated: 600, Reserved: 700}}}})
	got := takeUntil(t, s, func(s *sample.Sample) bool { // the recorder answers at some time
		return len(s.Devices) == 2 && s.Processes[0].Devices[0].Allocated != nil
	})
	p := got.Processes[0].Devices
	if len(p) != 1 || p[0].Device != 1 || *p[0].Used != 900 || *p[0].Allocated != 600 || *p[0].Cached != 100 || *p[0].Other != 200 || *p[0].Reserved() != 700 {
		t.Errorf("PyTorch's share: %+v", p)
	}
	p = got.Processes[1].Devices
	if len(p) != 2 || *p[0].Used != 300 || p[0].Allocated != nil || p[0].Other != nil || p[1].Used != nil {
		t.Errorf("the share of another one: %+v", p)
	}
	a, b := got.Devices[0], got.Devices[1]
	if *a.Unowned != 150 || *a.Remainder != 50 || a.Processes[1].Owner != sample.Gone || a.Processes[0].Owner != sample.Live {
		t.Errorf("device 0: %+v", a)
	}
	if *b.Unowned != 0 || b.Remainder != nil {
		t.Errorf("device 1, of which not all is known: %+v", b)
	}
}

// counters are those of a PyTorch without a recorder, until they cannot be read.
type counters struct {
	mu     sync.Mutex
	levels []cudaalloc.Level
	err    error
}

func (*counters) Close() {}

func (c *counters) Read() ([]cudaalloc.Level, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.levels, c.err
}

func (c *counters) set(err error, levels ...cudaalloc.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.levels, c.err = levels, err
}

// TestUnknownDevices takes no device from a process that the driver does not have.
func TestUnknownDevices(t *testing.T) {
	p := sample.Process{Devices: []sample.DeviceShare{{Device: 0}}}
	split(&p, nil, []record.DeviceStats{{Device: 0, Allocated: 5}, {Device: 7, Allocated: 5}, {Device: 99, Allocated: 5}}, nil, nil, false, []sample.Device{{Index: 0}, {Index: 7}})
	if len(p.Devices) != 2 || p.Devices[1].Device != 7 {
		t.Errorf("%+v", p.Devices)
	}
}

// TestFloodOfFigures takes figures from one that sends them without a pause, and none that
// no process has.
func TestFloodOfFigures(t *testing.T) {
	tr := newTree(t)
	tr.process(10, 1, 100, "trainer", 5000)
	tr.process(11, 1, 100, "trainer", 5000)
	s := tr.start(0, steady{{UUID: "GPU-a", Processes: []sample.Holding{{PID: 10}, {PID: 11}}}}, map[int]record.Stats{
		10: {Devices: []record.DeviceStats{{Device: 0, Allocated: 5, Reserved: 6}}},
		11: {Devices: []record.DeviceStats{{Device: 0, Allocated: -5}, {Device: 0, Reserved: -6}}},
	})
	got := takeUntil(t, s, func(s *sample.Sample) bool { return s.Processes[0].Devices[0].Allocated != nil })
	if d := got.Processes[1].Devices; len(d) != 1 || d[0].Allocated != nil {
		t.Errorf("%+v", d)
	}
}

// TestFromOutside has a process whose counters are read, one that may not be looked
// into, and one that holds no memory of a device.
func TestFromOutside(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tr := newTree(t)
	for _, pid := range []int{10, 11, 12} {
		tr.process(pid, 1, 100, "trainer", 5000)
	}
	tr.process(12, 10, 100, "worker", 5000)
	source := steady{{UUID: "GPU-a", Used: n(1000), Processes: []sample.Holding{{PID: 10, Used: n(900)}, {PID: 11, Used: n(50)}}}}
	own := &counters{levels: []cudaalloc.Level{{Device: 0, Allocated: 600, Reserved: 700}}}
	s, err := New(Options{root: tr.root, Interval: time.Millisecond, Devices: source, dialTorch: recorder(nil), openGauge: func(pid int) (gauge, error) {
		switch pid {
		case 10:
			return own, nil
		case 11:
			return nil, os.ErrPermission
		}
		t.Errorf("process %d, which holds no memory of a device, was looked into", pid)
		return nil, os.ErrNotExist
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	got := takeUntil(t, s, func(s *sample.Sample) bool {
		return len(s.Processes) == 2 && s.Processes[0].Devices[0].Allocated != nil && s.Processes[1].Note != ""
	})
	if d := got.Processes[0].Devices[0]; *d.Allocated != 600 || *d.Cached != 100 || *d.Other != 200 || got.Processes[0].Note != "" {
		t.Errorf("%+v", got.Processes[0])
	}
	if p := got.Processes[1]; p.Devices[0].Allocated != nil || !strings.Contains(p.Note, "run strandline as root") {
		t.Errorf("one that may not be looked into: %+v", p)
	}
	own.set(nil, cudaalloc.Level{Allocated: 650, Reserved: 700})
	takeUntil(t, s, func(s *sample.Sample) bool { return *s.Processes[0].Devices[0].Allocated == 650 })
	own.set(os.ErrNotExist)
	takeUntil(t, s, func(s *sample.Sample) bool { return s.Processes[0].Devices[0].Allocated == nil })
}

// TestLateLibrary has a process that loads PyTorch after it was looked into: it is looked
// into again, since it has more bytes of files in memory.
func TestLateLibrary(t *testing.T) {
	tr := newTree(t)
	tr.process(10, 1, 100, "trainer", 5000)
	source := steady{{UUID: "GPU-a", Processes: []sample.Holding{{PID: 10}}}}
	var loaded atomic.Bool
	looked := make(chan bool, 1)
	s, err := New(Options{root: tr.root, Interval: time.Millisecond, Devices: source, dialTorch: recorder(nil), openGauge: func(int) (gauge, error) {
		if loaded.Load() {
			return &counters{levels: []cudaalloc.Level{{Device: 0, Allocated: 600, Reserved: 700}}}, nil
		}
		select {
		case looked <- true:
		default:
			t.Error("it is looked into again, though it has loaded nothing")
		}
		return nil, cudaalloc.ErrNotMapped
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	takeUntil(t, s, func(*sample.Sample) bool { return len(looked) > 0 })
	loaded.Store(true)
	status, err := os.ReadFile(filepath.Join(tr.root, "10/status"))
	if err != nil {
		t.Fatal(err)
	}
	tr.write("10/status", strings.Replace(string(status), "RssFile:\t1024 kB", "RssFile:\t204800 kB", 1))
	got := takeUntil(t, s, func(s *sample.Sample) bool {
		return len(s.Processes) == 1 && len(s.Processes[0].Devices) == 1 && s.Processes[0].Devices[0].Allocated != nil
	})
	if d := got.Processes[0].Devices[0]; *d.Allocated != 600 || *d.Cached != 100 {
		t.Errorf("%+v", d)
	}
}

func TestOfAnotherNamespace(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tr := newTree(t)
	tr.process(10, 1, 100, "trainer", 5000)
	if err := os.MkdirAll(filepath.Join(tr.root, "self/ns"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pid:[4026532000]", filepath.Join(tr.root, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	source := steady{{Used: n(100), Processes: []sample.Holding{{PID: 77, Used: n(90)}}}}
	got := takeUntil(t, tr.start(0, source, nil), func(s *sample.Sample) bool { return len(s.Devices) == 1 })
	if len(got.Processes) != 1 || got.Processes[0].State != sample.NotVisible || *got.Processes[0].Devices[0].Used != 90 || *got.Devices[0].Unowned != 0 {
		t.Errorf("%+v", got)
	}
}

func TestDeviceOf(t *testing.T) {
	devices := []sample.Device{{Index: 0, UUID: "GPU-aa"}, {Index: 1, UUID: "GPU-ab"}, {Index: 2, UUID: "MIG-c"}}
	for _, c := range []struct {
		n       int
		visible string
		want    int
	}{{0, "-", 0}, {1, "-", 1}, {0, "2,0", 2}, {1, "2, 0", 0}, {0, "GPU-ab", 1}, {0, "MIG-c", 2}, {3, "1", 3}, {0, "", 0}, {0, "GPU-none", 0}, {0, "-1", 0}} {
		var visible []string
		if c.visible != "-" {
			visible = strings.Split(c.visible, ",")
		}
		if got := deviceOf(c.n, visible, devices); got != c.want {
			t.Errorf("device %d of %q is %d, want %d", c.n, c.visible, got, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ groups, environ, command, want string }{
		{"0::/system.slice/docker-" + id + ".scope", "", "", "0123456789ab   "},
		{"12:memory:/docker/" + id + "\n0::/", "", "", "0123456789ab   "},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f1fd0ab_9d1e_4a6c_b1f4_3f6a1d3cf1d2.slice/cri-containerd-" + id + ".scope", "", "", "0123456789ab 8f1fd0ab-9d1e-4a6c-b1f4-3f6a1d3cf1d2  "},
		{"4:memory:/kubepods/besteffort/pod8f1fd0ab-9d1e-4a6c-b1f4-3f6a1d3cf1d2/" + id, "HOSTNAME=llm-0", "", "0123456789ab llm-0  "},
		{"5:memory:/slurm/uid_1000/job_4711/step_0/task_0", "", "", "  4711 "},
		{"0::/system.slice/slurmstepd.scope/job_12/step_batch/user", "", "", "  12 "},
		{"0::/", "SLURM_JOB_ID=9\x00HOSTNAME=box", "", "  9 "},
		{"0::/", "", "ray::Trainer.fit", "   Trainer.fit"},
		{"0::/lxc.payload.web/x", "", "", "web   "},
		{"0::/user.slice/user-0.slice/session-1.scope", "HOSTNAME=box", "python ray::x", "   "},
		{"", "", "", "   "},
	} {
		p := sample.Process{Command: c.command}
		place(&p, c.groups, procfs.Variables(c.environ))
		container := ""
		if p.Container != nil {
			container = *p.Container
		}
		if got := strings.Join([]string{container, p.Pod, p.Job, p.Actor}, " "); got != c.want {
			t.Errorf("%q, %q, %q: %q, want %q", c.groups, c.environ, c.command, got, c.want)
		}
	}
}

// TestRayKills reads from where on Ray kills a worker.
func TestRayKills(t *testing.T) {
	for _, c := range []struct {
		environ, command string
		want             float64 // 0 is none
	}{
		{"A=b", "ray::IDLE", 0.95},
		{"RAY_memory_usage_threshold=0.8", "ray::Trainer.fit", 0.8},
		{"RAY_memory_usage_threshold=x", "ray::Trainer.fit", 0},
		{"RAY_memory_usage_threshold=0.8\x00RAY_memory_monitor_refresh_ms=0", "ray::Trainer.fit", 0},
		{"RAY_memory_usage_threshold=0.8", "python driver.py", 0},
	} {
		p := sample.Process{Command: c.command}
		place(&p, "0::/", procfs.Variables(c.environ))
		if (p.RayKills != nil) != (c.want != 0) || p.RayKills != nil && *p.RayKills != c.want {
			t.Errorf("%q of %s: %v, want %g", c.environ, c.command, p.RayKills, c.want)
		}
	}
}

// TestCaches reads the bounds of caches from the end of a long command, and from the environment.
func TestCaches(t *testing.T) {
	tr := newTree(t)
	for pid, c := range map[int][2]string{
		10: {"/opt/llama-server\x00-m\x00/" + strings.Repeat("x", 2000) + "\x00--cache-ram\x0064\x00", ""},
		11: {"llama-server\x00", "A=b\x00LLAMA_ARG_CACHE_RAM=32\x00"},
		12: {"python\x00", "LLAMA_ARG_CACHE_RAM=32\x00"},
		13: {"/ray/gcs_server\x00--log_dir=/tmp\x00", "RAY_task_events_max_num_task_in_gcs=5000\x00"},
	} {
		tr.process(pid, 1, 100, "p", 1000)
		tr.write(fmt.Sprint(pid, "/cmdline"), c[0])
		tr.write(fmt.Sprint(pid, "/environ"), c[1])
	}
	got := map[int]int64{}
	for _, p := range take(t, tr.start(0, nil, nil)).Processes {
		if p.PromptCache != nil {
			got[p.PID] = *p.PromptCache >> 20
		}
		if p.TaskEvents != nil {
			got[p.PID] = *p.TaskEvents
		}
	}
	if want := map[int]int64{10: 64, 11: 32, 13: 5000}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestYoung looks at this process, whose age and reads are known while it is young.
func TestYoung(t *testing.T) {
	live.Linux(t)
	s, err := New(Options{PID: os.Getpid(), Interval: time.Hour, dialTorch: recorder(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := s.open(os.Getpid(), origin{})
	defer p.close()
	p.young = time.Now().Add(time.Hour)
	if p.files.io == nil { // this test runs for minutes by now
		if p.files.io, err = os.Open("/proc/self/io"); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.reads(s.buffer); p.now.Age == nil || *p.now.Age < 0 || n == nil || *n <= 0 {
		t.Errorf("age %v, read %v", p.now.Age, n)
	}
	p.young = time.Now().Add(-time.Hour)
	if n := p.reads(s.buffer); n != nil {
		t.Errorf("an old process has read %d", *n)
	}
}
