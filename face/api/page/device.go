package page

import "strandline/torch/tile"

// Device is the answer to device: the facts of one device of a file.
type Device struct {
	Device       int             `json:"device"`
	Events       int             `json:"events"`
	Allocations  int             `json:"allocations"`
	Measures     []string        `json:"measures"`
	MeasuresWhy  *string         `json:"measures_why"`
	Groupings    []tile.Grouping `json:"groupings"`
	Start        Sums            `json:"start"`
	End          Sums            `json:"end"`
	Peak         Moment          `json:"peak"`
	PeakReserved Moment          `json:"peak_reserved"`
	Kept         int64           `json:"kept"`
	Pending      int64           `json:"pending"`
	Coverage     Coverage        `json:"coverage"`
	Time         *Time           `json:"time"`
	TimeWhy      *string         `json:"time_why"`
	Marks        []Mark          `json:"marks"`
	MarksLeftOut int             `json:"marks_left_out"`
	Scopes       []Scope         `json:"scopes"`
	Version      string          `json:"torch_version"`
	Settings     *string         `json:"settings"`           // of the allocator, as PYTORCH_CUDA_ALLOC_CONF has them; null if the file has none
	MostEvents   *int64          `json:"most_events"`        // that the recording kept, null if the file does not state it
	Capacity     *int64          `json:"capacity,omitempty"` // that PyTorch could have, as errors show it
	Held         *Held           `json:"held,omitempty"`     // in a saved page
}

// Sums are the bytes after an event: in the measure that was asked for, as requested, and reserved.
type Sums struct {
	Live      int64 `json:"live"`
	Requested int64 `json:"requested"`
	Reserved  int64 `json:"reserved"`
}

// Moment is an event and the bytes after it.
type Moment struct {
	Event int   `json:"event"`
	Bytes int64 `json:"bytes"`
}

// Coverage states how much of the device's life the history covers.
type Coverage struct {
	Kind string `json:"kind" ts:"exact|ring|late|damaged|state"`
	Text string `json:"text"`
}

// Time is the axis of time: from Start to End in µs since 1970, Span µs long without what Folds take out.
type Time struct {
	Start int64       `json:"start_us"`
	End   int64       `json:"end_us"`
	Span  int64       `json:"span"`
	Folds []tile.Fold `json:"folds"`
}

// Mark is an event to be marked in the picture.
type Mark struct {
	Event int    `json:"event"`
	Kind  string `json:"kind" ts:"oom|snapshot|release"`
	Label string `json:"label"`
}

// A Scope is a stretch of events that an annotation names.
type Scope struct {
	Name string `json:"name"`
	Lane string `json:"lane" ts:"steps|notes"`
	From int    `json:"from"`
	To   int    `json:"to"`
	Open bool   `json:"open"` // it had not ended when the history did
}

// Bands is the answer to bands: the groups of a grouping, and the bands of the picture from the bottom up.
type Bands struct {
	Kept         int     `json:"kept"`
	Groups       []Group `json:"groups"`
	Bands        []Band  `json:"bands"`
	Lanes        []Lane  `json:"lanes"`
	LanesLeftOut int     `json:"lanes_left_out"`
}

// Group is a group of allocations, such as those of one line.
type Group struct {
	Key      string  `json:"key"`
	Label    string  `json:"label"`
	File     *string `json:"file,omitempty"`
	Line     *int64  `json:"line,omitempty"`
	Function *string `json:"function,omitempty"`
	Slot     int     `json:"slot"`
	Peak     Moment  `json:"peak"`
	Kept     int64   `json:"kept"`
	Allocs   int     `json:"allocations"`
}

// Band is a band of the picture: allocations of one group and one fate.
type Band struct {
	Group int    `json:"group"`
	Fate  string `json:"fate" ts:"kept|freed|pending"`
}

// Lane is a group that grows, with its bytes from place From to To.
type Lane struct {
	Group  int     `json:"group"`
	From   int64   `json:"from"`
	To     int64   `json:"to"`
	Points []int64 `json:"points"`
}
