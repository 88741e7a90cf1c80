package logs

import (
	"io"
	"strings"
	"testing"

	"strandline/logs/text"
)

// TestEncodings reads a message in each encoding.
func TestEncodings(t *testing.T) {
	little := utf16le("x\n" + message21 + "\n")
	var big, four strings.Builder
	for i := 0; i+1 < len(little); i += 2 {
		big.WriteString(little[i+1:i+2] + little[i:i+1])
		four.WriteString(little[i:i+2] + "\x00\x00")
	}
	for name, line := range map[string]string{
		"little": little, "big": big.String(), "little, unmarked": little[2:], "big, unmarked": big.String()[2:], "four bytes": four.String(),
		"Latin 1": "caf\xe9\n" + message21, "spaces of the web": strings.ReplaceAll("x\n"+message21, " ", "\u00a0"),
		"colors":         "x\n\x1b[31m" + strings.ReplaceAll(message21, " ", "\x1b[0m \x1b[31m"),
		"colors, quoted": `{"x": "\n\u001b[31m` + strings.ReplaceAll(message21, " ", `\u001b[0m \u001b[31m`),
	} {
		if !text.IsText([]byte(line)) {
			t.Errorf("%s: not a text", name)
		}
		found, err := Scan(strings.NewReader(line))
		if err != nil || figuresOf(found.OOM.Last()) != figures21 {
			t.Errorf("%s: %s, %v", name, figuresOf(found.OOM.Last()), err)
		}
	}
	if killed, err := Scan(strings.NewReader(utf16le("Killed\n"))); err != nil || len(killed.Failures) != 1 || killed.Failures[0].Quote != "Killed" {
		t.Errorf("behind a mark of two bytes: %+v, %v", killed.Failures, err)
	}
	for _, binary := range []string{"\x00\x01\x02\x03", "\x80\x02}q\x00", "PK\x03\x04\x00\x00\x00\x00", ""} {
		if text.IsText([]byte(binary)) {
			t.Errorf("%q is taken for a text", binary)
		}
	}
}

// TestPlainText reads other programs' texts as PowerShell and terminals leave them, and leaves
// alone what is plain, or no text.
func TestPlainText(t *testing.T) {
	const want = "VmRSS:\t  9 kB\n"
	marked := "\xff\xfe" + wideText(want)
	for _, line := range []string{want, marked, wideText(want), "\x1b[32mVmRSS:\x1b[0m\t  9 kB\n"} {
		if got, err := io.ReadAll(text.Plain(strings.NewReader(line), []byte(line))); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
	const binary = "SQLite format 3\x00\x1b[32m\x00\x01\x02"
	if got, err := io.ReadAll(text.Plain(strings.NewReader(binary), []byte(binary))); err != nil || string(got) != binary {
		t.Errorf("%q: %q, %v", binary, got, err)
	}
}
