package api

import "strandline/plan"

// Solved is the document of `strandline plan --solve`.
type Solved struct {
	Schema   string         `json:"schema"`
	Model    PlannedModel   `json:"model"`
	Question string         `json:"question"`
	Answers  []SolvedAnswer `json:"answers"`

	Setup string `json:"-"` // what was given
}

// SolvedAnswer is the best value under one set-up; null where nothing fits.
type SolvedAnswer struct {
	Setup   string   `json:"setup"`
	Value   *float64 `json:"value"`
	Binding string   `json:"binding"`
}

// Checked is the document of `strandline plan --check`.
type Checked struct {
	Schema string        `json:"schema"`
	File   string        `json:"file"`
	Model  *PlannedModel `json:"model"` // null where it is not known, and nothing compared
	Setup  string        `json:"setup"`
	Rows   []CheckedRow  `json:"rows"`
	Off    *string       `json:"off"`
	// Failure is the log's own statement that memory ran out.
	Failure *CheckedFailure `json:"failure"`
	Notes   []string        `json:"notes"`

	First int `json:"-"` // the row of Off
}

// CheckedFailure is a line of the log.
type CheckedFailure struct {
	Line int64  `json:"line"`
	Text string `json:"text"`
}

// CheckedRow is a component, planned and observed: bytes, or tokens.
type CheckedRow struct {
	Component string    `json:"component"`
	Unit      string    `json:"unit"`
	Planned   *[2]int64 `json:"planned"` // null where the set-up does not determine it
	Observed  int64     `json:"observed"`
	Off       int64     `json:"difference"`
	Line      *int64    `json:"line"`
	Cause     *string   `json:"cause"`
}

// Against is the document of `strandline plan --against`.
type Against struct {
	Schema string       `json:"schema"`
	Table  string       `json:"table"`
	Rows   []AgainstRow `json:"rows"`
}

// AgainstRow is one figure of the table. Planned is a number, or [low, high].
type AgainstRow struct {
	ID        string   `json:"id"`
	Component string   `json:"component"`
	Observed  *float64 `json:"observed"`
	Planned   any      `json:"planned"`
	Error     *float64 `json:"error_percent"`
	Inside    *bool    `json:"inside"`
	Reason    *string  `json:"reason"`
	Unplanned *string  `json:"unplanned"`
}

// Textbook is the document of `strandline plan --method textbook`.
type Textbook struct {
	Schema string           `json:"schema"`
	Model  PlannedModel     `json:"model"`
	Rows   []TextbookFigure `json:"rows"`
	Why    []string         `json:"why"`
}

// TextbookFigure is a figure of the simple formulas next to the plan's.
type TextbookFigure struct {
	Component string `json:"component"`
	Textbook  int64  `json:"textbook"`
	Planned   int64  `json:"planned"`
}

// GPUTable is the document of `strandline plan gpus`.
type GPUTable struct {
	Schema string     `json:"schema"`
	GPUs   []plan.GPU `json:"gpus"`
}

// ModelTable is the document of `strandline plan models`.
type ModelTable struct {
	Schema string         `json:"schema"`
	Models []PlannedModel `json:"models"`
}
