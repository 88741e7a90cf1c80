package page

// Wall is the answer to wall: a row for each device of each file, and for each file without a
// picture.
type Wall struct {
	Rows   []WallRow `json:"rows"`
	ByStep bool      `json:"by_step"` // the courses have the same steps in the same columns
}

// WallRow is a device of a file.
type WallRow struct {
	F       int   `json:"f"`
	D       *int  `json:"d"`       // nil without a picture
	Peak    int64 `json:"peak"`    // requested bytes
	End     int64 `json:"end"`     // at the snapshot
	Course  []int `json:"course"`  // the highest of each stretch of events, in thousandths of the peak; 0 where a row has not the step
	Finding *int  `json:"finding"` // the worst one that points here, by its place among all
}
