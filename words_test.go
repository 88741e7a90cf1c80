package strandline_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateWords = flag.Bool("update-words", false, "rewrite testdata/words.txt, the limits of texts that are worse than the rules")

// The rules of every text: a sentence is one idea.
const (
	maxWords        = 20 // of a sentence
	maxAverageWords = 15
	tolerance       = 0.2 // of the average of a text that is worse, words
)

// foreign are forms that a reader stumbles over, and what to write instead.
var foreign = map[string]*regexp.Regexp{
	"what … without a question: name it (the holder, the growth)": regexp.MustCompile(`(?i)\bwhat\b`),
	"that of, those of: repeat the noun":                          regexp.MustCompile(`(?i)\b(?:that|those) of\b`),
	"states, stated: says, reports, or drop it":                   regexp.MustCompile(`(?i)\bstate[ds]\b`),
	"three of in a row: noun compounds":                           regexp.MustCompile(`(?i)\bof\b(?:\W+\w+){1,4}\W+of\b(?:\W+\w+){1,4}\W+of\b`),
	"trailing too: also, before the verb":                         regexp.MustCompile(`(?i),? too$`),
	"trailing otherwise: else, or two sentences":                  regexp.MustCompile(`(?i)\botherwise$`),
}

// A measure is how a text reads.
type measure struct {
	words, sentences, long, forms int
	examples                      []string // the first sentences that break a rule
}

func (m *measure) average() float64 { return float64(m.words) / float64(max(m.sentences, 1)) }

// worse reports whether a text is worse than another, which can be the rules.
func (m *measure) worse(limit measure) bool {
	return m.long > limit.long || m.forms > limit.forms || m.average() > max(limit.average()+tolerance, maxAverageWords)
}

// add measures a sentence.
func (m *measure) add(sentence string) {
	n := len(strings.Fields(sentence))
	if n < 3 { // a label
		return
	}
	m.words += n
	m.sentences++
	end := strings.TrimRight(sentence, ".;:,)*_ ")
	end = strings.ReplaceAll(end, "*What if", "it") // a view of the page
	note := func(why string) {
		const maxExamples = 20
		if len(m.examples) < maxExamples {
			m.examples = append(m.examples, why+": "+sentence)
		}
	}
	if n > maxWords {
		m.long++
		note(fmt.Sprintf("%d words", n))
	}
	if strings.HasSuffix(sentence, "?") {
		return
	}
	for why, form := range foreign {
		if form.MatchString(end) {
			m.forms++
			note(why)
		}
	}
}

var (
	fence     = regexp.MustCompile("(?ms)^ *```.*?^ *```$|^    [^\n]*$|<!--.*?-->")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	linked    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	newBlock  = regexp.MustCompile(`(?m)^(?:[-*] |\d+\. |#+ .*$|> )|^\s*$| *\| *`)
	sentence  = regexp.MustCompile(`([.!?])["”)*]*\s+([\p{Lu}*_(“"]|(?:X|strandline)\b)`)
	codeWords = regexp.MustCompile(`[{}<>]|^\s*(?:SELECT|CREATE|create table|WITH)\b|\\x1b|^[a-z\d-]+(?: [a-z\d-]+){20,}$|^\s+(?:sudo )?strandline `) // or a list of words, or examples
)

// measured measures Markdown, without its code.
func measured(text string) (m measure) {
	text = codeSpan.ReplaceAllString(fence.ReplaceAllString(text, "\n\n"), "X")
	text = linked.ReplaceAllString(text, "$1")
	for _, block := range strings.Split(newBlock.ReplaceAllString(text, "\x00"), "\x00") {
		block = strings.Join(strings.Fields(block), " ")
		for _, s := range strings.Split(sentence.ReplaceAllString(block, "$1\x00$2"), "\x00") {
			m.add(s)
		}
	}
	return m
}

// literals are the texts in the Go files of a folder that a person reads: those of several
// words.
func literals(t *testing.T, dir string) (m measure) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value) // it is one
				if len(strings.Fields(text)) > 4 && !codeWords.MatchString(text) {
					one := measured(text)
					m.words, m.sentences, m.long, m.forms = m.words+one.words, m.sentences+one.sentences, m.long+one.long, m.forms+one.forms
					m.examples = append(m.examples, one.examples[:min(1, len(one.examples))]...)
				}
			}
			return true
		})
	}
	return m
}

// texts are the texts of the program: pages by their path, and the packages that print.
func texts(t *testing.T) map[string]measure {
	out := map[string]measure{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/cases/*.md", "examples/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			out[page] = measured(string(text))
		}
	}
	for _, root := range []string{"cli", "face", "judge", "logs", "run", "trend", "plan"} {
		filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Fatal(err)
			}
			if d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if m := literals(t, dir); d.IsDir() && m.sentences > 0 {
				out[dir] = m
			}
			return nil
		})
	}
	return out
}

// TestWords holds pages and texts of the program to the rules, and those in
// testdata/words.txt to what they had when it was written.
func TestWords(t *testing.T) {
	const file = "testdata/words.txt"
	limits := map[string]measure{}
	data, err := os.ReadFile(file)
	if err != nil && !*updateWords {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var name string
		var l measure
		if _, err := fmt.Sscan(line, &name, &l.words, &l.sentences, &l.long, &l.forms); err == nil {
			limits[name] = l
		}
	}
	now := texts(t)
	if len(now) < 60 {
		t.Errorf("only %d texts were found", len(now))
	}
	if *updateWords {
		writeLimits(t, file, now)
		return
	}
	for name, m := range now {
		if m.worse(limits[name]) {
			l := limits[name]
			t.Errorf("%s: %d sentences of more than %d words (limit %d), %d foreign forms (%d), %.1f words on average (%.1f). Shorten what you added; some sentences:\n  %s",
				name, m.long, maxWords, l.long, m.forms, l.forms, m.average(), max(l.average(), maxAverageWords), strings.Join(m.examples, "\n  "))
		}
	}
}

// writeLimits writes the texts that are worse than the rules.
func writeLimits(t *testing.T, file string, now map[string]measure) {
	var out strings.Builder
	out.WriteString("# Texts that are worse than the rules of words_test.go: words, sentences, long ones, foreign forms.\n# go test . -run TestWords -update-words lowers them.\n")
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if m := now[name]; m.worse(measure{}) {
			fmt.Fprintln(&out, name, m.words, m.sentences, m.long, m.forms)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestMeasure measures sentences whose faults are known.
func TestMeasure(t *testing.T) {
	twenty := strings.TrimSpace(strings.Repeat("word ", 20))
	for text, want := range map[string][2]int{
		"A short sentence. Another one here.":     {0, 0},
		twenty + ".":                              {0, 0},
		twenty + " more.":                         {1, 0},
		"```\n" + twenty + twenty + "\n```\n":     {0, 0},
		"It shows what holds memory.":             {0, 1},
		"What holds the memory now?":              {0, 0},
		"The file states the version.":            {0, 1},
		"The size of a number of bytes of it.":    {0, 1},
		"It is shown, too.":                       {0, 1},
		"| a cell of three | " + twenty + " b |":  {1, 0},
		"Its use and that of others. See `what`.": {0, 1},
	} {
		if m := measured(text); [2]int{m.long, m.forms} != want {
			t.Errorf("%q: %d long, %d forms; want %v", text, m.long, m.forms, want)
		}
	}
}
