package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// longestLine bounds a line of a stream, and an answer in one piece, in bytes.
const longestLine = 16 << 20

// maxTokens is more than a request has, so that sums of requests do not overflow.
const maxTokens = 1 << 32

// An answer is being read.
type answer struct {
	worker *worker
	result *result
	began  time.Time
	abort  int // pieces after which to cancel; 0 for never
	cut    func()
	pieces int
	// finished reports whether the answer states why it ended, as that of a model does
	// which has nothing to say.
	finished bool
}

// A piece is a message of a stream, or a whole answer.
type piece struct {
	Choices []struct {
		Delta   spoken
		Message spoken
		Text    string
		Reason  string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	}
	Error json.RawMessage
}

// spoken is a part of a chat.
type spoken struct {
	Content   *string
	Reasoning *string `json:"reasoning_content"`
}

// errLong is the error for a line, or an answer in one piece, that is too long.
var errLong = fmt.Errorf("an answer with more than %d MiB in a line", longestLine>>20)

// lines reads lines of limited length.
type lines struct{ in *bufio.Reader }

// next returns the next line without its end. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) < longestLine {
			line, err = l.in.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errLong
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// stream reads server-sent events until the one that states that the answer is complete.
func (a *answer) stream(body io.Reader) error {
	l := &a.worker.reader
	if l.in == nil {
		l.in = bufio.NewReaderSize(nil, 16<<10)
	}
	l.in.Reset(body)
	for {
		line, err := l.next()
		if err == errLong {
			return a.garbage("%v", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case ok && string(data) == "[DONE]":
			io.Copy(io.Discard, io.LimitReader(l.in, 1<<10)) // to its end, so that the connection is used again
			return a.complete()
		case ok && len(data) > 0:
			if err := a.take(data); err != nil {
				return err
			}
		case !ok && !known(line) && len(line) > 0:
			return a.garbage("%q in a stream of events", clipped(line))
		}
		if errors.Is(err, io.EOF) {
			return a.garbage("the stream ended without [DONE]")
		}
		if err != nil {
			return err
		}
	}
}

// known reports whether a line of a stream is a comment, or a field that is not needed.
func known(line []byte) bool {
	return slices.ContainsFunc([]string{":", "event:", "id:", "retry:"}, func(field string) bool { return bytes.HasPrefix(line, []byte(field)) })
}

// whole reads an answer in one piece.
func (a *answer) whole(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, longestLine))
	if err != nil {
		return err
	}
	if len(text) == longestLine {
		return a.garbage("%v", errLong)
	}
	if err := a.take(text); err != nil {
		return err
	}
	return a.complete()
}

// complete returns an error for an answer that has no text, no tokens and no reason why.
func (a *answer) complete() error {
	if a.pieces == 0 && a.result.outputTokens == 0 && !a.finished {
		return a.garbage("an answer without text")
	}
	return nil
}

// take reads a piece.
func (a *answer) take(data []byte) error {
	var p piece
	if err := json.Unmarshal(data, &p); err != nil {
		return a.garbage("%q is not an answer: %v", clipped(data), err)
	}
	if len(p.Error) > 0 && string(p.Error) != "null" {
		a.result.kind = ServerError
		return errors.New(message(data))
	}
	hasText := false
	for i := range p.Choices {
		c := &p.Choices[i]
		a.finished = a.finished || c.Reason != ""
		for _, text := range []*string{c.Delta.Content, c.Delta.Reasoning, c.Message.Content, c.Message.Reasoning, &c.Text} {
			if text != nil && *text != "" {
				hasText = true
				if a.worker.client.o.Turns > 1 && len(a.worker.answer) < longestLine {
					a.worker.answer = append(a.worker.answer, *text...)
				}
			}
		}
	}
	r := a.result
	if hasText {
		a.pieces++
		r.last = time.Since(a.began)
		if r.first == 0 {
			r.first = r.last
		}
		r.outputTokens++ // about: the usage says it exactly
	}
	if u := p.Usage; u != nil {
		if min(u.Prompt, u.Completion) < 0 || max(u.Prompt, u.Completion) > maxTokens {
			return a.garbage("an answer that counts %d and %d tokens", u.Prompt, u.Completion)
		}
		r.promptTokens, r.outputTokens = u.Prompt, u.Completion
	}
	if a.abort > 0 && a.pieces >= a.abort && a.worker.client.o.Stream {
		a.cut()
		return errAborted
	}
	return nil
}

func (a *answer) garbage(format string, args ...any) error {
	a.result.kind = Garbage
	return fmt.Errorf(format, args...)
}

func clipped(text []byte) []byte { return text[:min(len(text), 60)] }
