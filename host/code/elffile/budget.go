package elffile

import "sync/atomic"

// A Budget bounds the memory that the tables of several files take together: a possibly
// hostile process can have many files, and each of them can be large.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a Budget of that many bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

// Limit makes the tables of f count against a budget. It must be called before anything
// else is asked of f.
func (f *File) Limit(b *Budget) { f.budget = b }

// afford takes n bytes from the budget, which f keeps until [File.Forget], or reports
// that there are not that many left.
func (f *File) afford(n uint64) bool {
	if f.budget == nil {
		return true
	}
	if n > 4*maxTable {
		return false
	}
	if f.budget.left.Add(-int64(n)) < 0 {
		f.budget.left.Add(int64(n))
		return false
	}
	f.spent.Add(int64(n))
	return true
}

// Forget drops the tables of f, which are read again when needed.
func (f *File) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.symbols, f.dynamics, f.slots = nil, nil, nil
	if f.budget != nil {
		f.budget.left.Add(f.spent.Swap(0))
	}
	if f.debug != nil {
		f.debug.Forget()
	}
}
