package ranks

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"strandline/logs/text"
)

// A record is a line of a log in JSON, by the keys under which collectors put the message and
// the pod or container that wrote it.
type record struct {
	Log        *string `json:"log"`
	Message    *string `json:"message"`
	Msg        *string `json:"msg"`
	Payload    *string `json:"textPayload"`
	Pod        string  `json:"pod"`
	PodName    string  `json:"pod_name"`
	Container  string  `json:"container_name"`
	Host       string  `json:"host"`
	Kubernetes struct {
		Pod  string `json:"pod_name"`
		Host string `json:"host"`
	} `json:"kubernetes"`
	Resource struct {
		Labels struct {
			Pod string `json:"pod_name"`
		} `json:"labels"`
	} `json:"resource"`
}

// unrecorded makes of records in JSON, one a line, their messages behind the pods that wrote
// them. Other texts are left as they are.
func unrecorded(r io.Reader) io.Reader {
	const head = 4 << 10
	in := bufio.NewReaderSize(r, text.LongestLine)
	begin, _ := in.Peek(head)
	if line, _, whole := bytes.Cut(begin, []byte("\n")); !whole || len(line) == 0 || line[0] != '{' || message(line) == nil {
		return in
	}
	return &records{in: in}
}

// records is that reader.
type records struct {
	in   *bufio.Reader
	rest []byte
	err  error
}

func (r *records) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var line []byte
		line, r.err = r.in.ReadSlice('\n')
		if r.err == bufio.ErrBufferFull {
			r.err = nil
		}
		if r.rest = message(line); r.rest == nil {
			r.rest = line
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// message is the text of a record with a line's end, nil if a line is none.
func message(line []byte) []byte {
	if len(line) == 0 || line[0] != '{' {
		return nil
	}
	var r record
	if json.Unmarshal(line, &r) != nil {
		return nil
	}
	for _, s := range []*string{r.Log, r.Message, r.Msg, r.Payload} {
		if s == nil {
			continue
		}
		out := strings.TrimRight(*s, "\r\n")
		if pod := cmp.Or(r.Kubernetes.Pod, r.PodName, r.Pod, r.Resource.Labels.Pod, r.Container, r.Kubernetes.Host, r.Host); pod != "" {
			prefix := "[pod/" + pod + "/log] "
			out = prefix + strings.ReplaceAll(out, "\n", "\n"+prefix)
		}
		return []byte(out + "\n")
	}
	return nil
}
