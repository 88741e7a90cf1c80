package httpbounds

import (
	"container/list"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// NewServer returns a server whose requests cannot hold a connection: the header must
// come within ten seconds, and all of a request and of its answer within a time. It has at
// most maxConnections at a time, so that clients cannot take the descriptors that the rest
// of the program needs.
func NewServer(h http.Handler, exchange time.Duration, maxConnections int) *http.Server {
	const header, idle = 10 * time.Second, 2 * time.Minute
	p := &places{max: maxConnections, open: map[net.Conn]*list.Element{}}
	return &http.Server{
		Handler: p.answers(h), ConnState: p.changed,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) },
		ReadHeaderTimeout: header, ReadTimeout: exchange, WriteTimeout: exchange, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // it tells of clients that go away
	}
}

// places are those of a server's connections. Where all are taken, a new connection
// replaces the one whose request has been waited for the longest: whoever opens many and
// sends nothing keeps nobody else waiting.
type places struct {
	mu      sync.Mutex
	max     int
	open    map[net.Conn]*list.Element // of waiting; nil while a request is answered
	waiting list.List                  // of connections, that which waits the longest first
}

type connection struct{} // the key of a request's connection

func (p *places) changed(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if gone := p.enter(c); gone != nil {
			gone.Close()
		}
	case http.StateHijacked, http.StateClosed:
		p.leave(c)
	}
}

// enter gives a place to a new connection, and returns one to close in its stead.
func (p *places) enter(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = p.waiting.PushBack(c)
	if len(p.open) <= p.max {
		return nil
	}
	oldest := p.waiting.Front()
	gone := p.waiting.Remove(oldest).(net.Conn)
	delete(p.open, gone)
	return gone
}

func (p *places) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.open[c]; e != nil {
		p.waiting.Remove(e)
	}
	delete(p.open, c)
}

// answers is a handler during whose answers a connection keeps its place.
func (p *places) answers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
			if !p.begin(c) {
				panic(http.ErrAbortHandler) // it is closed
			}
			defer p.end(c)
		}
		h.ServeHTTP(w, r)
	})
}

func (p *places) begin(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.open[c]
	if ok {
		p.waiting.Remove(e)
		p.open[c] = nil
	}
	return ok
}

func (p *places) end(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.open[c]; ok {
		p.open[c] = p.waiting.PushBack(c)
	}
}
