package shell

import (
	"os/exec"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestShell has a shell read words back.
func TestShell(t *testing.T) {
	sh := live.Tool(t, "sh")
	for _, name := range []string{"a.pickle", "", "two words", "--output=x", "-", "$(reboot)", "`reboot`", "it's", "a\nb", "~root", "*", "a;b", "\\", "!1", "{a,b}", "x=1", "\x1b[31m"} {
		out, err := exec.Command(sh, "-c", "printf %s "+Word(name)+"; echo .; printf %s "+File(name)).Output()
		file := name
		if strings.HasPrefix(name, "-") {
			file = "./" + name
		}
		if want := name + ".\n" + file; err != nil || string(out) != want {
			t.Errorf("%q is read as %q, %v", name, out, err)
		}
	}
	if got := Line("strandline", "view", "a b"); got != "strandline view 'a b'" {
		t.Error(got)
	}
}
