package logs

// literals finds many words in a text at once, in one pass over its bytes: an
// Aho-Corasick automaton. Case does not matter, and white space is
// passed over, so that a word is found wherever its line was broken. Of a byte that is
// not ASCII only the last bits count: what is found in another language is to be looked at.
type literals struct {
	class [256]uint8 // of each byte; passed over and foreign are special
	// next is by state and class: the next state, of which the lower bits are 0, with
	// ending set if words end there.
	next  []uint32
	ends  [][]uint16 // by state: the words that end there
	words []string
}

// The form of a state in the table: its number, above the bits of a class.
const (
	classBits = 6
	ending    = 1 << 31
)

// Classes of bytes that are in no word.
const (
	passedOver = 0 // white space: the state stays
	foreign    = 1 // the state is the first again
	others     = 7 // the bits that count of bytes that are not ASCII
)

// newLiterals makes the automaton for words without white space, in lower case.
func newLiterals(words []string) *literals {
	l := &literals{words: words}
	classes := uint8(2)
	for i := range l.class {
		l.class[i] = foreign
	}
	for _, c := range []byte(" \t\n\r\v\f") {
		l.class[c] = passedOver
	}
	for _, word := range words {
		for _, c := range []byte(word) {
			if c >= 0x80 && l.class[c] == foreign { // those that are equal in the last bits are one class
				for other := int(c&others) | 0x80; other < len(l.class); other += others + 1 {
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
	l.next = make([]uint32, most<<classBits)
	l.ends = make([][]uint16, 1, most)
	states := make([]uint32, len(l.words))
	for at, more := 0, true; more; at++ {
		more = false
		for i, word := range l.words {
			if at >= len(word) {
				continue
			}
			more = true
			from := states[i]<<classBits | uint32(l.class[word[at]])
			if l.next[from] == 0 {
				l.next[from] = uint32(len(l.ends)) << classBits
				l.ends = append(l.ends, nil)
			}
			if states[i] = l.next[from] >> classBits; at == len(word)-1 {
				l.ends[states[i]] = append(l.ends[states[i]], uint16(i))
			}
		}
	}
	l.next = l.next[:len(l.ends)<<classBits]
}

// link fills in where each state leads for each other class: to where the longest
// beginning leads that is an end of the state. That is a shorter one, and so is done before.
func (l *literals) link() {
	suffix := make([]uint32, len(l.ends))
	for state := range uint32(len(l.ends)) {
		row, shorter := l.next[state<<classBits:][:1<<classBits], suffix[state]<<classBits
		if state != 0 {
			l.ends[state] = append(l.ends[state], l.ends[suffix[state]]...)
		}
		for class := range uint32(1 << classBits) {
			switch child := row[class] >> classBits; {
			case class == passedOver:
				row[class] = state << classBits
			case state == 0:
			case child != 0:
				suffix[child] = l.next[shorter|class] >> classBits
			default:
				row[class] = l.next[shorter|class]
			}
		}
	}
	for i, to := range l.next {
		if i&(1<<classBits-1) != passedOver && len(l.ends[to>>classBits]) > 0 {
			l.next[i] |= ending
		}
	}
}

// scan reads text from a state on and calls found with each word that ends in it,
// and where it ends. It returns the state at the end.
func (l *literals) scan(state uint32, text []byte, found func(word, end int)) uint32 {
	next, class := l.next, &l.class
	for i, c := range text {
		state = next[state|uint32(class[c])]
		if state&ending != 0 {
			state &^= ending
			for _, word := range l.ends[state>>classBits] {
				found(int(word), i+1)
			}
		}
	}
	return state
}
