package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strandline/host/sampling/sample"
)

// A Poller asks an engine again and again, beside what else is done.
type Poller struct {
	stop context.CancelFunc
	done chan struct{}
	old  time.Duration // the age from which an answer is not that of now

	mu   sync.Mutex
	load sample.Load
	at   time.Time // of the answer; when it began if there is none
}

// Poll begins to ask the engine at an address, which [Endpoint] has completed, each time
// that some time is over.
func Poll(endpoint string, every time.Duration) *Poller {
	const minWait, late = 10 * time.Second, 3 // answers
	ctx, stop := context.WithCancel(context.Background())
	p := &Poller{stop: stop, done: make(chan struct{}), old: max(minWait, late*every), at: time.Now(), load: sample.Load{Note: "it has not answered yet"}}
	go p.run(ctx, endpoint, every)
	return p
}

func (p *Poller) run(ctx context.Context, endpoint string, every time.Duration) {
	defer close(p.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for ctx.Err() == nil {
		load, err := Read(ctx, endpoint)
		if err != nil {
			load = &sample.Load{Note: err.Error()}
		}
		p.mu.Lock()
		p.load, p.at = *load, time.Now()
		p.mu.Unlock()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// Now returns the newest answer; its note states why there is none.
func (p *Poller) Now() *sample.Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := time.Since(p.at); age > p.old {
		return &sample.Load{Note: fmt.Sprintf("it has not answered for %s", age.Round(time.Second))}
	}
	load := p.load
	return &load
}

// Close ends the asking.
func (p *Poller) Close() {
	p.stop()
	<-p.done
}
