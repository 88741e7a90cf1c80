package logs

import (
	"encoding/json"
	"html"
	"strings"
	"testing"
)

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
