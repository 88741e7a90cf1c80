package finding

// A Brief is a finding in the few words and figures of a first screen. What the finding
// states elsewhere (its place, its course, its confidence) is not in it.
type Brief struct {
	// Title is what is wrong and how large it is, in about ten words; "" if the title
	// of the finding is as short.
	Title string `json:"title,omitempty"`
	// Fact is the figures that decide, in a sentence.
	Fact string `json:"fact,omitempty"`
	// Why is what the judgment rests on, in a sentence, where no account states it.
	Why     string   `json:"why,omitempty"`
	Account *Account `json:"account,omitempty"`
	// Next is the command that shows more, with its arguments.
	Next string `json:"next,omitempty"`
}

// An Account is a size and the parts of which it is the sum.
type Account struct {
	Bytes int64  `json:"bytes"`
	Name  string `json:"name,omitempty"` // of the whole, such as "peak"
	Parts []Part `json:"parts"`
}

// A Part is a size with a name of one word or two, such as "stranded".
type Part struct {
	Bytes int64  `json:"bytes"`
	Name  string `json:"name"`
}

// Add adds a part that is not empty.
func (a *Account) Add(bytes int64, name string) {
	if bytes > 0 {
		a.Parts = append(a.Parts, Part{bytes, name})
	}
}

// Rest adds what is left of the whole. It reports false if the parts are larger than the
// whole: then they are no account of it.
func (a *Account) Rest(name string) bool {
	left := a.Bytes
	for _, p := range a.Parts {
		left -= p.Bytes
	}
	a.Add(left, name)
	return left >= 0
}

// Because is the remedy with the reason or the condition under which it helps, which a
// first screen leaves out.
func (r Remedy) Because(detail string) Remedy {
	r.Detail = detail
	return r
}
