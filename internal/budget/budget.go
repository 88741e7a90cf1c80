// Package budget bounds the cost of reading a file by the size of the file: what is kept
// of it in memory, and the parts of it that are visited. A file can name one part in many
// places, refer to itself, or unfold a thousandfold; files of real programs cost a fraction
// of what is allowed.
//
// Every decoder draws from a [Budget]: what it is about to make, or to visit again, in
// bytes. budget_test.go at the root of the module lists the decoders.
package budget

import (
	"bytes"
	"fmt"
	"io"
)

// A budget is a fixed sum and a multiple of the size of the file, bytes. A file of a few
// kilobytes gets less than the fixed sum, so that it is read quickly, whatever it contains.
const (
	minBytes  = 4 << 20
	perFirst  = 512
	freeBytes = 48 << 20
)

// The bytes of a budget for each byte of a file.
const (
	// Plain is for files in which each thing that is kept has bytes of its own.
	Plain = 48
	// Packed is for files whose own form is compressed.
	Packed = 256
)

// A Budget counts the cost of one file. The zero one is of an empty file.
type Budget struct {
	limit, spent int64
	more         int64
	perByte      int64
	lean         bool // nothing is added for the bytes of a small file
	size         func() int64
	err          error
}

// New returns the budget of a file of so many bytes, with perByte for each; the size may
// grow while the file is read.
func New(size func() int64, perByte int64) *Budget {
	return &Budget{size: size, perByte: perByte}
}

// Of returns the budget of a file of that size, as [New] does.
func Of(size, perByte int64) *Budget { return New(func() int64 { return size }, perByte) }

// Reader returns a reader of a file, and a budget that grows with what is read of it.
func Reader(r io.Reader, perByte int64) (io.Reader, *Budget) {
	c := &counter{r: r}
	return c, New(func() int64 { return c.n }, perByte)
}

// Unpacking returns a reader of a compressed file of that size, 0 if it is not known, and the
// budget of the bytes that it unpacks to. They cost time more than memory, so a small file
// gets less of them.
func Unpacking(r io.Reader, size int64) (io.Reader, *Budget) {
	c := &counter{r: r}
	read := func() int64 { return c.n }
	if size > 0 {
		read = func() int64 { return size }
	}
	return c, &Budget{size: read, perByte: Packed, lean: true}
}

// JSON is an upper bound on the memory that a value in JSON takes as Go data, bytes: a brace
// begins a struct, the largest of which has a few hundred bytes, or a frame, which most of
// them are; and a comma an element of a list.
func JSON(text []byte) int {
	const object, frame, element = 512, 160, 48
	frames := bytes.Count(text, []byte(`{"function":`))
	return len(text) + object*(bytes.Count(text, []byte("{"))-frames) + frame*frames + element*bytes.Count(text, []byte(","))
}

// Another returns a budget of the same file, from which nothing is taken yet.
func (b *Budget) Another() *Budget {
	return &Budget{size: b.size, perByte: b.perByte, lean: b.lean}
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (n int, err error) {
	n, err = c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Spend takes n bytes for things, which it names in the plural. Past the limit it is an
// error, and takes nothing.
func (b *Budget) Spend(n int, things string) error {
	b.spent += int64(n)
	if b.spent <= b.limit && n >= 0 {
		return nil
	}
	return b.overdrawn(n, things)
}

func (b *Budget) overdrawn(n int, things string) error {
	if n < 0 { // an overflow of the caller's
		b.spent = b.limit + 1
	}
	b.raise()
	if b.spent <= b.limit {
		return nil
	}
	b.spent -= int64(n) // it is not made
	if b.err == nil {
		b.err = fmt.Errorf("the file asks for more memory than its size accounts for: too many %s", things)
	}
	return b.err
}

// raise sets the limit by the size of the file, or what was read of it.
func (b *Budget) raise() {
	b.limit = b.more + minBytes
	if b.size != nil {
		size, free := b.size(), int64(minBytes)
		if !b.lean {
			free = min(freeBytes, minBytes+perFirst*size)
		}
		b.limit = b.more + free + b.perByte*size
	}
}

// Return gives back n bytes that were taken for what is gone.
func (b *Budget) Return(n int) { b.spent -= int64(n) }

// Afford takes n times size bytes, or as much of it as is left, and returns how many of the
// n that is.
func (b *Budget) Afford(n, size int, things string) int {
	if b.Spend(n*size, things) == nil {
		return n
	}
	n = int(max(0, b.limit-b.spent) / int64(size))
	b.spent += int64(n * size)
	return n
}

// Allow adds n bytes, for what is made when the reading has ended.
func (b *Budget) Allow(n int64) {
	b.more = n
	b.raise()
}

// Available is how many bytes can be taken now.
func (b *Budget) Available() int64 {
	b.raise()
	return b.limit - b.spent
}

// Err is the first error of the budget; nil if it was never overdrawn.
func (b *Budget) Err() error { return b.err }
