// Package web serves the page to a browser on this machine. What the page asks
// is answered by package engine; here is only HTTP, and who may ask: those who
// have the token of the first URL, from the page's own origin.
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
	"net/url"
	"path"
	"strings"
	"time"

	"strandline/face/web/engine"
)

// policy lets the page load itself and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// An Asker answers what a page asks.
type Asker interface {
	Ask(ctx context.Context, name string, params url.Values) engine.Answer
}

// A Server serves a page and who answers it.
type Server struct {
	asker Asker
	port  string
	token string
	// Pack compresses answers: worth it over a tunnel.
	Pack bool
	// Index is the file that the page begins with.
	Index string
}

// New makes a server that is to be reached at a port of this machine.
func New(a Asker, port int) *Server {
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	return &Server{asker: a, Index: "index.html", port: fmt.Sprint(port), token: hex.EncodeToString(secret)}
}

// URL is the address to open first. It holds the token.
func (s *Server) URL() string { return "http://127.0.0.1:" + s.port + "/?t=" + s.token }

// Serve answers on a listener until the context is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) cookie() string { return "strandline-" + s.port }

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
	if given := r.URL.Query().Get("t"); r.URL.Path == "/" && given != "" {
		s.enter(w, r, given)
		return
	}
	if c, err := r.Cookie(s.cookie()); err != nil || !s.knows(c.Value) {
		http.Error(w, "This page is private. Open the address that strandline printed.", http.StatusForbidden)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, "/api/"); ok {
		s.answer(w, r, name)
		return
	}
	s.asset(w, r)
}

// refusal is why a request is not answered.
type refusal struct {
	status int
	text   string
}

// refuses tells requests that cannot come from the page: another site may know
// the port, but not give itself our name.
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
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &refusal{http.StatusMethodNotAllowed, "This server answers GET only."}
	}
	return nil
}

func (s *Server) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

// enter swaps the token of the first URL for a cookie, so that addresses which
// are copied later hold no secret.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, token string) {
	if !s.knows(token) {
		http.Error(w, "The token of this address is not the one that strandline printed.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// answer puts a question to who answers the page.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string) {
	tag := s.tag(name, r.URL.RawQuery)
	if r.Header.Get("If-None-Match") == tag {
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a := s.asker.Ask(r.Context(), name, r.URL.Query())
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
func (s *Server) tag(name, query string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s?%s", s.token, name, query)
	return fmt.Sprintf(`"%016x"`, h.Sum64())
}

// send writes a body, compressed if that is asked for and worth it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	const worth = 2048
	var out io.Writer = w
	if s.Pack && len(body) > worth && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
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

// asset answers with a file of the page. There are no folders.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = s.Index
	}
	body, err := assets.ReadFile("assets/" + name)
	if err != nil || strings.Contains(name, "/") {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	s.send(w, r, http.StatusOK, body)
}

// mediaTypes are those of the page's files; the system's table may differ.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}
