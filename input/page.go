package input

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
)

// embedded is the snapshot that a page of torch.cuda._memory_viz holds (trace_plot,
// segment_plot): its bytes, in base64, follow a key. Other files are returned as they are.
func embedded(r io.Reader) io.Reader {
	const look = 4 << 10 // bytes of the page before the snapshot
	in := bufio.NewReaderSize(r, look)
	head, _ := in.Peek(look)
	at := -1
	if start := bytes.TrimLeft(head, " \t\r\n\ufeff"); len(start) > 0 && start[0] == '<' && bytes.Contains(head, []byte("local_files")) {
		at = bytes.Index(head, embeddedKey)
	}
	if at < 0 {
		return in
	}
	_, _ = in.Discard(at + len(embeddedKey)) // it was peeked
	return base64.NewDecoder(base64.StdEncoding, &quotedReader{in: in})
}

var embeddedKey = []byte(`"base64": "`)

// A quotedReader reads up to a quotation mark.
type quotedReader struct {
	in   *bufio.Reader
	done bool
}

func (q *quotedReader) Read(p []byte) (int, error) {
	if q.done {
		return 0, io.EOF
	}
	n, err := q.in.Read(p)
	if end := bytes.IndexByte(p[:n], '"'); end >= 0 {
		q.done = true
		return end, nil
	}
	return n, err
}
