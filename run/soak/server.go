package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/engine"
	"strandline/host/sampling/levels"
	"strandline/host/sampling/sample"
	"strandline/host/sampling/sampler"
	"strandline/judge/gate"
	"strandline/judge/samples"
)

// A server is the process that answers, with its children.
type server struct {
	root    sample.ID
	sampler *sampler.Sampler
	note    string // what is not judged of it
	metrics string // where the engine reports of itself
	silent  bool   // it does not answer there
	levels  *levels.Reader
	held    map[sample.ID]int64
}

// findServer finds the process of the server and begins to watch it.
func findServer(ctx context.Context, o *Options) (*server, error) {
	if o.PID != 0 {
		return watchServer(o, o.PID)
	}
	p, note, err := listener(ctx, o.Load.URL)
	if err != nil {
		return nil, err
	}
	s, err := watchServer(o, int(p))
	if err == nil {
		s.note = note
	}
	return s, err
}

func watchServer(o *Options, pid int) (*server, error) {
	started, err := procfs.Process(pid).Started()
	if procfs.HasExited(err) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	s := &server{root: sample.ID{PID: pid, Started: started}, levels: levels.NewReader(), held: map[sample.ID]int64{}}
	var host map[sample.ID]int64
	if err == nil {
		host, err = s.levels.Read([]sample.ID{s.root}, true)
	}
	switch {
	case procfs.Lacks(err):
		return nil, fmt.Errorf("process %d: %w", pid, err)
	case len(host) == 0:
		return nil, fmt.Errorf("the memory of process %d cannot be read; run strandline as the same user, or as root", pid)
	}
	var devices sample.DeviceSource
	if o.Devices != nil {
		devices = o.Devices()
	}
	if s.sampler, err = sampler.New(sampler.Options{PID: pid, Interval: lookInterval, Devices: devices}); err != nil {
		return nil, err
	}
	if u, err := url.Parse(o.Load.URL); err == nil {
		s.metrics, _ = engine.Endpoint(u.Scheme + "://" + u.Host) // it is one, for requests are sent to it
	}
	return s, nil
}

func (s *server) close() { s.sampler.Close() }

// refind finds the server after a process of it ended.
func (s *server) refind(ctx context.Context, o *Options) (*server, error) {
	if !procfs.Process(s.root.PID).Ended(s.root.Started) {
		if st, err := procfs.Process(s.root.PID).Status(); err == nil && !strings.HasPrefix(st.State, "Z") {
			return watchServer(o, s.root.PID) // it was a child
		}
	}
	other := *o
	other.PID = 0
	return findServer(ctx, &other)
}

// dialing is how long a server may take to accept a connection.
const dialing = 10 * time.Second

// listener finds the process that accepts connections to the address of a URL, and has not
// inherited the socket from another that does. The note states what it could miss.
func listener(ctx context.Context, base string) (p procfs.Process, note string, err error) {
	u, err := url.Parse(base)
	if err != nil {
		return 0, "", err
	}
	if err := isLocal(u.Hostname()); err != nil {
		return 0, "", err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	d := net.Dialer{Timeout: dialing}
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		if call := (*net.OpError)(nil); errors.As(err, &call) && call.Err != nil {
			err = call.Err // without the address once more
		}
		return 0, "", fmt.Errorf("%s does not accept a connection (%w): is the server running?", u.Host, err)
	}
	to := c.RemoteAddr().(*net.TCPAddr).AddrPort() // the name of the URL can have several
	c.Close()
	all := procfs.Listeners(to)
	if len(all) == 0 {
		return 0, "", fmt.Errorf("no readable process listens on %s. If the server is in a container or belongs to another user, give its process with --pid, as root", to)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(p procfs.Process) bool {
		return slices.ContainsFunc(all, func(q procfs.Process) bool { return descends(p, q) })
	})
	if name, _, _ := strings.Cut(all[0].Command(), " "); filepath.Base(name) == "docker-proxy" {
		return 0, "", fmt.Errorf("port %s is forwarded into a container: give the process of the server with --pid (docker inspect -f '{{.State.Pid}}' NAME), as root", port)
	}
	if len(all) > 1 {
		note = fmt.Sprintf("%d processes share %s, and only pid %d and its children are judged. Give their parent with --pid", len(all), to, int(all[0]))
	}
	return all[0], note, nil
}

// descends reports whether a process is a child of another one, or of its children.
func descends(p, of procfs.Process) bool {
	children, _ := of.Descendants()
	return p != of && slices.Contains(children, p)
}

// here returns an error unless a name is that of this machine.
func isLocal(host string) error {
	addresses, err := net.LookupIP(host)
	if err != nil {
		if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) && unknown.IsNotFound {
			err = errors.New("no such name")
		}
		return fmt.Errorf("%s has no address: %w", host, err)
	}
	own, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if a.IsLoopback() || a.IsUnspecified() {
			return nil
		}
		for _, o := range own {
			if n, ok := o.(*net.IPNet); ok && n.IP.Equal(a) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not this machine: the memory of a server can be read only where it runs; run soak there", host)
}

// material is the least that a process holds whose end matters, as a share of all
// processes of the server.
const material = 0.05

// An ending is what has ended of a server.
type ending int

const (
	nothing      ending = iota
	part                // a child that held much of the memory: its requests may have failed
	firstProcess        // the first process
)

// ended states what has ended since memory was last read. Children come and go: workers
// that are replaced after some requests, programs that are run for one.
func (s *server) ended(now *sample.Sample) ending {
	lives := map[sample.ID]bool{}
	for i := range now.Processes {
		p := &now.Processes[i]
		lives[p.ID()] = p.State != sample.Zombie
	}
	if !lives[s.root] {
		return firstProcess
	}
	var total int64
	for _, bytes := range s.held {
		total += bytes
	}
	for id, bytes := range s.held {
		if !lives[id] && float64(bytes) > material*float64(total) {
			return part
		}
	}
	return nothing
}

// A reading is what the server's processes hold at a moment.
type reading struct {
	host      int64
	devices   []api.SoakDevice
	processes []api.SoakProcess
	held      map[sample.ID]int64
	note      string
}

// total is all of it, host and devices.
func (r *reading) total() int64 {
	sum := r.host
	for _, d := range r.devices {
		sum += d.Bytes
	}
	return sum
}

// errEnded states that the server's process is gone.
var errEnded = errors.New("the process of the server has ended")

// read takes a sample, with the figures of the host exactly or by counters.
func (e *experiment) read(ctx context.Context, exact bool) (*reading, error) {
	s, err := e.server.sampler.Sample(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.server.sampler.Short(); err != nil {
		return nil, err
	}
	e.o.Keep(s)
	if e.server.ended(s) == firstProcess {
		return nil, errEnded
	}
	var live []sample.ID
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State != sample.Zombie {
			live = append(live, p.ID())
		}
	}
	host, err := e.server.levels.Read(live, exact)
	if err != nil {
		return nil, err
	}
	r := &reading{held: map[sample.ID]int64{}, note: s.DevicesNote, devices: []api.SoakDevice{}, processes: []api.SoakProcess{}}
	e.caches = e.caches[:0]
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.State == sample.Zombie {
			continue
		}
		if samples.CacheDoubt(samples.Caches(p), 0) != "" {
			e.caches = append(e.caches, *p)
		}
		bytes, ok := host[p.ID()]
		if !ok {
			continue
		}
		own := api.SoakProcess{PID: p.PID, Command: p.Command, HostBytes: bytes, Devices: []api.SoakDevice{}}
		r.held[p.ID()] = bytes
		for k := range p.Devices {
			d := &p.Devices[k]
			held := d.Used
			if held == nil {
				held = d.Reserved()
			}
			if held == nil {
				continue
			}
			r.held[p.ID()] += *held
			one := api.SoakDevice{Device: d.Device, Bytes: *held, Allocated: d.Allocated}
			own.Devices = append(own.Devices, one)
			r.add(one)
		}
		r.host += bytes
		r.processes = append(r.processes, own)
	}
	if len(r.processes) == 0 {
		return nil, errEnded
	}
	return r, nil
}

// add adds what a process holds of a device.
func (r *reading) add(d api.SoakDevice) {
	i := slices.IndexFunc(r.devices, func(of api.SoakDevice) bool { return of.Device == d.Device })
	if i < 0 {
		r.devices = append(r.devices, api.SoakDevice{Device: d.Device})
		i = len(r.devices) - 1
	}
	sum := &r.devices[i]
	sum.Bytes += d.Bytes
	if d.Allocated != nil {
		all := *d.Allocated
		if sum.Allocated != nil {
			all += *sum.Allocated
		}
		sum.Allocated = &all
	}
}

// The settling of memory.
const (
	// fall is by how much memory must fall to count, in bytes and as a share.
	fall      = 256 << 10
	fallShare = 0.0005
	// stale is how old the figures of devices may be that a sample has.
	stale = 3 * time.Second
)

// reported is what the engine reports of itself; nil if it reports nothing, as servers
// need not. One that does not answer is not asked again: each gap would wait for it.
func (e *experiment) reported(ctx context.Context, patience time.Duration) *sample.Load {
	if e.server.silent {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, patience)
	defer stop()
	own, err := engine.Read(limited, e.server.metrics)
	if err != nil && ctx.Err() == nil && (limited.Err() != nil || engine.Late(err) || errors.Is(err, context.DeadlineExceeded)) {
		e.server.silent = true
		e.add("the server's /metrics does not answer, and is no longer asked")
	}
	return own
}

// busy reports whether requests are in progress, as the engine states.
func busy(w *api.SoakWave) bool { return w.Engine.InProgress() != nil && *w.Engine.InProgress() > 0 }

// settle waits until memory has not fallen for some time, and enters what is held then. It waits by
// counters, and reads the exact figures once: they cost a large server its slowest requests.
func (e *experiment) settle(ctx context.Context, w *api.SoakWave) error {
	began := time.Now()
	since, lowest := began, int64(0) // when it fell last, and to what
	for settled := false; ; {
		asked := time.Now()
		r, err := e.read(ctx, settled)
		if procfs.Lacks(err) && asked.Sub(began) < e.o.Gap && ctx.Err() == nil {
			e.add(fmt.Sprintf("memory could not be read for a while: %v", err))
			pause(ctx, e.o.Quiet/5)
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if settled {
			w.HostBytes, w.Devices, w.Processes = &r.host, r.devices, r.processes
			w.Settled += time.Since(began).Seconds()
			e.server.held = r.held
			e.note(r.note, busy(w))
			return nil
		}
		now := time.Now()
		minAge := e.o.Quiet
		if _, host := e.o.Limits[gate.Host]; len(r.devices) > 0 || !host {
			minAge = max(minAge, stale)
		}
		total := r.total()
		if lowest == 0 || total < lowest-max(fall, int64(fallShare*float64(lowest))) {
			lowest, since = total, now
		}
		w.Engine = e.reported(ctx, max(e.o.Gap-now.Sub(began), minAge))
		now = time.Now()
		still := now.Sub(since) >= minAge
		if settled = still && !busy(w) || now.Sub(began) >= max(e.o.Gap, minAge); settled {
			w.Falling = !still && !busy(w)
			continue
		}
		pause(ctx, max(e.o.Quiet/5, 10*now.Sub(asked)))
		if ctx.Err() != nil {
			return nil
		}
	}
}
