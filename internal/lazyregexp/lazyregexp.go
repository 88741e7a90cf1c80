// Package lazyregexp holds regular expressions that are compiled when they are
// first used: a command that needs few of the many does not pay for the others
// each time it starts.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a [regexp.Regexp] that is compiled at its first use. Its methods
// are those of the same names there; it panics at its first use if it has a
// fault, which the test of this package finds in all sources of this module.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// New returns the regular expression, which it does not compile yet.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

// Of is New for an expression that is not written out in the source, so that the test of
// this package cannot find it: the package that makes it tests that it compiles.
func Of(expr string) *Regexp { return New(expr) }

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

func (r *Regexp) Match(b []byte) bool                  { return r.get().Match(b) }
func (r *Regexp) MatchString(s string) bool            { return r.get().MatchString(s) }
func (r *Regexp) Find(b []byte) []byte                 { return r.get().Find(b) }
func (r *Regexp) FindIndex(b []byte) []int             { return r.get().FindIndex(b) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte       { return r.get().FindSubmatch(b) }
func (r *Regexp) FindString(s string) string           { return r.get().FindString(s) }
func (r *Regexp) FindStringIndex(s string) []int       { return r.get().FindStringIndex(s) }
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

func (r *Regexp) SubexpNames() []string { return r.get().SubexpNames() }

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.get().FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte { return r.get().FindAllSubmatch(b, n) }
func (r *Regexp) FindAllString(s string, n int) []string     { return r.get().FindAllString(s, n) }

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAll(src, repl []byte) []byte { return r.get().ReplaceAll(src, repl) }
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.get().ReplaceAllString(src, repl)
}

func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.get().ReplaceAllStringFunc(src, repl)
}
