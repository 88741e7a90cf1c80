package ranks

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// lengthWords are the ends of words for a number of tokens.
var lengthWords = [][]byte{
	[]byte("tokens"), []byte("max_len"), []byte("seqlen"), []byte("seq_len"), []byte("seq_length"), []byte("padded_to"),
	[]byte("longest"), []byte("input_len"), []byte("length"), []byte("input_ids"),
}

// maxLengthGap is how many characters can be between a word and its number.
const maxLengthGap = 12

// nextLength finds the next word for a number of tokens in a line, from a byte on, with the numbers
// behind it; start is -1 if there is none.
func nextLength(line []byte, from int) (start, end int) {
	for at := from; at < len(line); at = end {
		end = at
		for end < len(line) && isWord(line[end]) {
			end++
		}
		switch {
		case end == at:
			end++
		case at > 0 && isWord(line[at-1]): // the rest of a word
		default:
			end += lengthBehind(line[at:], end-at)
			if endsInLength(line[at:end]) {
				return at, end + numbersBehind(line[end:])
			}
		}
	}
	return -1, 0
}

// lengthBehind is the length of the word that follows "sequence" in "sequence length".
func lengthBehind(text []byte, word int) int {
	const first, second = "sequence", " length"
	if word < len(first) || len(text) < word+len(second) || !bytes.EqualFold(text[word-len(first):word+len(second)], []byte(first+second)) {
		return 0
	}
	if end := word + len(second); end < len(text) && isWord(text[end]) {
		return 0
	}
	return len(second)
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// endsInLength reports whether a word ends in one for a number of tokens.
func endsInLength(word []byte) bool {
	return slices.ContainsFunc(lengthWords, func(w []byte) bool { return len(word) >= len(w) && bytes.EqualFold(word[len(word)-len(w):], w) })
}

// numbersBehind is the length of what follows a word: a gap, and a number or a list of numbers if it is
// there.
func numbersBehind(text []byte) int {
	gap := 0
	for n := 0; n < maxLengthGap && gap < len(text); n++ {
		if c := text[gap]; c == '[' || c == '(' || '0' <= c && c <= '9' {
			break
		}
		_, size := utf8.DecodeRune(text[gap:])
		gap += size
	}
	i := gap
	skip := func(cs string) {
		if i < len(text) && bytes.IndexByte([]byte(cs), text[i]) >= 0 {
			i++
		}
	}
	skip("(")
	skip("[")
	skip(" \t\n\f\r")
	first := i
	for i < len(text) && bytes.IndexByte([]byte("0123456789, \t\n\f\r"), text[i]) >= 0 {
		i++
	}
	if first == i || text[first] < '0' || text[first] > '9' {
		return gap
	}
	return i
}
