package page

// Lines is the answer to lines: those of a text or of source code around one of them.
type Lines struct {
	From  int      `json:"from"` // the number of the first, from 1
	Lines []string `json:"lines"`
}
