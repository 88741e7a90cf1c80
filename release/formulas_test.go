package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFormulas makes formulas of two archives, and looks for their checksums.
func TestFormulas(t *testing.T) {
	r := &release{version: "1.2.3", time: time.Unix(0, 0), out: t.TempDir()}
	targets := []target{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
	for _, target := range targets[:2] {
		if err := os.WriteFile(filepath.Join(r.out, r.archiveName(target)+".tar.gz"), []byte(target.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.formulate("https://example.com/strandline", targets); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"strandline.rb":  {"on_linux do\n    on_intel do", "on_macos do\n    on_arm do", `url "https://example.com/strandline/releases/download/v1.2.3/strandline_1.2.3_darwin_arm64.tar.gz"`},
		"strandline.nix": {"x86_64-linux = {", "aarch64-darwin = {", "${stdenvNoCC.hostPlatform.system}"},
	} {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q:\n%s", name, part, text)
			}
		}
		if strings.Count(string(text), `sha256 "`)+strings.Count(string(text), `sha256 = "`) != 2 || strings.Contains(string(text), "windows") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
