package page

import (
	"encoding/json"
	"errors"

	"strandline/face/api"
	"strandline/finding"
)

// Watch is the answer to watch: a recording of levels over time as a whole, by what is
// known so far. Times are seconds after its first sample.
type Watch struct {
	File    string `json:"file"`
	Version int    `json:"version"` // another one means that there is more
	Reading bool   `json:"reading"` // not all that is there was read
	// Following states that later samples will come when they are written.
	Following bool            `json:"following"`
	Began     int64           `json:"began_us"` // 0 if the times have no date
	Seconds   float64         `json:"seconds"`  // of the last sample
	Samples   int             `json:"samples"`
	Partial   *string         `json:"partial"` // why something is left out
	Note      string          `json:"devices_note"`
	Verdict   finding.Verdict `json:"verdict"`
	Card      api.Card        `json:"card"` // of the verdict
	Findings  []WatchFinding  `json:"findings"`
	LeftOut   int             `json:"findings_left_out"`
	Subjects  []Subject       `json:"subjects"` // the weightiest first
	Others    int             `json:"subjects_left_out"`
	Load      *WatchLoad      `json:"load"` // null if no engine was asked
}

// WatchLoad is an inference engine whose load was recorded. Its course has requests in
// place of bytes, and the share of the KV cache in millionths.
type WatchLoad struct {
	Engine string `json:"engine"` // empty if it was never read
	Key    string `json:"key"`    // of its course
	Note   string `json:"note"`   // why its load is not known now
}

// SplitPart is a part of what a subject holds.
type SplitPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// WatchFinding is a finding of a recording of levels, with what it is of.
type WatchFinding struct {
	finding.Finding
	Card    api.Card `json:"card"`
	Origins []string `json:"origins" ts:"own|torch|library|generated|native"`
	Subject *string  `json:"subject"` // its key; null if it is not drawn
	Parts   []string `json:"parts"`   // whose sum was judged; of none of them it is the total
	Fit     *Fit     `json:"fit"`     // null if no curve was fitted
}

// Fit is the curve that was fitted to a series, with bounds in which its level lies in 9
// of 10 cases, up to the last sample that was judged at Until, and beyond.
type Fit struct {
	Until   float64   `json:"until"`
	Seconds []float64 `json:"seconds"`
	Level   []float64 `json:"level_bytes"`
	Low     []float64 `json:"low_bytes"`
	High    []float64 `json:"high_bytes"`
}

// Subject is what has a course of its own: a process on the host or on a device, a
// container, a device or the machine.
type Subject struct {
	Key   string `json:"key"`
	Kind  string `json:"kind" ts:"process|container|device"`
	Label string `json:"label"`
	Place string `json:"place"` // where the memory is: "host", "device 0"
	// Facts are what else is known, as names and values.
	Facts [][2]string `json:"facts"`
	First float64     `json:"first"`
	Last  float64     `json:"last"`
	Ended bool        `json:"ended"`
	Now   int64       `json:"now_bytes"` // when it was last seen
	Peak  int64       `json:"peak_bytes"`
	Split []SplitPart `json:"split"` // of Now
	// Mappings is the key of the course of its mappings; null if they were not looked at,
	// as those of a process that does not grow.
	Mappings *string           `json:"mappings"`
	Limit    *int64            `json:"limit_bytes"`
	Severity *finding.Severity `json:"severity"` // of the weightiest finding
	Words    string            `json:"verdict"`  // in words; empty if there is none
	Left     string            `json:"left"`     // the time to the limit
	// Judged is the judgment of the total of a device or a container, whoever takes it,
	// and Fit its curve; null of others, and where nothing changed.
	Judged *finding.LevelsEvidence `json:"judged"`
	Fit    *Fit                    `json:"fit"`
	Parts  []string                `json:"judged_parts"` // whose sum it is of; of none the total
}

// Levels is the answer to levels: the course of one subject. Column c is of the time from
// From[c] to To[c], and has the state of the moment At[c] at which the total was highest.
type Levels struct {
	Key   string      `json:"key"`
	Parts []LevelPart `json:"parts"`
	From  []float64   `json:"from"`
	To    []float64   `json:"to"`
	At    []float64   `json:"at"`
	Count []int       `json:"samples"`
	Max   []int64     `json:"max_bytes"` // of the total, as the next two
	Min   []int64     `json:"min_bytes"`
	Last  []int64     `json:"last_bytes"`
	Bytes [][]*int64  `json:"bytes"` // by part; null where it is not known
}

// LevelPart is a part of what a subject holds.
type LevelPart struct {
	Name   string `json:"name"`
	Beside bool   `json:"beside"` // it is not part of the total
}

// UnmarshalJSON reads the fields of the page in addition to those of the finding.
func (d *WatchFinding) UnmarshalJSON(data []byte) error {
	beside := struct {
		Card    *api.Card `json:"card"`
		Origins *[]string `json:"origins"`
		Subject **string  `json:"subject"`
		Parts   *[]string `json:"parts"`
		Fit     **Fit     `json:"fit"`
	}{&d.Card, &d.Origins, &d.Subject, &d.Parts, &d.Fit}
	return errors.Join(json.Unmarshal(data, &d.Finding), json.Unmarshal(data, &beside))
}
