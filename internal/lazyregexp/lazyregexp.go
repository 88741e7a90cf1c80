// Package lazyregexp holds regular expressions that are compiled when they are
// first used: a command that needs few of the many does not pay for the others
// each time it starts. A text without the words that every match has is not searched.
package lazyregexp

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Regexp is a [regexp.Regexp] that is compiled at its first use. Its methods
// are those of the same names there; it panics at its first use if it has a
// fault, which the test of this package finds in all sources of this module.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
	has  string // the longest text that the expression shows every match to have
}

// New returns the regular expression, which it does not compile yet.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

// Of is New for an expression that is not written out in the source, so that the test of
// this package cannot find it: the package that makes it tests that it compiles.
func Of(expr string) *Regexp { return New(expr) }

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() {
		r.re = regexp.MustCompile(r.expr)
		if tree, err := syntax.Parse(r.expr, syntax.Perl); err == nil {
			if r.has = contained(tree); strings.ContainsRune(r.has, utf8.RuneError) {
				r.has = "" // it matches invalid bytes, too
			}
		}
	})
	return r.re
}

// contained is the longest text in every match of an expression, as far as its sequence
// shows it.
func contained(tree *syntax.Regexp) (text string) {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return string(tree.Rune)
		}
	case syntax.OpRepeat:
		if tree.Min == 0 {
			return ""
		}
		fallthrough
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, part := range tree.Sub {
			if s := contained(part); len(s) > len(text) {
				text = s
			}
		}
	}
	return text
}

var nothing = regexp.MustCompile(`\A[^\x00-\x{10FFFF}]`)

// in and inString return the expression if a text can have a match, otherwise one that is
// as fast as it matches nothing.
func (r *Regexp) in(b []byte) *regexp.Regexp {
	if re := r.get(); r.has == "" || bytes.Contains(b, []byte(r.has)) {
		return re
	}
	return nothing
}

func (r *Regexp) inString(s string) *regexp.Regexp {
	if re := r.get(); r.has == "" || strings.Contains(s, r.has) {
		return re
	}
	return nothing
}

func (r *Regexp) Match(b []byte) bool                  { return r.in(b).Match(b) }
func (r *Regexp) MatchString(s string) bool            { return r.inString(s).MatchString(s) }
func (r *Regexp) Find(b []byte) []byte                 { return r.in(b).Find(b) }
func (r *Regexp) FindIndex(b []byte) []int             { return r.in(b).FindIndex(b) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte       { return r.in(b).FindSubmatch(b) }
func (r *Regexp) FindString(s string) string           { return r.inString(s).FindString(s) }
func (r *Regexp) FindStringIndex(s string) []int       { return r.inString(s).FindStringIndex(s) }
func (r *Regexp) FindStringSubmatch(s string) []string { return r.inString(s).FindStringSubmatch(s) }

func (r *Regexp) SubexpNames() []string { return r.get().SubexpNames() }

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.inString(s).FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte { return r.in(b).FindAllSubmatch(b, n) }
func (r *Regexp) FindAllString(s string, n int) []string     { return r.inString(s).FindAllString(s, n) }

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.inString(s).FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.inString(s).FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAll(src, repl []byte) []byte { return r.in(src).ReplaceAll(src, repl) }
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.inString(src).ReplaceAllString(src, repl)
}

func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.inString(src).ReplaceAllStringFunc(src, repl)
}
