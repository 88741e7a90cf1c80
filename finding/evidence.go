package finding

import (
	"encoding/json"
)

// Evidence is the figures behind a finding, which a person can check: a pointer to
// one of the structs of this package, or nil where there are none. Fields in bytes
// end in Bytes; a field that is nil, or left out of the JSON, is unknown or does not
// apply. Fields are in the order of their JSON names, which is that of the output.
type Evidence interface{ evidence() }

// RecordedEvidence is the evidence of a finding that was read from a file. The file
// may be of another version, so that what it holds is passed on as it is.
type RecordedEvidence struct {
	// Stacks are the ids of the stacks that the finding is about, as the file has
	// them; 0 means one that is not a number. Nil if the file names none.
	Stacks   []float64
	enlarged bool // HeapEnlarged of that evidence
	all      map[string]json.RawMessage
}

// MarshalJSON writes the evidence as it was read.
func (e *RecordedEvidence) MarshalJSON() ([]byte, error) { return json.Marshal(e.all) }

// UnmarshalJSON reads an object with any fields. It returns an error only if data is
// not an object.
func (e *RecordedEvidence) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &e.all); err != nil {
		return err
	}
	if stacks, ok := e.all["stacks"]; ok {
		// An element that is not a number stays 0, and what is not a list stays nil.
		_ = json.Unmarshal(stacks, &e.Stacks)
	}
	e.enlarged = string(e.all["heap_enlarged"]) == "true"
	return nil
}

// UnmarshalJSON reads a finding, its evidence as *RecordedEvidence. A struct that
// embeds a Finding and is read needs a method of its own for its other fields.
func (f *Finding) UnmarshalJSON(data []byte) error {
	type fields Finding // without this method
	in := struct {
		*fields
		Evidence RecordedEvidence `json:"evidence"`
	}{fields: (*fields)(f)}
	err := json.Unmarshal(data, &in)
	if f.Evidence = nil; len(in.Evidence.all) > 0 {
		f.Evidence = &in.Evidence
	}
	return err
}

// The parts of evidence that several kinds have.

// Inferred is what sizes suggest of memory that was allocated before the recording.
type Inferred struct {
	ByPurpose  map[string]int64 `json:"by_purpose"` // bytes
	Confidence float64          `json:"confidence"` // 0 to 1
}

// A PurposePlace is a site and what it holds for one purpose, in requested bytes.
type PurposePlace struct {
	Bytes   int64  `json:"bytes"`
	Count   int    `json:"count"` // of allocations
	Leaked  bool   `json:"leaked,omitzero"`
	Purpose string `json:"purpose"`
	Site    *Site  `json:"site"` // nil if unknown
}

// Pins are segments with free memory that cannot be returned, and the active blocks
// that keep it there.
type Pins struct {
	Blocks        int   `json:"blocks"`
	Bytes         int64 `json:"bytes"` // of the blocks
	Segments      int   `json:"segments"`
	StrandedBytes int64 `json:"stranded_bytes"` // free in these segments
}

// A PinSite is a site and the blocks of it that pin segments.
type PinSite struct {
	Bytes int64 `json:"bytes"`
	Count int   `json:"count"` // of blocks
	Site  *Site `json:"site"`  // nil if unknown
}

func (*RecordedEvidence) evidence() {}
