package text

// literals finds many words in a text at once, in one pass over its bytes: an
// Aho-Corasick automaton. Case does not matter, and white space is
// passed over, so that a word is found wherever its line was broken. Of a byte that is
// not ASCII only the last bits count: what is found in another language is to be looked at.
type literals struct {
	class [256]uint8 // of each byte; passed over and foreign are special
	// next is by state and class: the next state, with ending set if words end there. Numbers
	// of two bytes keep most of the table in a processor's cache.
	next  []uint16
	ends  [][]uint16 // by state: the words that end there
	words []string
}

// A state's row in the table begins at its number, above the bits of a class.
const (
	classBits = 6
	ending    = 1 << 15
)

// Classes of bytes that are in no word.
const (
	passedOver = 0 // white space, and what [passedLine] has: the state stays
	foreign    = 1 // the state is the first again
	nonASCII   = 7 // the bits that count of bytes that are not ASCII
)

// newLiterals makes the automaton for words without white space, in lower case.
func newLiterals(words []string) *literals {
	l := &literals{words: words}
	classes := uint8(2)
	for i := range l.class {
		l.class[i] = foreign
	}
	for _, c := range []byte(" \t\n\r\v\f\x00") {
		l.class[c] = passedOver
	}
	for _, word := range words {
		for _, c := range []byte(word) {
			if c >= 0x80 && l.class[c] == foreign { // those that are equal in the last bits are one class
				for other := int(c&nonASCII) | 0x80; other < len(l.class); other += nonASCII + 1 {
					l.class[other] = classes
				}
				classes++
			}
			if l.class[c] == foreign {
				l.class[c] = classes
				classes++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		l.class[c-'a'+'A'] = l.class[c]
	}
	if classes > 1<<classBits {
		panic("too many characters in the words")
	}
	l.trie()
	l.link()
	return l
}

// trie makes a state for each beginning of a word, the shorter ones first, as most of
// a text is read in these, and fills in its children.
func (l *literals) trie() {
	most := 1
	for _, word := range l.words {
		most += len(word)
	}
	l.next = make([]uint16, most<<classBits)
	l.ends = make([][]uint16, 1, most)
	states := make([]uint16, len(l.words))
	for at, more := 0, true; more; at++ {
		more = false
		for i, word := range l.words {
			if at >= len(word) {
				continue
			}
			more = true
			to := &l.row(states[i])[l.class[word[at]]]
			if *to == 0 {
				*to = uint16(len(l.ends))
				l.ends = append(l.ends, nil)
			}
			if states[i] = *to; at == len(word)-1 {
				l.ends[*to] = append(l.ends[*to], uint16(i))
			}
		}
	}
	if len(l.ends) > ending {
		panic("too many forms for the words")
	}
	l.next = l.next[:len(l.ends)<<classBits]
}

// row is where a state leads, by class.
func (l *literals) row(state uint16) []uint16 {
	return l.next[int(state)<<classBits:][:1<<classBits]
}

// link fills in where each state leads for each other class: to where the longest
// beginning leads that is an end of the state. That is a shorter one, and so is done before.
func (l *literals) link() {
	suffix := make([]uint16, len(l.ends))
	for n := range l.ends {
		state := uint16(n)
		row, shorter := l.row(state), l.row(suffix[state])
		if state != 0 {
			l.ends[state] = append(l.ends[state], l.ends[suffix[state]]...)
		}
		for class := range row {
			switch child := row[class]; {
			case class == passedOver:
				row[class] = state
			case state == 0:
			case child != 0:
				suffix[child] = shorter[class]
			default:
				row[class] = shorter[class]
			}
		}
	}
	for i, to := range l.next {
		if i&(1<<classBits-1) != passedOver && len(l.ends[to]) > 0 {
			l.next[i] |= ending
		}
	}
}

// scan reads text from a state on and calls found with each word that ends in it,
// and where it ends. It returns the state at the end.
func (l *literals) scan(state uint16, text []byte, found func(word, end int)) uint16 {
	next, class := l.next, &l.class
	for i, c := range text {
		state = next[int(state)<<classBits|int(class[c])]
		if state&ending != 0 {
			state &^= ending
			for _, word := range l.ends[state] {
				found(int(word), i+1)
			}
		}
	}
	return state
}
