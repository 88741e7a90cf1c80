// Package page holds the structs of the JSON that the page reads: the answers of the
// engine of a session or a recording, and what a saved page states about itself. ui/WIRE.md
// explains the fields.
package page

// Session is the answer to session: the files, and how far reading and judging them is.
type Session struct {
	Version  int       `json:"version"`
	Title    string    `json:"title"`
	Files    []File    `json:"files"`
	Skipped  []Skipped `json:"skipped"`
	Order    []int     `json:"order"`
	Findings string    `json:"findings" ts:"waiting|working|ready"`
	Job      bool      `json:"job,omitempty"`      // the files are of a job of several ranks: job has its verdict
	Live     bool      `json:"live,omitempty"`     // more files are to come
	Replaced bool      `json:"replaced,omitempty"` // a page of more files has taken the place of this one
}

// File is one of the files.
type File struct {
	F           int     `json:"f"`
	Name        string  `json:"name"`
	Path        string  `json:"path"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Process     *string `json:"process"`
	State       string  `json:"state" ts:"waiting|reading|pairing|totals|ready|judged|failed"`
	Read        int64   `json:"read"`
	Size        *int64  `json:"size"`
	Events      *int    `json:"events"`
	Partial     *string `json:"partial"`
	Error       *string `json:"error"`
	Devices     []int   `json:"devices"`
	Main        *int    `json:"main"` // the device with the highest peak
	Peak        *int64  `json:"peak"`
	Blocks      string  `json:"blocks" ts:"waiting|working|ready|unknown"`
}

// Skipped is a file that is not a snapshot and that nobody named.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Refusal is the answer to a question that cannot be answered.
type Refusal struct {
	Error string `json:"error"`
}

// Opened is the answer to files that were dropped on the page.
type Opened struct {
	F int `json:"f"` // the first of them
}
