// Package secret masks keys, tokens and passwords in command lines, addresses, names of
// variables and quoted texts. Everything that strandline reads of these passes through
// it before it is kept, so that no recording, report or log contains a secret.
//
// The rule has three parts. A name says that its value is a secret: a flag, a variable, a
// header or a key of JSON whose last words are such as "password" or "api key"
// (names.go, values.go). Or the value says it itself: it begins as the tokens of a known
// service do, or stands where an address has its password (values.go). Or it stands where
// a known program expects one (arguments.go, tables.go). A text is also read as a shell
// reads it, so that the commands in it are looked at as arguments are (shell.go). The
// value is replaced by [Mask]; the name stays, so that a reader of flags finds the same
// flags.
package secret

import (
	"cmp"
	"slices"
	"strings"

	"strandline/internal/sorts"
)

// Mask stands in the place of a secret.
const Mask = "***"

// Margin is how many bytes more of a command line are read than are kept.
const Margin = 512

// Args masks the arguments of one command. The slice is returned unchanged if they
// contain no secret, otherwise a copy is.
func Args(args []string) []string {
	return settle(args, slices.Equal, func(args []string) []string {
		var a arguments
		out := args
		for i, arg := range args {
			masked := apply(arg, a.next(arg))
			if masked == arg {
				continue
			}
			if &out[0] == &args[0] {
				out = slices.Clone(args)
			}
			out[i] = masked
		}
		return out
	})
}

// Command is the command line in a file such as /proc/PID/cmdline, whose arguments end
// in NUL, joined by spaces and masked. It keeps at most size bytes: read a [Margin]
// more, so that a secret is recognized whose end is cut.
func Command(text string, size int) string {
	args := Split(text)
	out := strings.TrimSpace(strings.ToValidUTF8(strings.Join(Args(args), " "), "?"))
	if len(out) > size {
		out = strings.ToValidUTF8(out[:size], "")
	}
	return out
}

// Line masks a command line whose arguments are joined by spaces, as recordings have it.
func Line(text string) string {
	return settle(text, same, func(text string) string {
		out := commands(text, 0)
		var a arguments
		from := 0
		for arg := range strings.SplitSeq(text, " ") {
			out = shifted(out, from, a.next(arg))
			from += len(arg) + 1
		}
		return apply(text, out)
	})
}

// Text masks what is a secret in any text: a line of a log, the text of a shell or of a
// program, an address, a variable and its value. It returns the same text if there is none.
func Text(text string) string {
	return settle(text, same, func(text string) string { return apply(text, commands(text, 0)) })
}

// Split separates the arguments of a file such as /proc/PID/cmdline.
func Split(text string) []string {
	return strings.Split(strings.TrimRight(text, "\x00"), "\x00")
}

// Environ leaves out the variables whose values are secrets, for a program that needs none.
func Environ(env []string) (out []string) {
	for _, e := range env {
		if Text(e) == e {
			out = append(out, e)
		}
	}
	return out
}

// A span is a part of a text, in bytes.
type span struct{ from, to int }

// apply masks parts of a text.
func apply(text string, parts []span) string {
	var out []byte
	done := 0
	for _, p := range merge(parts) {
		if text[p.from:p.to] != Mask {
			out = append(append(out, text[done:p.from]...), Mask...)
			done = p.to
		}
	}
	if done == 0 {
		return text
	}
	return string(append(out, text[done:]...))
}

// merge orders parts, and joins those that overlap or touch.
func merge(parts []span) []span {
	sorts.By(parts, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, p.to)
		} else if p.from < p.to {
			out = append(out, p)
		}
	}
	return out
}

// shifted adds parts of a part of a text that begins at a place.
func shifted(out []span, from int, parts []span) []span {
	for _, p := range parts {
		out = append(out, span{from + p.from, from + p.to})
	}
	return out
}

func same(a, b string) bool { return a == b }

// settle masks until nothing is taken for a secret: where one was cut out of quotes, the
// rest can be read in another way.
func settle[T any](given T, same func(a, b T) bool, mask func(T) T) T {
	const rounds = 8
	for range rounds {
		masked := mask(given)
		if same(masked, given) {
			break
		}
		given = masked
	}
	return given
}
