package load

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestAnswers reads what is no answer.
func TestAnswers(t *testing.T) {
	stream := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, p := range parts {
				io.WriteString(w, p)
			}
		}
	}
	long := string(bytes.Repeat([]byte("a"), longestLine+1))
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    Kind
		text    string
	}{
		"nothing but the end":  {stream("data: [DONE]\n\n"), Garbage, "an answer without text"},
		"a reason for the end": {stream(`data: {"choices":[{"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n"), "", ""},
		"a line without end":   {stream(`data: {"choices":[{"text":"`, long), Garbage, "more than 16 MiB in a line"},
		"one piece without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, long)
		}, Garbage, "more than 16 MiB in a line"},
		"tokens without end": {stream(`data: {"choices":[{"text":"a"}],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1}}`+"\n\n", "data: [DONE]\n\n"), Garbage, "counts 9223372036854775807"},
		"tokens below 0":     {stream(`data: {"choices":[{"text":"a"}],"usage":{"prompt_tokens":1,"completion_tokens":-1}}`+"\n\n", "data: [DONE]\n\n"), Garbage, "counts 1 and -1"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, Rejected, "/again, and strandline does not follow"},
	} {
		server := httptest.NewServer(c.handler)
		client, err := New(small(server.URL))
		if err != nil {
			t.Fatal(err)
		}
		r := (&worker{client: client}).tried(t.Context())
		if r.kind != c.kind || (r.err != nil) != (c.kind != "") || r.err != nil && !strings.Contains(r.err.Error(), c.text) {
			t.Errorf("%s: %q, %v", name, r.kind, r.err)
		}
		server.Close()
	}
}

// TestProbeErrors names what is wrong with the address.
func TestProbeErrors(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for path, hint := range map[string]bool{"": true, "/v1": false} {
		client, err := New(small(server.URL + path))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Probe(t.Context()); err == nil || strings.Contains(err.Error(), "the API often begins at "+server.URL+"/v1") != hint {
			t.Errorf("%s: %v", path, err)
		}
	}
	release := make(chan bool)
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	o := small(hanging.URL)
	o.Timeout = 10 * time.Millisecond
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Probe(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "/models: no answer within 10ms") {
		t.Errorf("a list of models that never comes: %v", err)
	}
}

// TestTricklingModels begins a list of models that does not end.
func TestTricklingModels(t *testing.T) {
	t.Parallel() // it waits
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data": [`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	o := small(server.URL)
	o.Timeout = time.Second
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Probe(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "/models: no whole answer within 1s; name the model with --model") {
		t.Error(err)
	}
}

// TestURL refuses what is no address of an API, and prints no password.
func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:18080/v1": "want a URL such as", "http:": `"http:": want`, "http://:80/v1": "want a URL such as",
		"ftp://user:secret@host/": "want a URL such as", "http://user:secret@host/%zz": "cannot be read", "http://user:secret@host/v1?x=1": "without ?",
		"http://[::1/v1": "cannot be read", "http://user:secret/x@host/v1": "cannot be read",
	} {
		if _, err := New(small(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestKeyStays checks that the key goes to no other address.
func TestKeyStays(t *testing.T) {
	var came atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came.Add(1) }))
	defer other.Close()
	for _, model := range []string{"m", ""} { // the list of models is asked for, too
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path+"?key=quietSecret", http.StatusTemporaryRedirect)
		}))
		o := small(server.URL)
		o.Key, o.Model = "quietSecret", model
		client, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) || strings.Contains(err.Error(), "quietSecret") {
			t.Errorf("model %q: %v", model, err)
		}
		server.Close()
	}
	if came.Load() > 0 {
		t.Error("the key went to another address")
	}
}

// TestKeyInErrors checks that a server which repeats the key does not have it shown.
func TestKeyInErrors(t *testing.T) {
	const key = "sk-proj-Ab12Cd34Ef56Gh78Ij90"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`, http.StatusUnauthorized)
	}))
	defer server.Close()
	o := small(strings.Replace(server.URL, "://", "://me:quietSecret@", 1))
	o.Key = key
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Probe(t.Context()); err == nil || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "quietSecret") {
		t.Error(err)
	}
}
