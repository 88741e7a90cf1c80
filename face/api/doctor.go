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
	Time     string `json:"time,omitempty"` // of the commit, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Config is the document of `strandline config`: flags that are set outside of the command
// line, or all of a command.
type Config struct {
	Schema   string    `json:"schema"`
	File     string    `json:"file"` // "" where the system has no folder for it
	Read     bool      `json:"read"` // it is there, and was read
	Note     string    `json:"note,omitempty"`
	Settings []Setting `json:"settings"`
}

// A Setting is a flag with its value.
type Setting struct {
	Command string `json:"command"` // its words; "" is every command
	Flag    string `json:"flag"`
	Value   string `json:"value"`
	Source  string `json:"source"` // default, $VARIABLE or FILE:LINE
}
