package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// formulas are those of Homebrew and Nix. They install the archives of the release, whose
// checksums they have.
var formulas = map[string]string{
	"strandline.rb": `class Strandline < Formula
  desc "Find where the memory of a machine-learning job went"
  homepage "{{.Home}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $system, $arches := .Systems}}
  on_{{$system}} do
{{- range $arches}}
    on_{{.Brew}} do
      url "{{$.Home}}/releases/download/v{{$.Version}}/{{.Archive}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "strandline"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/strandline.bash" => "strandline"
    zsh_completion.install "completions/_strandline"
    fish_completion.install "completions/strandline.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/strandline version")
    assert_match "fits", shell_output("#{bin}/strandline plan --model Llama-3.1-8B --gpu H100")
  end
end
`,
	"strandline.nix": `{
  lib,
  stdenvNoCC,
  fetchurl,
  installShellFiles,
}:

let
  sources = {
{{- range $arches := .Systems}}{{range $arches}}
    {{.Nix}} = {
      url = "{{$.Home}}/releases/download/v{{$.Version}}/{{.Archive}}";
      sha256 = "{{.Sum}}";
    };
{{- end}}{{end}}
  };
in
stdenvNoCC.mkDerivation {
  pname = "strandline";
  version = "{{.Version}}";
  src = fetchurl sources.${stdenvNoCC.hostPlatform.system};
  nativeBuildInputs = [ installShellFiles ];
  dontStrip = true;
  installPhase = ''
    install -Dm755 strandline $out/bin/strandline
    installManPage man/*.1
    installShellCompletion --cmd strandline \
      --bash completions/strandline.bash --zsh completions/_strandline --fish completions/strandline.fish
  '';
  meta = {
    description = "Find where the memory of a machine-learning job went";
    homepage = "{{.Home}}";
    license = lib.licenses.asl20;
    mainProgram = "strandline";
    platforms = builtins.attrNames sources;
  };
}
`,
}

// A binary is an archive in a formula.
type binary struct{ Brew, Nix, Archive, Sum string }

// formulate writes the formulas, for the archives of Linux and macOS.
func (r *release) formulate(home string, targets []target) error {
	data := struct {
		Home, Version string
		Systems       map[string][]binary
	}{home, r.version, map[string][]binary{}}
	for _, t := range targets {
		system := map[string]string{"linux": "linux", "darwin": "macos"}[t.system]
		if system == "" {
			continue
		}
		b := binary{
			Brew:    map[string]string{"amd64": "intel", "arm64": "arm"}[t.arch],
			Nix:     map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch] + "-" + t.system,
			Archive: r.archiveName(t) + ".tar.gz",
		}
		archive, err := os.ReadFile(filepath.Join(r.out, b.Archive))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(archive)
		b.Sum = hex.EncodeToString(sum[:])
		data.Systems[system] = append(data.Systems[system], b)
	}
	for name, text := range formulas {
		formula, err := template.New(name).Parse(text)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := formula.Execute(&out, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.write(name, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
