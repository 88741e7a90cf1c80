// Package web serves the page to a browser on this machine. What the page asks
// is answered by package engine; this package adds HTTP and access control.
//
// The files of the page contain nothing of a snapshot and are served to anyone. What
// it asks is answered to those who have the session's secret, in a header, which
// the page gets for the token of the first URL and keeps in its origin's storage.
// A cookie would do less: browsers send it to every port of this machine, where
// other users have servers.
package web

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"strandline/face/api/page"
	"strandline/face/web/engine"
	"strandline/input"
	"strandline/internal/httpbounds"
	"strandline/internal/packed"
)

// policy lets the page load itself and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A Server serves a page and the answers to its questions.
type Server struct {
	asker  atomic.Pointer[serving]
	turns  atomic.Int64
	port   string
	token  string // of the address that is printed
	secret string // of the session
	once   sync.Map
	taking sync.Mutex // held while dropped files are read
	// Pack compresses answers, which helps over a tunnel.
	Pack bool
	// Open, if not nil, shows files that are dropped on the page, and returns the number of the
	// first of them.
	Open func([]input.Source) (first int, err error)
}

// serving is who answers, the document that the page begins with, and how many answered before.
type serving struct {
	engine.Asker
	index string
	turn  int64
}

// New makes a server of a page that begins with a document, and is to be reached at a port of
// this machine.
func New(a engine.Asker, index string, port int) *Server {
	s := &Server{port: fmt.Sprint(port), token: random(), secret: random()}
	s.Show(a, index)
	return s
}

// Show lets another answer from now on, and so shows another page to who asks next.
func (s *Server) Show(a engine.Asker, index string) {
	s.asker.Store(&serving{a, index, s.turns.Add(1)})
}

// random returns 128 unpredictable bits.
func random() string {
	bits := make([]byte, 16)
	rand.Read(bits) // never fails
	return hex.EncodeToString(bits)
}

// URL is the address to open first. It holds a token, which opens the page as often
// as the user wants.
func (s *Server) URL() string { return s.address(s.token) }

// Once is an address like URL whose token opens the page once: a browser that is
// started with it keeps it in its history, and may show it to others.
func (s *Server) Once() string {
	token := random()
	s.once.Store(token, true)
	return s.address(token)
}

func (s *Server) address(token string) string { return "http://127.0.0.1:" + s.port + "/?t=" + token }

// maxConnections is how many are served at a time: a browser opens 6.
const maxConnections = 64

// Serve answers on a listener until the context is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	const long = 10 * time.Minute // a large file that is dropped, or an answer through a tunnel
	server := httpbounds.NewServer(s, long, maxConnections)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Headers by which the page shows a token and the session's secret. Another site
// cannot set them.
const (
	tokenHeader   = "Strandline-Token"
	sessionHeader = "Strandline-Session"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := s.refuses(r); err != nil {
		http.Error(w, err.text, err.status)
		return
	}
	name, asks := strings.CutPrefix(r.URL.Path, "/api/")
	switch {
	case !asks:
		s.asset(w, r)
	case name == "enter":
		s.enter(w, r)
	case r.Header.Get(sessionHeader) == "":
		forbid(w, "This page is private. Open the address that strandline printed.")
	case !same(r.Header.Get(sessionHeader), s.secret):
		forbid(w, "This page is of an earlier run of strandline. Open the address that strandline now printed.")
	case r.Method == http.MethodPost:
		s.drop(w, r)
	default:
		s.answer(w, r, name)
	}
}

// refusal is why a request is not answered.
type refusal struct {
	status int
	text   string
}

// refuses returns a refusal for requests that cannot come from the page: another site
// may know the port, but cannot use our name.
func (s *Server) refuses(r *http.Request) *refusal {
	switch r.Host {
	case "127.0.0.1:" + s.port, "localhost:" + s.port, "[::1]:" + s.port:
	default:
		return &refusal{http.StatusMisdirectedRequest, "This server answers to 127.0.0.1 and localhost only."}
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return &refusal{http.StatusForbidden, "This server answers its own page only."}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, "/api/") && site != "" && site != "same-origin" {
		return &refusal{http.StatusForbidden, "This server answers its own page only."}
	}
	drops := r.Method == http.MethodPost && r.URL.Path == "/api/drop" && s.Open != nil
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !drops {
		return &refusal{http.StatusMethodNotAllowed, "This server answers GET only."}
	}
	return nil
}

// same reports whether a secret is the expected one, in constant time.
func same(given, want string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}

// enter answers a token with the secret of the session.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get(tokenHeader)
	if _, once := s.once.LoadAndDelete(token); !once && !same(token, s.token) {
		forbid(w, "The token in this address has been used, or is not strandline's. Open the address that strandline printed.")
		return
	}
	w.Header().Set("Content-Type", mediaTypes[".txt"])
	io.WriteString(w, s.secret)
}

// forbid refuses with a sentence for the page to show.
func forbid(w http.ResponseWriter, why string) {
	reply(w, http.StatusForbidden, page.Refusal{Error: why})
}

// answer passes a question to who answers.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string) {
	asker := s.asker.Load()
	tag := s.tag(asker.turn, name, r.URL.RawQuery)
	if r.Header.Get("If-None-Match") == tag {
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	var a engine.Answer
	if name == "page" {
		a = pageOf(r.Context(), asker.Asker)
	} else {
		a = asker.Ask(r.Context(), name, r.URL.Query())
	}
	h := w.Header()
	h.Set("Content-Type", a.Type)
	if a.Lasting {
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, no-cache")
	}
	if a.Name != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	}
	s.send(w, r, a.Status, a.Body)
}

// tag names an answer for as long as the server lives.
func (s *Server) tag(turn int64, name, query string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %s?%s", s.secret, turn, name, query)
	return fmt.Sprintf(`"%016x"`, h.Sum64())
}

// send writes a body, compressed if the client accepts that and the body is large.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	const minPacked = 2048
	var out io.Writer = w
	if s.Pack && len(body) > minPacked && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer z.Close()
		out = z
	} else {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		out.Write(body)
	}
}

// asset answers with a file of the page, which has no folders.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = s.asker.Load().index
	}
	body, err := assets.ReadFile("assets/" + name + ".gz")
	if err != nil || strings.Contains(name, "/") {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	s.send(w, r, http.StatusOK, packed.Own(body))
}

// mediaTypes are those of the page's files; the system's table may differ.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}
