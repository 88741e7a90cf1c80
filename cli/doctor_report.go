package cli

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"strandline/face/api"
	"strandline/internal/safefile"
)

// doctorReport is what an issue needs to know of a machine, as Markdown: no names of people,
// machines or folders of theirs.
func (g *globals) doctorReport(checks []api.Check) string {
	var out strings.Builder
	row := func(what, detail string) {
		fmt.Fprintf(&out, "| %s | %s |\n", what, strings.ReplaceAll(detail, "|", `\|`))
	}
	out.WriteString("| | |\n| --- | --- |\n")
	row("strandline", version())
	row("system", runtime.GOOS+"/"+runtime.GOARCH)
	for _, f := range []struct{ what, path, line string }{
		{"kernel", "/proc/sys/kernel/osrelease", ""},
		{"distribution", "/etc/os-release", "PRETTY_NAME="},
		{"NVIDIA driver", "/proc/driver/nvidia/version", "NVRM version:"},
		{"capabilities", "/proc/self/status", "CapEff:"},
		{"ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", ""},
		{"tracing is locked down", "/sys/kernel/security/lockdown", ""},
		{"memory", "/proc/meminfo", "MemTotal:"},
	} {
		const maxBytes = 64 << 10
		text, err := safefile.ReadFile(f.path, maxBytes)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if detail, ok := strings.CutPrefix(line, f.line); ok {
				row(f.what, strings.Trim(strings.TrimSpace(detail), `"`))
				break
			}
		}
	}
	for _, c := range checks {
		mark := "no"
		if c.OK {
			mark = "ok"
		}
		row(c.What, mark+": "+c.Detail)
	}
	return g.personal().Replace(out.String())
}

// personal replaces the names of the user, the machine and the home folder.
func (g *globals) personal() *strings.Replacer {
	const shortest = 3 // a shorter name is in other words
	var pairs []string
	hide := func(name, with string) {
		if len(name) >= shortest && name != "root" {
			pairs = append(pairs, name, with)
		}
	}
	home, _ := os.UserHomeDir()
	host, _ := os.Hostname()
	hide(cmp.Or(g.env.getenv("HOME"), home), "~")
	hide(host, "HOST")
	for _, name := range []string{"USER", "LOGNAME", "SUDO_USER"} {
		hide(g.env.getenv(name), "USER")
	}
	return strings.NewReplacer(pairs...)
}
