// Package metrics writes what a watch knows as metrics, in the text formats of
// Prometheus and OpenMetrics, and serves them by HTTP. A [Server] is the entry point;
// families.go holds the metrics.
package metrics

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
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
	scheme   string
	stale    time.Duration

	mu    sync.Mutex
	state *State // not changed once it is here
	at    time.Time
}

// maxConnections is how many clients are served at a time: a scraper keeps one.
const maxConnections = 16

// Access is who is answered, and how. The zero value answers everybody in the clear.
type Access struct {
	// Certificate is that of each connection, which is then encrypted, unless it is nil.
	Certificate func() (*tls.Certificate, error)
	// Token is what a request for metrics must have after "Authorization: Bearer ", unless
	// it is empty. The state of the server itself is no secret.
	Token string
}

// Listen begins to serve at an address such as ":9400" or "localhost:9400". Without a new
// state for the time stale, it is not healthy.
func Listen(address string, stale time.Duration, access Access) (*Server, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("%q is not an address such as :9400 or localhost:9400", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, stale: stale, at: time.Now(), scheme: "http"}
	if access.Certificate != nil {
		s.scheme = "https"
		l = tls.NewListener(l, &tls.Config{
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"http/1.1"}, // a connection has one request at a time
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return access.Certificate() },
		})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", access.requireToken(http.HandlerFunc(s.metrics)))
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

// requireToken is a handler that answers requests with the token, if there is one.
func (a Access) requireToken(h http.Handler) http.Handler {
	if a.Token == "" {
		return h
	}
	want := sha256.Sum256([]byte(a.Token)) // the comparison takes the same time for each length
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="strandline"`)
			http.Error(w, "the request has no valid token", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// URL is where the metrics are, as seen from this machine.
func (s *Server) URL() string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return s.scheme + "://" + net.JoinHostPort(host, port) + "/metrics"
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
