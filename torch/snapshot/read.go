package snapshot

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync/atomic"

	"strandline/internal/budget"
	"strandline/internal/packed"
	"strandline/torch/pickle"
)

// ErrNotSnapshot is the error for a file that is something else.
var ErrNotSnapshot = errors.New("not a snapshot of PyTorch's allocator")

// ErrUnknown is the error for a file that begins like no known format.
var ErrUnknown = fmt.Errorf("%w", ErrNotSnapshot)

var errNotSnapshot = fmt.Errorf("%w: it has neither segments nor traces", ErrNotSnapshot)

// Options state how to read.
type Options struct {
	Name string // for messages
	Size int64  // bytes of the input where it is known, otherwise 0: columns are sized by it
	// Progress, if not nil, is called now and then with the bytes read so far. An
	// error that it returns ends the reading.
	Progress func(read int64) error
}

// Open reads the file at path; "-" is standard input.
func Open(path string, o Options) (*Snapshot, error) {
	o.Name = path
	if path == "-" {
		return Read(os.Stdin, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	if info.Mode().IsRegular() {
		o.Size = info.Size()
	}
	return Read(f, o)
}

// Read reads a snapshot of any form. A file that ends early or is damaged gives
// what could be read, with Partial set; an error means that nothing could.
func Read(r io.Reader, o Options) (*Snapshot, error) {
	s, err := read(r, o)
	if err != nil {
		if o.Name != "" {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		return nil, err
	}
	return s, nil
}

func read(r io.Reader, o Options) (*Snapshot, error) {
	count := &counter{r: r, progress: o.Progress}
	const buffer, look = 64 << 10, 512 // bytes
	raw := bufio.NewReaderSize(count, buffer)
	if 0 < o.Size && o.Size < buffer {
		raw = bufio.NewReaderSize(count, max(int(o.Size)+1, look))
	}
	head, err := raw.Peek(look)
	if err != nil && err != io.EOF {
		return nil, err
	}
	unpacked, compression, err := packed.Open(raw, o.Size)
	format := Format{Protocol: -1, Compression: compression}
	if err != nil {
		return nil, fmt.Errorf("read %s: at byte %d: %w", compression, count.n.Load()-int64(raw.Buffered()), err)
	}
	defer unpacked.Close()
	if compression == "" {
		if _, err := sniff(head); err != nil {
			return nil, err // before room is made for a snapshot
		}
	}
	b := newBuilder()
	b.size, b.read = o.Size, count.n.Load
	b.budget = *budget.New(func() int64 { return max(o.Size, count.n.Load()) }, budget.Plain)
	src := &source{r: raw, b: b}
	var in io.Reader = src
	buffered := raw // what in reads from, or in itself
	if format.Compression != "" {
		src.r = unpacked
		buffered = bufio.NewReaderSize(src, buffer)
		in = buffered
		if head, err = buffered.Peek(look); len(head) == 0 {
			if src.err != nil {
				err = src.err
			}
			if err != io.EOF {
				return nil, fmt.Errorf("read %s: at byte %d: %w", format.Compression, count.n.Load()-int64(raw.Buffered()), err)
			}
		}
	}
	kind, err := sniff(head)
	if err != nil {
		return nil, err
	}
	format.Encoding = kind
	b.snap.Name, b.snap.Format = o.Name, format
	var root pickle.Value
	if src.text = kind == "json"; src.text {
		skipped, _ := buffered.Discard(len(head) - len(bytes.TrimPrefix(head, byteOrderMark)))
		root, err = decodeJSON(in, int64(skipped), b)
	} else {
		b.snap.Format.Protocol = protocol(head)
		root, err = pickle.Decode(in, b)
	}
	if err == nil && format.Compression != "" {
		buffered.Peek(1) // the checksum, if this is the end
	}
	b.snap.Partial = src.partial(err, format.Compression)
	damaged := err != nil
	if damaged {
		root = b.salvaged
	}
	b.conclusion()
	wrong := b.assemble(root)
	if b.snap.Partial == nil && b.budget.Err() != nil {
		b.snap.Partial = src.partial(b.budget.Err(), format.Compression)
	}
	if damaged && (wrong != nil || len(b.snap.Segments) == 0 && b.events.Len() == 0) {
		wrong = fmt.Errorf("at %s: %w", b.snap.Partial.Place(), b.snap.Partial.Err)
	}
	if wrong != nil {
		return nil, wrong
	}
	b.snap.check()
	return b.snap, nil
}

// partial is where and why the decoding of what was read ended with an error; nil if it did not.
func (s *source) partial(err error, compression string) *Partial {
	at, why := s.n, cmp.Or(err, s.err)
	var syntax *pickle.SyntaxError
	if errors.As(err, &syntax) && (s.err == nil || !errors.Is(syntax.Err, pickle.ErrTruncated)) {
		at, why = syntax.Offset, syntax.Err
	} else if syntax != nil {
		why = s.err
	}
	if why == nil {
		return nil
	}
	return &Partial{at, why, compression != ""}
}

// byteOrderMark precedes text that some programs of Windows write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// sniff infers the encoding from the first bytes.
func sniff(head []byte) (string, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	switch {
	case len(head) == 0:
		return "", fmt.Errorf("%w: the file is empty", ErrNotSnapshot)
	case head[0] == 0x80, head[0] == '(', head[0] == ']', head[0] == '}':
		return "pickle", nil
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return "json", nil
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "", fmt.Errorf("%w: this is a Git LFS pointer; run `git lfs pull` to get the file itself", ErrNotSnapshot)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "", fmt.Errorf("%w: this is a zip archive (torch.save writes those); unpack it if a snapshot is inside", ErrNotSnapshot)
	case len(text) > 0 && text[0] == '<':
		return "", fmt.Errorf("%w: this is a web page; dump a pickle with torch.cuda.memory._dump_snapshot", ErrNotSnapshot)
	}
	return "", fmt.Errorf("%w: it begins with %q, which is neither pickle nor JSON", ErrUnknown, clip(head))
}

func clip(b []byte) string {
	const maxQuoted = 16
	return strings.ToValidUTF8(string(b[:min(len(b), maxQuoted)]), "?")
}

// protocol is the number that a pickle states; 0 and 1 do not state it.
func protocol(head []byte) int {
	if len(head) > 1 && head[0] == 0x80 {
		return int(head[1])
	}
	if head[0] == '(' {
		return 0
	}
	return 1
}

// counter counts what was read. zstd reads ahead in another goroutine.
type counter struct {
	r        io.Reader
	n        atomic.Int64
	progress func(int64) error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	total := c.n.Add(int64(n))
	if c.progress != nil {
		if stop := c.progress(total); stop != nil {
			return 0, stop
		}
	}
	return n, err
}

func sortStrings(s []string) { sort.Strings(s) }
