package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"strandline/face/web/engine"
	"strandline/input"
)

// form is a body with files, and its type.
func form(t *testing.T, files ...string) (io.ReadCloser, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, name := range files {
		part, err := w.CreateFormFile(name, "blob")
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
	s := New(answers("before"), "index.html", 4242)
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
	if r := post(nil, "named:a.pickle"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d of a server that opens nothing", r.StatusCode)
	}
	var got []input.Source
	var refused error
	s.Open = func(files []input.Source) (int, error) {
		if got = files; refused == nil {
			s.Show(answers("after"), "watch.html")
		}
		return 3, refused
	}
	for name, edit := range map[string]func(*http.Request){
		"without the secret": func(r *http.Request) { r.Header.Del(sessionHeader) },
		"another site":       func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"another place":      func(r *http.Request) { r.URL.Path = "/api/session" },
		"no form":            func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		if r := post(edit, "named:a.pickle"); r.StatusCode < 400 || got != nil {
			t.Errorf("%s: status %d, %d files", name, r.StatusCode, len(got))
		}
	}
	if r := post(nil); r.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d without files", r.StatusCode)
	}
	if text := body(t, post(nil, "named:a.pickle", "inside:run/b.pickle")); text != `{"f":3}` {
		t.Errorf("answer %s", text)
	}
	if len(got) != 2 || got[0].Path != "a.pickle" || !got[0].Named || got[1].Path != "run/b.pickle" || got[1].Named {
		t.Errorf("files %+v", got)
	}
	content, err := got[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(content); err != nil || string(data) != "content of inside:run/b.pickle" {
		t.Errorf("content %q: %v", data, err)
	}
	if text := body(t, ask(s, "/", nil)); text != asset("watch.html") {
		t.Errorf("the page begins with %.80s", text)
	}
	refused = errors.New("why not")
	if r := post(nil, "named:a.pickle"); r.StatusCode != http.StatusUnprocessableEntity || body(t, r) != `{"error":"why not"}` {
		t.Errorf("status %d of what is not opened", r.StatusCode)
	}
	r := ask(s, "/api/device", func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if text := body(t, r); text != "after" {
		t.Errorf("status %d, %q after other files were opened", r.StatusCode, text)
	}

	most := maxDropped
	defer func() { maxDropped = most }()
	maxDropped = 20
	if r := post(nil, "named:large.pickle"); r.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body(t, r), "more than 1 GiB") {
		t.Errorf("status %d of what is too large", r.StatusCode)
	}
}
