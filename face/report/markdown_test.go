package report

import "testing"

func TestMarkdownCells(t *testing.T) {
	for text, want := range map[string]string{
		"fp8_e4m3 of 3 layers":    "fp8_e4m3 of 3 layers",
		"a|b":                     `a\|b`,
		"*bold* _so_ __init__":    `\*bold\* \_so\_ \_\_init\_\_`,
		"<img src=x>":             `\<img src=x\>`,
		"[here](http://x)":        `\[here\](http://x)`,
		"&lt;b&gt; & more":        `\&lt;b\&gt; & more`,
		"# head":                  `\# head`,
		"set `a_b|c*` to 1":       "set `a_b\\|c*` to 1",
		"a`b <i>":                 "a\\`b \\<i\\>",
		"``` <img> `":             "\\`\\`\\` \\<img\\> \\`",
		"`a` <i> `b`":             "`a` \\<i\\> `b`",
		`back\slash`:              `back\\slash`,
		"two\nlines\x1b[1m\u202e": "two\ufffdlines\ufffd\\[1m\ufffd",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"--a b": "`--a b`", "a`b": "`` a`b ``", "a``b": "``` a``b ```"} {
		if got := code(text); got != want {
			t.Errorf("code %q becomes %q, want %q", text, got, want)
		}
	}
}
