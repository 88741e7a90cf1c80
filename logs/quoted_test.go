package logs

import (
	"encoding/json"
	"html"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestQuotedTexts restores the lines of a text that is on a single line.
func TestQuotedTexts(t *testing.T) {
	for text, want := range map[string]string{
		`["a \"b\", \"c\"", "d\\e","f"]`:                  "a \"b\", \"c\"\nd\\e\nf\"]",
		`['x = f("a", "b")', "it's", 'z']`:                "x = f(\"a\", \"b\")\nit's\nz']",
		"[\"a\\n\", \"b\\n\"]\n":                          "a\nb\n\"]\n",
		`"a\r\nb\tc\nd"`:                                  "\"a\nb\tc\nd\"",
		`b'a\nb\nc'`:                                      "b'a\nb\nc'",
		`{"log": "a\nb\nc", "ok": true}`:                  "{\"log\": \"a\nb\nc\", \"ok\": true}",
		`[{"t": "1", "l": "a"}, {"t": "2", "l": "b"},{}]`: "\"t\": \"1\", \"l\": \"a\"\n\"t\": \"2\", \"l\": \"b\"\n}]",
		"[rank0]: a\\nb\\nc":                              "[rank0]: a\\nb\\nc",
		"{\"log\": \"a\\n\"}\n":                           "{\"log\": \"a\\n\"}\n",
		"[\"a\", \"b\",\n" + strings.Repeat("c\n", 200):   "[\"a\", \"b\",\n" + strings.Repeat("c\n", 200),
		`["a", "b`: "a\nb",
		`["a\`:     "a\\",
		"{\n \"o\": [\n  \"a\\n\",\n  \"\\tb \\\"c\\\"\"\n ],\n \"k\": \"d\\r\\ne\\r\\n\",\n \"n\": [1, [\"f\"], {}]\n}": "{\n \"o\": [\n  a\n  \tb \"c\"\n ],\n \"k\": \"d\ne\",\n \"n\": [1, [f], {}]\n}",
		"[\n \"a\nb\",\n \"c\\\": \"d":                         "[\n a\nb,\n c\": d",
		"a-1  | x\na-1  |\na-1  | \ta-1  | y\na-1  | z":        "x\n\n\ta-1  | y\nz",
		"\x1b[36ma-1 |\x1b[0m x\r\n\x1b[36ma-1 |\x1b[0m y\r\n": "x\r\ny\r\n",
		"a-1  | x\nb-1  | y\n":                                 "a-1  | x\nb-1  | y\n",
		"a-1  | x\n":                                           "a-1  | x\n",
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(plain(r))
			if err != nil || string(got) != want {
				t.Errorf("%s, read %s: %q, want %q (%v)", text, name, got, want, err)
			}
		}
	}
}

// TestContainers reads a message of several lines as it is inside of other forms of text.
func TestContainers(t *testing.T) {
	lines := strings.Split(wrapped(message26, 120, " "), "\n")
	list, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	each := func(before, behind string, of func(string) string) string {
		var b strings.Builder
		for _, line := range lines {
			b.WriteString(before + of(line) + behind)
		}
		return b.String()
	}
	same := func(s string) string { return s }
	notebook, err := json.MarshalIndent(map[string]any{"cells": []any{map[string]any{"outputs": []any{map[string]any{"text": lines}}}}}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	pretty, err := json.MarshalIndent(map[string]string{"title": "it failed", "body": strings.Join(lines, "\n")}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":             string(list),
		"notebook":         string(notebook),
		"object on lines":  string(pretty),
		"service":          each("trainer-1  | ", "\n", same),
		"objects":          "[" + strings.TrimSuffix(each(`{"time": "2026-03-01T10:00:00Z", "line": "`, `"}, `, same), ", ") + "]",
		"logfmt":           each(`time=2026-03-01T10:00:00Z level=error msg="`, "\"\n", same),
		"logfmt 2":         each(`level=info ts=2026-03-01T10:00:00Z caller=a.go:12 msg="`, "\" pod=x-0\n", same),
		"objects on lines": each(`{"level": "error", "msg": "`, "\"}\n", same),
		"page":             "<p>" + each("", "<br>", html.EscapeString) + "</p>",
		"page with lines":  "<p>" + each("", "<br />\n", html.EscapeString) + "</p>",
		"page of spaces":   "<p>" + each("", "<br>\n", func(s string) string { return strings.ReplaceAll(s, " ", "&nbsp;") }),
		"page of rows":     "<table>" + each("<tr><td>12</td><td>", "</td></tr>", html.EscapeString),
		"page of colors":   "<pre>" + each(`<span class="line"><span class="ts">12:00</span> `, "</span>\n", html.EscapeString),
		"page of blocks":   each(`<div class="line">`, "</div>", html.EscapeString),
	} {
		found, err := Scan(strings.NewReader(text))
		if o := found.OOM.Last(); err != nil || o == nil || figuresOf(o) != figures26 || found.OOM.Count != 1 {
			t.Errorf("%s: %d messages, %v", name, found.OOM.Count, err)
		}
	}
}
