package httpbounds

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRedirects checks that no redirect is followed, and that its secrets are not shown.
func TestRedirects(t *testing.T) {
	var came atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	defer other.Close()
	to := strings.Replace(other.URL, "http://", "http://me:quietSecret@", 1) + "/v2/x?api_key=quietSecret#quietSecret"
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			}))
			r, err := http.NewRequest(method, strings.Replace(server.URL, "http://", "http://me:quietSecret@", 1), strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer quietSecret")
			_, err = NewClient(1, 1<<20).Do(r)
			redirect := (*Redirect)(nil)
			if !errors.As(err, &redirect) || redirect.To != other.URL+"/v2/x" || strings.Contains(err.Error(), "quietSecret") {
				t.Errorf("%d to %s: %v", status, method, err)
			}
			server.Close()
		}
	}
	if came.Load() != 0 {
		t.Errorf("%d requests were redirected", came.Load())
	}
}

// TestErrorWithoutAddress checks that no error has the password of the address.
func TestErrorWithoutAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r, err := http.NewRequest(http.MethodGet, "http://me:quietSecret@"+l.Addr().String()+"/?token=quietSecret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(1, 1).Do(r); err == nil || strings.Contains(err.Error(), "quietSecret") {
		t.Error(err)
	}
}

// TestUnreadableRedirect checks that an address which cannot be read is not shown whole.
func TestUnreadableRedirect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://me:quietSecret@host:port/")
		w.WriteHeader(http.StatusFound)
	}))
	defer s.Close()
	r, err := http.NewRequest(http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(1, 1).Do(r); err == nil || strings.Contains(err.Error(), "quietSecret") {
		t.Error(err)
	}
}

// TestProxy sends a key, and none, where the environment names a proxy. The environment is
// read once in a process, so that another one does it.
func TestProxy(t *testing.T) {
	if os.Getenv("HTTP_PROXY") != "http://proxy.example:1" {
		c := exec.Command(os.Args[0], "-test.run=^TestProxy$")
		c.Env = append(os.Environ(), "HTTP_PROXY=http://proxy.example:1", "HTTPS_PROXY=http://proxy.example:1", "NO_PROXY=", "no_proxy=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, c := range []struct {
		address, key string
		direct       bool
	}{
		{"http://me:pw@store.example/", "", true},
		{"http://store.example/", "Bearer k", true},
		{"http://store.example/metrics?api_key=k", "", true},
		{"http://store.example/metrics?sig=aB3d4e5f6", "", true},
		{"http://store.example/metrics?query=up", "", false},
		{"http://store.example/", "", false},
		{"https://store.example/", "Bearer k", false}, // through a tunnel
	} {
		r := httptest.NewRequest(http.MethodGet, c.address, nil)
		if c.key != "" {
			r.Header.Set("Authorization", c.key)
		}
		p, err := NewClient(1, 1).http.Transport.(*http.Transport).Proxy(r)
		if err != nil || (p == nil) != c.direct {
			t.Errorf("%s with %q: %v, %v", c.address, c.key, p, err)
		}
	}
}

func TestLargeAnswers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/header" {
			w.Header().Set("X", strings.Repeat("x", 2*maxHeader))
			return
		}
		w.Write(make([]byte, 1000))
	}))
	defer s.Close()
	for _, c := range []struct {
		path string
		most int64
		ok   bool
	}{{"/", 1001, true}, {"/", 1000, true}, {"/", 999, false}, {"/", 10, false}, {"/header", 1000, false}} {
		r, err := http.NewRequest(http.MethodGet, s.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := NewClient(1, c.most).Do(r)
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if (err == nil) != c.ok {
			t.Errorf("%s of at most %d bytes: %v", c.path, c.most, err)
		}
	}
}

// TestPlaces opens more connections than a server has places, on which nothing or half a
// header is sent, while one request is answered and another one comes.
func TestPlaces(t *testing.T) {
	const places = 4
	answering, answer := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		answering <- struct{}{}
		<-answer
	})
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	s := NewServer(mux, time.Hour, places)
	s.ReadHeaderTimeout, s.IdleTimeout = time.Hour, time.Hour // nothing ends by itself
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	get := func(path string) error {
		c := http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		r, err := c.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
	slow := make(chan error)
	go func() { slow <- get("/slow") }()
	<-answering
	var held []net.Conn
	for i := range 3 * places {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if held = append(held, c); i%2 == 0 {
			io.WriteString(c, "GET / HTTP/1.1\r\n")
		}
	}
	for range 2 * places {
		if err := get("/"); err != nil {
			t.Error(err)
		}
	}
	for _, c := range held[:2*places] { // the first ones gave way
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a request that did not come was answered")
		}
	}
	answer <- struct{}{}
	if err := <-slow; err != nil {
		t.Errorf("the request that was being answered: %v", err)
	}
}

// TestNoPlace asks while all connections are answered: the new one is closed.
func TestNoPlace(t *testing.T) {
	answering, answer := make(chan struct{}), make(chan struct{})
	s := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		answering <- struct{}{}
		<-answer
	}), time.Hour, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	get := func() error {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := c.Get("http://" + l.Addr().String())
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
	first := make(chan error)
	go func() { first <- get() }()
	<-answering
	if get() == nil {
		t.Error("a second one was answered")
	}
	answer <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
}
