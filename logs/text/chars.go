package text

import (
	"strconv"
	"strings"
)

// Digit reports whether a byte is a digit.
func Digit(c byte) bool { return c >= '0' && c <= '9' }

// Letter reports whether a byte is a letter of ASCII.
func Letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Capital reports whether a byte is a capital letter of ASCII.
func Capital(c byte) bool { return c >= 'A' && c <= 'Z' }

// Wordly reports whether a byte can be in a name.
func Wordly(c byte) bool { return Letter(c) || Digit(c) || c == '_' }

// Quotation reports whether a byte is a quotation mark.
func Quotation(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// HasPrefix reports whether a text begins with some words.
func HasPrefix(text []byte, words string) bool {
	return len(text) >= len(words) && string(text[:len(words)]) == words
}

// HasSuffix reports whether a text ends with some words.
func HasSuffix(text []byte, words string) bool {
	return len(text) >= len(words) && string(text[len(text)-len(words):]) == words
}

// Run is how many bytes of a kind a text begins with, at most so many.
func Run(text []byte, maxLen int, is func(byte) bool) (n int) {
	for n < min(len(text), maxLen) && is(text[n]) {
		n++
	}
	return n
}

// Digits are the digits that a text begins with.
func Digits(text []byte) []byte {
	n := 0
	for n < len(text) && Digit(text[n]) {
		n++
	}
	return text[:n]
}

// LastDigits are those that it ends with.
func LastDigits(text []byte) []byte {
	n := len(text)
	for n > 0 && Digit(text[n-1]) {
		n--
	}
	return text[n:]
}

// Unspaced is a text without white space.
func Unspaced(text string) string { return strings.Join(strings.Fields(text), "") }

// Count is a number with separators of thousands; nil for what is none or larger than a count can be.
func Count(text []byte) *int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(string(text), ",", ""), 10, 64)
	if err != nil || n > 1<<50 {
		return nil
	}
	return &n
}

// UnitOf returns the size in bytes of a unit that begins with a letter.
func UnitOf(letter byte) int64 {
	if i := strings.IndexByte("kmgt", letter|0x20); i >= 0 {
		return 1 << (10 * (i + 1))
	}
	return 1
}
