package web

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"strandline/face/web/engine"
	"strandline/input"
)

const example = "../../examples/image-leak/step-4.pickle"

func exampleEngine() *engine.Engine {
	files, err := input.OpenPaths([]string{example}, input.Options{})
	if err != nil {
		panic(err)
	}
	return engine.New(files, engine.Sources(files))
}

// loadedEngine has read the example.
func loadedEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := exampleEngine()
	if err := e.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return e
}

// loaded is a server of that engine, on port 4242.
func loaded(t *testing.T) *Server {
	t.Helper()
	return New(loadedEngine(t), "index.html", 4242)
}

// ask sends a request with the secret; edit changes it.
func ask(s *Server, target string, edit func(*http.Request)) *http.Response {
	r := httptest.NewRequest("GET", target, nil)
	r.Host = "127.0.0.1:4242"
	r.Header.Set(sessionHeader, s.secret)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhoMayAsk goes through the ways in which someone else could ask.
func TestWhoMayAsk(t *testing.T) {
	s := loaded(t)
	for _, c := range []struct {
		name, target string
		edit         func(*http.Request)
		want         int
	}{
		{"the page", "/", nil, 200},
		{"a question", "/api/session", nil, 200},
		{"localhost", "/api/session", func(r *http.Request) { r.Host = "localhost:4242" }, 200},
		{"its own origin", "/api/session", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:4242") }, 200},
		{"from the page itself", "/api/session", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }, 200},
		{"another host name", "/api/session", func(r *http.Request) { r.Host = "evil.example:4242" }, 421},
		{"a name that resolves here", "/", func(r *http.Request) { r.Host = "127.0.0.1.evil.example:4242" }, 421},
		{"another port", "/", func(r *http.Request) { r.Host = "127.0.0.1:80" }, 421},
		{"no host", "/", func(r *http.Request) { r.Host = "" }, 421},
		{"another origin", "/api/session", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"a page without origin", "/api/session", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"another port of this machine", "/api/session", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:80") }, 403},
		{"an image on another site", "/api/tile", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"another port, same site", "/api/tile", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"no secret", "/api/session", func(r *http.Request) { r.Header.Del(sessionHeader) }, 403},
		{"no secret, the page", "/", func(r *http.Request) { r.Header.Del(sessionHeader) }, 200},
		{"no secret, a file", "/app.js", func(r *http.Request) { r.Header.Del(sessionHeader) }, 200},
		{"no secret, no question", "/api/nothing", func(r *http.Request) { r.Header.Del(sessionHeader) }, 403},
		{"a wrong secret", "/api/session", func(r *http.Request) { r.Header.Set(sessionHeader, "00") }, 403},
		{"the token for the secret", "/api/session", func(r *http.Request) { r.Header.Set(sessionHeader, s.token) }, 403},
		{"the secret as a cookie", "/api/session", func(r *http.Request) {
			r.Header.Del(sessionHeader)
			r.AddCookie(&http.Cookie{Name: "strandline-4242", Value: s.secret})
		}, 403},
		{"the token in the address", "/api/session?t=" + s.token, func(r *http.Request) { r.Header.Del(sessionHeader) }, 403},
		{"no token", "/api/enter", nil, 403},
		{"a wrong token", "/api/enter", func(r *http.Request) { r.Header.Set(tokenHeader, "00") }, 403},
		{"the secret for the token", "/api/enter", func(r *http.Request) { r.Header.Set(tokenHeader, s.secret) }, 403},
		{"a token from another site", "/api/enter", func(r *http.Request) {
			r.Header.Set(tokenHeader, s.token)
			r.Header.Set("Origin", "http://127.0.0.1:80")
		}, 403},
		{"POST", "/api/session", func(r *http.Request) { r.Method = "POST" }, 405},
		{"OPTIONS", "/api/session", func(r *http.Request) { r.Method = "OPTIONS" }, 405},
		{"the folder", "/assets/", nil, 404},
		{"the folder above", "/../server.go", nil, 404},
		{"hidden steps up", "/%2e%2e/server.go", nil, 404},
		{"a file of the system", "//etc/passwd", nil, 404},
		{"another separator", `/..\server.go`, nil, 404},
		{"the snapshot itself", "/" + example, nil, 404},
		{"no such question", "/api/", nil, 404},
		{"a question below one", "/api/session/x", nil, 404},
	} {
		r := ask(s, c.target, c.edit)
		if r.StatusCode != c.want {
			t.Errorf("%s: %s: status %d, want %d", c.name, c.target, r.StatusCode, c.want)
		}
		text := body(t, r)
		if strings.Contains(text, s.token) || strings.Contains(text, s.secret) || strings.Contains(text, "package web") || strings.Contains(text, "root:x:") {
			t.Errorf("%s: the answer reveals too much: %s", c.name, text)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := r.Header.Get(header); !strings.Contains(got, want) {
				t.Errorf("%s: %s is %q", c.name, header, got)
			}
		}
		if r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins are let in", c.name)
		}
	}
}

// TestTokens enters by both addresses: by the printed one as often as one wants, by
// that for the browser once.
func TestTokens(t *testing.T) {
	s := loaded(t)
	enter := func(address string) (int, string) {
		token, ok := strings.CutPrefix(address, "http://127.0.0.1:4242/?t=")
		if !ok || len(token) < 32 {
			t.Fatalf("address %q", address)
		}
		r := ask(s, "/api/enter", func(r *http.Request) {
			r.Header.Del(sessionHeader)
			r.Header.Set(tokenHeader, token)
		})
		if len(r.Cookies()) > 0 || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", r.Header)
		}
		return r.StatusCode, body(t, r)
	}
	once, other := s.Once(), s.Once()
	for _, c := range []struct {
		address string
		want    int
	}{{s.URL(), 200}, {once, 200}, {once, 403}, {other, 200}, {s.URL(), 200}, {other, 403}} {
		status, text := enter(c.address)
		if status != c.want || (status == 200) != (text == s.secret) {
			t.Errorf("%s: status %d, want %d: %s", c.address, status, c.want, text)
		}
	}
	if another := loaded(t); another.token == s.token || another.secret == s.secret || s.secret == s.token {
		t.Error("secrets are used again")
	}
}

func TestAnswersAreKept(t *testing.T) {
	s := loaded(t)
	first := ask(s, "/api/at?k=500", nil)
	tag := first.Header.Get("ETag")
	if tag == "" || first.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("headers %v", first.Header)
	}
	again := func(r *http.Request) { r.Header.Set("If-None-Match", tag) }
	if r := ask(s, "/api/at?k=500", again); r.StatusCode != 304 || body(t, r) != "" {
		t.Errorf("status %d for what the page has", r.StatusCode)
	}
	if r := ask(s, "/api/at?k=501", again); r.StatusCode != 200 {
		t.Errorf("status %d for another question", r.StatusCode)
	}
	// What depends on the replay is asked again: an early question has another answer.
	for _, target := range []string{"/api/session", "/api/at?k=-9", "/api/alloc?i=3", "/api/state?k=3", "/api/device"} {
		if r := ask(s, target, nil); r.Header.Get("ETag") != "" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s can be kept: %v", target, r.Header)
		}
	}
}

func TestPacked(t *testing.T) {
	s := loaded(t)
	s.Pack = true
	plain := body(t, ask(s, "/api/bands", nil))
	r := ask(s, "/api/bands", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil || string(unpacked) != plain {
		t.Errorf("%v: %d bytes, want %d", err, len(unpacked), len(plain))
	}
}

func TestCSVIsSaved(t *testing.T) {
	r := ask(loaded(t), "/api/csv?table=at&k=500", nil)
	if got := r.Header.Get("Content-Disposition"); got != "attachment; filename=strandline-at.csv" {
		t.Errorf("disposition %q", got)
	}
}

// TestServe talks over a real connection, and ends with its context.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(loadedEngine(t), "index.html", l.Addr().(*net.TCPAddr).Port)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	r, err := http.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body(t, r), "<html") {
		t.Errorf("status %d of the page", r.StatusCode)
	}
	if r, err = http.Get("http://127.0.0.1:" + s.port + "/api/session"); err != nil {
		t.Fatal(err)
	}
	if text := body(t, r); r.StatusCode != 403 {
		t.Errorf("without the secret: status %d, %s", r.StatusCode, text)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the server goes on")
	}
}

// TestPageAsFile asks for the page as one file: only who has the secret gets it, and not before all
// is judged.
func TestPageAsFile(t *testing.T) {
	s := New(exampleEngine(), "index.html", 4242)
	if r := ask(s, "/api/page", nil); r.StatusCode != http.StatusConflict || !strings.Contains(body(t, r), "have not been judged yet") {
		t.Errorf("status %d before files were read", r.StatusCode)
	}
	s = loaded(t)
	if r := ask(s, "/api/page", func(r *http.Request) { r.Header.Del(sessionHeader) }); r.StatusCode != http.StatusForbidden {
		t.Errorf("status %d without the secret", r.StatusCode)
	}
	r := ask(s, "/api/page", nil)
	if text := body(t, r); r.StatusCode != http.StatusOK || !strings.Contains(text, `data-engine="saved"`) || !strings.Contains(r.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("status %d, %.80s", r.StatusCode, text)
	}
}
