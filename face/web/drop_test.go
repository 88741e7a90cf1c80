package web

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"strandline/face/web/engine"
)

// form is a body with files, and its type.
func form(t *testing.T, files ...string) (io.ReadCloser, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, name := range files {
		part, err := w.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, "content of "+name)
	}
	w.Close()
	return io.NopCloser(&body), w.FormDataContentType()
}

type answers string

func (a answers) Ask(context.Context, string, url.Values) engine.Answer {
	return engine.Answer{Status: 200, Type: "text/plain", Body: []byte(a), Lasting: true}
}

func TestDrop(t *testing.T) {
	s := New(answers("before"), 4242)
	tag := ask(s, "/api/device", nil).Header.Get("ETag")
	post := func(edit func(*http.Request), files ...string) *http.Response {
		return ask(s, "/api/drop", func(r *http.Request) {
			r.Method = http.MethodPost
			var kind string
			r.Body, kind = form(t, files...)
			r.Header.Set("Content-Type", kind)
			if edit != nil {
				edit(r)
			}
		})
	}
	if r := post(nil, "a.pickle"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d of a server that opens nothing", r.StatusCode)
	}
	var got []Dropped
	s.Open = func(files []Dropped) (Asker, int) {
		got = files
		return answers("after"), 3
	}
	for name, edit := range map[string]func(*http.Request){
		"without the secret": func(r *http.Request) { r.Header.Del(sessionHeader) },
		"another site":       func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another place":      func(r *http.Request) { r.URL.Path = "/api/session" },
		"no form":            func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		if r := post(edit, "a.pickle"); r.StatusCode < 400 || got != nil {
			t.Errorf("%s: status %d, %d files", name, r.StatusCode, len(got))
		}
	}
	if r := post(nil); r.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d without files", r.StatusCode)
	}
	if text := body(t, post(nil, "../a.pickle", "b.pickle")); text != `{"f":3}` {
		t.Errorf("answer %s", text)
	}
	if len(got) != 2 || got[0].Name != "a.pickle" || string(got[1].Data) != "content of b.pickle" {
		t.Errorf("files %+v", got)
	}
	r := ask(s, "/api/device", func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if text := body(t, r); text != "after" {
		t.Errorf("status %d, %q after other files were opened", r.StatusCode, text)
	}

	most := maxDropped
	defer func() { maxDropped = most }()
	maxDropped = 20
	if r := post(nil, "large.pickle"); r.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body(t, r), "more than 1 GiB") {
		t.Errorf("status %d of what is too large", r.StatusCode)
	}
}
