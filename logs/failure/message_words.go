package failure

import (
	"bytes"

	"strandline/logs/text"
)

// A messageWord is one by which the beginning of PyTorch's messages is found: of
// those that are there, one at least is whole wherever the line is broken.
type messageWord struct {
	word  string   // in lower case and without white space
	forms []string // as it is written
	// behind reports whether what follows it in the line can be in a message; nil
	// if anything can.
	behind func(rest []byte) bool
}

var messageWords = []messageWord{
	{"tried", []string{"Tried"}, beginsToAllocate},
	{"capac", []string{"capac"}, nil},
	{"bypytorch", []string{"by PyTorch"}, nil},
	{"exceedallowed", []string{"exceed allowed"}, nil},
	{"outofmemory", []string{"out of memory"}, notOfKernel},
	{"outofmemoryerror", []string{"OutOfMemoryError"}, nil},
	{"calloc", []string{"calloc"}, nil},
	{"mpsalloc", []string{"MPS alloc"}, nil},
	{"entlyallocated", []string{"ently allocated"}, nil},
	{"allocate", []string{"allocate"}, beginsSize},
}

// matches reports whether a word that ends at some byte of a line is there as
// in a message.
func (w *messageWord) matches(line []byte, end int) bool {
	for _, form := range w.forms {
		if text.HasSuffix(line[:end], form) {
			return w.behind == nil || w.behind(line[end:])
		}
	}
	return false
}

// notOfKernel reports whether a text is not what the kernel writes behind the words.
func notOfKernel(rest []byte) bool { return !text.HasPrefix(rest, ": Kill") }

// beginsToAllocate reports whether a text begins with "to allocate", as far as it
// goes.
func beginsToAllocate(rest []byte) bool {
	const words = "toallocate"
	n := 0
	for _, c := range rest {
		switch {
		case n == len(words):
			return true
		case c == ' ' || c == '\t' || c == '\r':
		case c == '\\' || c == words[n]: // "\n" in a quoted text
			if c == '\\' {
				return true
			}
			n++
		default:
			return false
		}
	}
	return true
}

// beginsSize reports whether a text begins with a size or ends, as behind "to
// allocate" it does: many logs have "allocated" in every line.
func beginsSize(rest []byte) bool {
	if len(rest) > 0 && text.Letter(rest[0]) {
		return false
	}
	rest = bytes.TrimLeft(rest, " \t\r\\n")
	number := 0
	for number < len(rest) && (text.Digit(rest[number]) || rest[number] == '.' || rest[number] == ',') {
		number++
	}
	if number == 0 {
		return len(rest) == 0 || text.HasPrefix(rest, "more than") || text.HasPrefix(rest, ":")
	}
	rest = bytes.TrimLeft(rest[number:], " \t\r")
	return len(rest) == 0 || bytes.IndexByte([]byte("KMGTbB\\"), rest[0]) >= 0
}

// OOMWords are what an [OOMReader] searches a text for.
func OOMWords() (words []string) {
	for i := range messageWords {
		words = append(words, messageWords[i].word)
	}
	return words
}
