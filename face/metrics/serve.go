// Package metrics writes what a watch knows as metrics, in the text formats of
// Prometheus and OpenMetrics, and serves them by HTTP. A [Server] is the entry point;
// families.go holds the metrics.
package metrics

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"strandline/internal/httpbounds"
)

// A Server answers scrapes with the newest state:
//
//	/metrics    the metrics
//	/-/ready    200 once there is a sample
//	/-/healthy  200 while samples are taken
type Server struct {
	http     *http.Server
	listener net.Listener
	stale    time.Duration

	mu    sync.Mutex
	state *State // not changed once it is here
	at    time.Time
}

// maxConnections is how many clients are served at a time: a scraper keeps one.
const maxConnections = 16

// Listen begins to serve at an address such as ":9400" or "localhost:9400". Without a new
// state for the time stale, it is not healthy.
func Listen(address string, stale time.Duration) (*Server, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("%q is not an address such as :9400 or localhost:9400", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, stale: stale, at: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("GET /-/healthy", s.healthy)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "strandline: metrics are at /metrics\n")
	})
	const long = 30 * time.Second
	s.http = httpbounds.NewServer(mux, long, maxConnections)
	go s.http.Serve(l) // returns when the server is closed
	return s, nil
}

// URL is where the metrics are, as seen from this machine.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/metrics"
}

// Set replaces the state that is served. The caller must not change it afterwards.
func (s *Server) Set(state *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.at = state, time.Now()
}

// Close ends the server, and waits a moment for answers that are being written.
func (s *Server) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if err := s.http.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.http.Close()
}

func (s *Server) now() (*State, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, time.Since(s.at)
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if state, _ := s.now(); state == nil {
		http.Error(w, "no sample was taken yet", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	if _, age := s.now(); age > s.stale {
		http.Error(w, fmt.Sprintf("no sample was taken for %s", age.Round(time.Second)), http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "healthy\n")
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	state, _ := s.now()
	if state == nil {
		http.Error(w, "no sample was taken yet", http.StatusServiceUnavailable)
		return
	}
	kind := contentType(r.Header.Get("Accept"))
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	var out io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		out = packed
	}
	// An error is that of a client that has gone.
	_ = state.write(out, strings.HasPrefix(kind, openMetrics))
}
