// Package api holds the structs of the JSON that strandline prints, each schema once:
// the document of a command is in the file of its name, and package page has the
// answers that the page reads. It does not render: package report prints documents,
// package engine answers the page. docs/json.md explains the fields to users. Plans are
// made into documents in planned.go and handovers.go.
//
// Formats of files stay with their writers, and so do the documents that files hold:
// `strandline trace --json` prints a recording.Document, and `strandline watch --json`
// prints each sample.Sample before its document. Findings are of package finding; the
// facts of a snapshot, which inspect prints and the page reads, are those of package
// timeline.
//
// Fields that are left out of the JSON are for the text output.
package api

// The schemas, which documents begin with. The number rises only when a field changes
// its meaning or is removed.
const (
	CheckSchema        = "strandline.check/1"
	CompareSchema      = "strandline.compare/1"
	DiagnoseSchema     = "strandline.diagnose/1"
	DoctorSchema       = "strandline.doctor/1"
	ErrorSchema        = "strandline.error/1"
	ExportSchema       = "strandline.export/1"
	HooksSchema        = "strandline.hooks/1"
	InspectSchema      = "strandline.inspect/1"
	MemSchema          = "strandline.mem/1"
	PlanSchema         = "strandline.plan/1"
	RecordStatusSchema = "strandline.record-status/1"
	SimulateSchema     = "strandline.simulate/1"
	SnapshotSchema     = "strandline.snapshot/1"
	SoakSchema         = "strandline.soak/1"
	VersionSchema      = "strandline.version/1"
	ConfigSchema       = "strandline.config/1"
	ViewSchema         = "strandline.view/1"
	WatchSchema        = "strandline.watch/1"
)

// Site is a call site as JSON; its fields are null where the place is unknown.
type Site struct {
	File     *string `json:"file"`
	Line     *int64  `json:"line"`
	Function *string `json:"function"`
}

// Error is what a command that fails prints on stderr.
type Error struct {
	Schema string `json:"schema"`
	Error  string `json:"error"`
}
