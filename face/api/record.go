package api

import "strandline/record"

// RecordStatus is the document of `strandline record --status`.
type RecordStatus struct {
	Schema    string          `json:"schema"`
	Processes []record.Status `json:"processes"`
	Notes     []string        `json:"notes,omitempty"` // what could not be recorded, of the recordings in folders
}

// Snapshot is the document of `strandline snapshot`: the file that was written.
type Snapshot struct {
	Schema string `json:"schema"`
	Path   string `json:"path"`
}
