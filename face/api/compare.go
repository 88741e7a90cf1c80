package api

import "strandline/torch/timeline"

// Comparison is the document of `strandline compare`.
type Comparison struct {
	Schema   string    `json:"schema"`
	Groups   []Group   `json:"groups"`
	Outliers []Outlier `json:"outliers,omitempty"` // processes that differ from the others
	Runs     *Runs     `json:"runs,omitempty"`
	Levels   *Levels   `json:"levels,omitempty"` // of two logs or tables
	Gate     *Gate     `json:"gate,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // parts of the files that are not known, a sentence each
}

// Group is one process.
type Group struct {
	Process   *string     `json:"process"`
	Files     []string    `json:"files"`
	Requested []int64     `json:"requested_bytes"` // one per file, of all devices
	Reserved  []int64     `json:"reserved_bytes"`
	Host      []int64     `json:"host_requested_bytes,omitempty"` // pinned host memory, where a file has it
	Peak      []*int64    `json:"peak_requested_bytes"`           // null for a file without events
	Sites     []GroupSite `json:"sites"`                          // most growth first
	// Runs are the files by run, where they are not all of one.
	Runs [][]string `json:"runs,omitempty"`
}

// GroupSite is a place of a process over its files.
type GroupSite struct {
	Site
	Missing   timeline.Missing `json:"missing,omitempty"` // why there is no site
	Kind      string           `json:"kind,omitempty"`    // "host" for pinned host memory
	Bytes     []int64          `json:"bytes"`
	Count     []int64          `json:"count"`
	Survivors int64            `json:"survivors"`
	PerStep   int64            `json:"bytes_per_step"`
}

// Outlier is a place at which one process holds more than the others.
type Outlier struct {
	Site
	Missing timeline.Missing `json:"missing,omitempty"`
	Kind    string           `json:"kind,omitempty"`
	Process string           `json:"process"`
	Bytes   int64            `json:"bytes"`
	Median  int64            `json:"median_of_others_bytes"`
}

// Runs is what a change of the code cost.
type Runs struct {
	Before     string      `json:"before"`
	After      string      `json:"after"`
	PeakBefore *int64      `json:"peak_before_bytes"` // null where the file has no history
	PeakAfter  *int64      `json:"peak_after_bytes"`
	EndBefore  int64       `json:"end_before_bytes"`
	EndAfter   int64       `json:"end_after_bytes"`
	Reserved   RunSums     `json:"reserved"`
	Host       *RunSums    `json:"host,omitempty"` // pinned host memory, where a run has it
	Purposes   []RunSums   `json:"purposes"`
	Sites      []RunChange `json:"sites"`
}

// Levels are the levels of memory that two logs or tables state.
type Levels struct {
	Before  string        `json:"before"`
	After   string        `json:"after"`
	Changes []LevelChange `json:"changes"` // the largest change of the peak first
}

// LevelChange is a level that both files state.
type LevelChange struct {
	Name       string `json:"name"`
	Process    string `json:"process,omitempty"` // or device, where a file has several
	PeakBefore int64  `json:"peak_before_bytes"`
	PeakAfter  int64  `json:"peak_after_bytes"`
	EndBefore  int64  `json:"end_before_bytes"`
	EndAfter   int64  `json:"end_after_bytes"`
}

// Level is the name of the level, and of its process.
func (c *LevelChange) Level() string {
	if c.Process == "" {
		return c.Name
	}
	return c.Name + " of " + c.Process
}

// RunSums is a sum of two runs.
type RunSums struct {
	Purpose    string `json:"purpose,omitempty"`
	PeakBefore *int64 `json:"peak_before_bytes"` // null where the file has no history
	PeakAfter  *int64 `json:"peak_after_bytes"`
	EndBefore  int64  `json:"end_before_bytes"`
	EndAfter   int64  `json:"end_after_bytes"`
	Words      string `json:"-"` // of the purpose
}

// RunChange is a place of two runs.
type RunChange struct {
	Site
	Missing    timeline.Missing `json:"missing,omitempty"`
	Kind       string           `json:"kind,omitempty"` // "host" for pinned host memory
	PeakBefore *int64           `json:"peak_before_bytes"`
	PeakAfter  *int64           `json:"peak_after_bytes"`
	EndBefore  int64            `json:"end_before_bytes"`
	EndAfter   int64            `json:"end_after_bytes"`
}

// Gate is the answer to --max-growth.
type Gate struct {
	Limit  string   `json:"limit"`
	Passed bool     `json:"passed"`
	Over   []string `json:"over"` // what grew beyond the limit, a sentence each
	// Unjudged is what cannot be compared with the limit, a sentence each.
	Unjudged []string `json:"not_judged,omitempty"`
}
