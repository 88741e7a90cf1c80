package page

import "strandline/torch/timeline"

// Comparison is the answer to compare: the files over time, by process.
type Comparison struct {
	Groups []Process `json:"groups"`
}

// Process is one process.
type Process struct {
	Process *string       `json:"process"`
	Files   []ProcessFile `json:"files"`
	// Survivors are listed for up to mostSurvivors files.
	Survivors []Survivors `json:"survivors"`
	Sites     []Site      `json:"sites"`
}

// ProcessFile is a file of a process.
type ProcessFile struct {
	F    int    `json:"f"`
	Path string `json:"path"`
}

// Survivors states, for a device and for each file and each later one, the bytes that
// live in both, and the first event of the later file that follows the end of the
// earlier; null if that is unknown.
type Survivors struct {
	Device int       `json:"device"`
	Bytes  [][]int64 `json:"bytes"`
	Event  [][]*int  `json:"event"`
}

// Site is a place of a process over its files.
type Site struct {
	Key      string  `json:"key"`
	File     *string `json:"file"`
	Line     *int64  `json:"line"`
	Function *string `json:"function"`
	// Missing is why there is no site; the key is then that of this cause.
	Missing   timeline.Missing `json:"missing,omitempty"`
	Bytes     []int64          `json:"bytes"`
	Count     []int64          `json:"count"`
	Survivors int64            `json:"survivors"`
	PerStep   int64            `json:"bytes_per_step"`
}
