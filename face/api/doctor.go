package api

// Check is the result of one check.
type Check struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"told"`
	Do     string `json:"do,omitempty"` // what to do about it, if not OK
}

// Doctor is the document of `strandline doctor`.
type Doctor struct {
	Schema string  `json:"schema"`
	Checks []Check `json:"checks"`
}

// Version is the document of `strandline version`.
type Version struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}
