package logs

// literals finds many words in a text at once, in one pass over its bytes: an
// automaton after Aho and Corasick. Case does not matter, and white space is
// passed over, so that a word is found wherever its line was broken.
type literals struct {
	class [256]uint8 // of each byte; passed over and foreign are special
	next  []uint16   // by state and class
	width int        // classes
	ends  [][]uint16 // by state: the words that end there
	ended []bool     // by state: whether ends has some
	words []string
}

// Classes of bytes that stand in no word.
const (
	passedOver = 0 // white space: the state stays
	foreign    = 1 // the state is the first again
)

// newLiterals makes the automaton for words without white space, in lower case.
func newLiterals(words []string) *literals {
	l := &literals{words: words, width: 2}
	for i := range l.class {
		l.class[i] = foreign
	}
	for _, c := range []byte(" \t\n\r\v\f") {
		l.class[c] = passedOver
	}
	for _, word := range words {
		for _, c := range []byte(word) {
			if l.class[c] == foreign {
				l.class[c] = uint8(l.width)
				l.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		l.class[c-'a'+'A'] = l.class[c]
	}
	children := l.trie()
	l.link(children)
	l.ended = make([]bool, len(l.ends))
	for i, e := range l.ends {
		l.ended[i] = len(e) > 0
	}
	return l
}

// trie makes a state for each beginning of a word: its children by class.
func (l *literals) trie() (children []map[uint8]uint16) {
	children = append(children, map[uint8]uint16{})
	l.ends = append(l.ends, nil)
	for i, word := range l.words {
		state := uint16(0)
		for _, c := range []byte(word) {
			to, ok := children[state][l.class[c]]
			if !ok {
				to = uint16(len(children))
				children[state][l.class[c]] = to
				children = append(children, map[uint8]uint16{})
				l.ends = append(l.ends, nil)
			}
			state = to
		}
		l.ends[state] = append(l.ends[state], uint16(i))
	}
	return children
}

// link fills in where each state leads for each class: to its child, or to that of
// the longest beginning that is an end of the state.
func (l *literals) link(children []map[uint8]uint16) {
	l.next = make([]uint16, len(children)*l.width)
	suffix := make([]uint16, len(children))
	queue := []uint16{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		if state != 0 {
			l.ends[state] = append(l.ends[state], l.ends[suffix[state]]...)
		}
		for class := range l.width {
			at := int(state)*l.width + class
			to, child := children[state][uint8(class)]
			switch {
			case class == passedOver:
				l.next[at] = state
			case child:
				l.next[at] = to
				if state != 0 {
					suffix[to] = l.next[int(suffix[state])*l.width+class]
				}
				queue = append(queue, to)
			case state != 0:
				l.next[at] = l.next[int(suffix[state])*l.width+class]
			}
		}
	}
}

// scan reads text from a state on and calls found with each word that ends in it,
// and where it ends. It returns the state at the end.
func (l *literals) scan(state uint16, text []byte, found func(word, end int)) uint16 {
	next, class, width, ended := l.next, &l.class, l.width, l.ended
	for i, c := range text {
		state = next[int(state)*width+int(class[c])]
		if ended[state] {
			for _, word := range l.ends[state] {
				found(int(word), i+1)
			}
		}
	}
	return state
}
