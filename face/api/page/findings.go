package page

import (
	"encoding/json"
	"errors"

	"strandline/face/api"
	"strandline/finding"
	"strandline/torch/tile"
)

// Findings is the answer to findings.
type Findings struct {
	Verdict  finding.Verdict `json:"verdict"`
	Card     api.Card        `json:"card"` // of the verdict
	Findings []Finding       `json:"findings"`
}

// Finding is a finding, with the place in the page that shows it.
type Finding struct {
	finding.Finding
	Card    api.Card `json:"card"`
	Origins []string `json:"origins" ts:"own|torch|library|generated|native"` // of the frames of its stack
	Where   *Where   `json:"where"`
}

// Where is the place in the page that shows a finding.
type Where struct {
	F     int           `json:"f"`
	D     *int          `json:"d"`
	G     tile.Grouping `json:"g"`
	Keys  []string      `json:"keys"`
	Event *int          `json:"event"`
	// Places are the lines of a finding whose memory could be freed, as "/src/train.py:131".
	Places []string `json:"places"`
}

// UnmarshalJSON reads the fields of the page in addition to those of the finding.
func (d *Finding) UnmarshalJSON(data []byte) error {
	beside := struct {
		Card    *api.Card `json:"card"`
		Origins *[]string `json:"origins"`
		Where   **Where   `json:"where"`
	}{&d.Card, &d.Origins, &d.Where}
	return errors.Join(json.Unmarshal(data, &d.Finding), json.Unmarshal(data, &beside))
}
