package report

import (
	"fmt"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	var out strings.Builder
	w := PrintableWriter(&out)
	n, err := fmt.Fprint(w, "\x1b[1mtitle\x1b[0m\n\tname\x1b]0;owned\x07 \x1b[2J \u202eevil\u009b1m\x7f ok ▁█ é\r\n")
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	want := "\x1b[1mtitle\x1b[0m\n\tname�]0;owned� �[2J �evil�1m� ok ▁█ é�\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
