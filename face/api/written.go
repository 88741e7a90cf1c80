package api

// Export is the document of `strandline export`.
type Export struct {
	Schema   string `json:"schema"`
	File     string `json:"file"`
	Format   string `json:"format"`
	Events   int    `json:"events"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
}

// StackExport is the document of `strandline export` of a recording.
type StackExport struct {
	Schema string `json:"schema"`
	File   string `json:"file"`
	Format string `json:"format"`
	Stacks int    `json:"stacks"`
	Bytes  int64  `json:"bytes"`
}

// View is what --html reports about the file that it wrote.
type View struct {
	Schema string `json:"schema"`
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
}
