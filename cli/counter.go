package cli

import (
	"fmt"
	"sync"
	"time"
)

// counter is one line on stderr, from the first second on, if that is a terminal.
type counter struct {
	g       *globals
	lock    sync.Mutex
	what    string
	n, all  int
	timer   *time.Timer
	visible bool
	ended   bool
}

func newCounter(g *globals) *counter {
	c := &counter{g: g}
	if g.progressTerminal() {
		c.timer = time.AfterFunc(time.Second, func() {
			c.lock.Lock()
			defer c.lock.Unlock()
			c.visible = !c.ended
			c.show()
		})
	}
	return c
}

// begin sets what is done next, all times; 0 means once.
func (c *counter) begin(what string, all int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.what, c.n, c.all = what, 0, all
	c.show()
}

func (c *counter) next() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.n++
	c.show()
}

func (c *counter) show() {
	switch {
	case !c.visible:
	case c.all == 0:
		fmt.Fprintf(c.g.env.stderr, "\r\x1b[K%s", c.what)
	default:
		fmt.Fprintf(c.g.env.stderr, "\r\x1b[K%s: %d of %d", c.what, c.n, c.all)
	}
}

func (c *counter) clear() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.visible {
		fmt.Fprint(c.g.env.stderr, "\r\x1b[K")
		c.visible = false
	}
}
