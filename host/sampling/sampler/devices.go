package sampler

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
)

// patience is how long a device source may take before it is considered hung.
const patience = 10 * time.Second

// A poller asks a device source again and again, beside the samples.
type poller struct {
	source sample.DeviceSource
	stop   context.CancelFunc
	done   chan struct{}
	asked  chan struct{} // closed when the first answer is there

	mu      sync.Mutex
	devices []sample.Device
	at      time.Time // of the answer
	err     error     // of the last question
	since   time.Time // of the question that is not answered; zero if there is none
}

// poll begins to ask, at most once in a time.
func poll(source sample.DeviceSource, every time.Duration) *poller {
	ctx, stop := context.WithCancel(context.Background())
	p := &poller{source: source, stop: stop, done: make(chan struct{}), asked: make(chan struct{}), since: time.Now()}
	go p.run(ctx, every)
	return p
}

func (p *poller) run(ctx context.Context, every time.Duration) {
	defer close(p.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for first := true; ctx.Err() == nil; first = false {
		p.ask(ctx)
		if first {
			close(p.asked)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

func (p *poller) ask(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	p.mu.Lock()
	p.since = time.Now()
	p.mu.Unlock()
	devices, err := p.source.Read(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	p.err = err
	if err == nil {
		p.devices, p.at = devices, time.Now()
	}
}

// first waits for the first answer, though not long.
func (p *poller) first(ctx context.Context) {
	const long = 3 * time.Second
	ctx, stop := context.WithTimeout(ctx, long)
	defer stop()
	select {
	case <-p.asked:
	case <-ctx.Done():
	}
}

// now returns the devices by the last answer, and a note where there is none that is
// younger than some time. The devices may be changed.
func (p *poller) now(young time.Duration) (devices []sample.Device, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := time.Since(p.at)
	switch {
	case p.err != nil:
		return nil, p.err.Error()
	case p.at.IsZero() || age > young && !p.since.IsZero():
		return nil, fmt.Sprintf("%s has not answered for %s", p.source.Name(), time.Since(p.since).Round(time.Second))
	}
	for _, d := range p.devices {
		d.Processes = append([]sample.Holding{}, d.Processes...)
		devices = append(devices, d)
	}
	return devices, ""
}

// close ends the asking; an answer is not waited for longer than the source's context.
func (p *poller) close() error {
	p.stop()
	<-p.done
	return p.source.Close()
}

// DeviceIndex is the index of what a process of this machine, by its id, has as CUDA's n-th
// device.
func DeviceIndex(pid, n int, devices []sample.Device) int {
	environ, _ := procfs.Process(pid).Environ()
	var visible []string
	if list, ok := environ["CUDA_VISIBLE_DEVICES"]; ok {
		visible = strings.Split(list, ",")
	}
	return deviceOf(n, visible, devices)
}
