package logs

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[31mb\x1b[0m c":               "ab c",
		"\x1b[38;5;196mx\x1b[K\x1b[2Ky":     "xy",
		"\x1b]0;title\x07x\x1b(By":          "xy",
		"\x1b]8;;http://x\x1b\\link":        "\\link",
		`{"a": "\u001b[31mCUDA\u001b[0m"}`:  `{"a": "CUDA"}`,
		`\x1b[1;31mCUDA\033[m`:              `CUDA\033[m`,
		"^[[31mCUDA^[[0m [32mout[0m":        "CUDA out",
		"[rank0]: [5] [12:30] a[3m b [31 m": "[rank0]: [5] [12:30] a b [31 m",
		"2.00\u00a0GiB\u202f\u200bx":        "2.00 GiB x",
		"\ufeffx █ ▎ “y” \\ C:\\users ^ é":  "x █ ▎ “y” \\ C:\\users ^ é",
		"x\x1b":                              "x\x1b",
		"x\x1b[3":                            "x\x1b[3",
		"\x1b[" + strings.Repeat("1;", 40):   strings.Repeat("1;", 40),
		"[" + strings.Repeat("1", 40) + "m":  "[" + strings.Repeat("1", 40) + "m",
		"\x1b[31m" + strings.Repeat("a", 70): strings.Repeat("a", 70),
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(&unpainted{r: r})
			if err != nil || string(got) != want {
				t.Errorf("%q, read %s: %q, want %q (%v)", text, name, got, want, err)
			}
		}
	}
}

// TestEncodings reads a message in each encoding.
func TestEncodings(t *testing.T) {
	little := utf16le("x\n" + message21 + "\n")
	var big, four strings.Builder
	for i := 0; i+1 < len(little); i += 2 {
		big.WriteString(little[i+1:i+2] + little[i:i+1])
		four.WriteString(little[i:i+2] + "\x00\x00")
	}
	for name, text := range map[string]string{
		"little": little, "big": big.String(), "little, unmarked": little[2:], "big, unmarked": big.String()[2:], "four bytes": four.String(),
		"Latin 1": "caf\xe9\n" + message21, "spaces of the web": strings.ReplaceAll("x\n"+message21, " ", "\u00a0"),
		"colors":         "x\n\x1b[31m" + strings.ReplaceAll(message21, " ", "\x1b[0m \x1b[31m"),
		"colors, quoted": `{"x": "\n\u001b[31m` + strings.ReplaceAll(message21, " ", `\u001b[0m \u001b[31m`),
	} {
		if !IsText([]byte(text)) {
			t.Errorf("%s: not a text", name)
		}
		found, err := Scan(strings.NewReader(text))
		if err != nil || figuresOf(found.OOM.Last()) != figures21 {
			t.Errorf("%s: %s, %v", name, figuresOf(found.OOM.Last()), err)
		}
	}
	if killed, err := Scan(strings.NewReader(utf16le("Killed\n"))); err != nil || len(killed.Failures) != 1 || killed.Failures[0].Quote != "Killed" {
		t.Errorf("behind a mark of two bytes: %+v, %v", killed.Failures, err)
	}
	for _, binary := range []string{"\x00\x01\x02\x03", "\x80\x02}q\x00", "PK\x03\x04\x00\x00\x00\x00", ""} {
		if IsText([]byte(binary)) {
			t.Errorf("%q is taken for a text", binary)
		}
	}
}

// TestPlainText reads other programs' texts as PowerShell and terminals leave them, and leaves
// alone what is plain, or no text.
func TestPlainText(t *testing.T) {
	const want = "VmRSS:\t  9 kB\n"
	marked := "\xff\xfe" + wideText(want)
	for _, text := range []string{want, marked, wideText(want), "\x1b[32mVmRSS:\x1b[0m\t  9 kB\n"} {
		if got, err := io.ReadAll(Plain(strings.NewReader(text), []byte(text))); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	const binary = "SQLite format 3\x00\x1b[32m\x00\x01\x02"
	if got, err := io.ReadAll(Plain(strings.NewReader(binary), []byte(binary))); err != nil || string(got) != binary {
		t.Errorf("%q: %q, %v", binary, got, err)
	}
}
