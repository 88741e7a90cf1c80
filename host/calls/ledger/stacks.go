package ledger

import "strandline/host/code/symbolize"

// Stacks are the distinct stacks of a trace, by number. Number 0 is the unknown stack.
type Stacks struct {
	all    []symbolize.Stack
	known  map[string]int
	frames int // in all
}

const (
	maxStacks = 1 << 14 // distinct
	maxFrames = 1 << 20 // in all of them
)

// NewStacks returns a Stacks that holds only the unknown stack.
func NewStacks() *Stacks { return &Stacks{all: make([]symbolize.Stack, 1), known: map[string]int{}} }

// At returns the stack with a number.
func (t *Stacks) At(i int) symbolize.Stack { return t.all[i] }

// Intern returns the number of a stack, or 0 if there is no room for another.
func (t *Stacks) Intern(s symbolize.Stack) int {
	var key []byte
	for _, f := range s.Frames {
		key = append(append(append(append(key, f.Function...), 0), f.File...), 0)
		key = append(append(key, byte(f.Line), byte(f.Line>>8), byte(f.Line>>16), 0), f.Object...)
	}
	if i, ok := t.known[string(key)]; ok {
		return i
	}
	if len(s.Frames) == 0 || len(t.all) == maxStacks || t.frames+len(s.Frames) > maxFrames {
		return 0
	}
	t.frames += len(s.Frames)
	t.known[string(key)] = len(t.all)
	t.all = append(t.all, s)
	return len(t.all) - 1
}
