package httpbounds

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// NewServer returns a server whose requests cannot hold a connection: the header must
// come within ten seconds, and all of a request and of its answer within a time.
func NewServer(h http.Handler, exchange time.Duration) *http.Server {
	const header, idle = 10 * time.Second, 2 * time.Minute
	return &http.Server{
		Handler: h, ReadHeaderTimeout: header, ReadTimeout: exchange, WriteTimeout: exchange, IdleTimeout: idle, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // it tells of clients that go away
	}
}

// Limit returns a listener with at most some connections at a time, so that clients
// cannot take the descriptors that the rest of the program needs. Further clients wait
// until one of them is closed.
func Limit(l net.Listener, connections int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, connections), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	free   chan struct{} // has a value for each connection
	close  sync.Once
	closed chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: c, gone: func() { <-l.free }}, nil
}

func (l *limited) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that takes a place until it is closed.
type counted struct {
	net.Conn
	once sync.Once
	gone func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.gone)
	return err
}
