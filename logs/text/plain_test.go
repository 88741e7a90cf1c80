package text

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
			got, err := io.ReadAll(unpainted(r))
			if err != nil || string(got) != want {
				t.Errorf("%q, read %s: %q, want %q (%v)", text, name, got, want, err)
			}
		}
	}
}

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
			shown, _ := plain(r)
			got, err := io.ReadAll(shown)
			if err != nil || string(got) != want {
				t.Errorf("%s, read %s: %q, want %q (%v)", text, name, got, want, err)
			}
		}
	}
}
