package failure

import (
	"bytes"

	"strandline/logs/text"
)

// nameAt returns where the name of the error begins in a line, and the prefix of the
// log ends; -1 if it is not there.
func nameAt(line []byte) int {
	name := bytes.Index(line, []byte(" out of memory"))
	i := name
	if i < 0 {
		return -1
	}
	word := func(c byte) bool { return c == '.' || c == '_' || text.Digit(c) || text.Letter(c) }
	back := func() {
		for i > 0 && word(line[i-1]) {
			i--
		}
	}
	if errorOf, ok := bytes.CutSuffix(line[:i], []byte("error:")); ok {
		return deviceOfError(errorOf)
	}
	if back(); i == name { // ": out of memory" has none
		return -1
	}
	if string(line[i:name]) == "backend" && i > 0 { // MPS backend
		i--
		back()
	}
	if class := bytes.TrimSuffix(line[:i], []byte("Error: ")); len(class) < i {
		i = len(class)
		back() // torch.OutOfMemory
	}
	return i
}

// deviceOfError returns where the device is named in "CUDA error: out of memory", or "CUDA
// driver error: …", of which the text before "error:" is given; -1 if it is not.
func deviceOfError(line []byte) int {
	line = bytes.TrimSuffix(line, []byte("driver "))
	name := bytes.TrimSuffix(line, []byte(" "))
	at := len(name) - len(lastCapitals(name))
	if len(name)-at < 2 || len(name) == len(line) || at > 0 && text.Quotation(name[at-1]) {
		return -1
	}
	return at
}
