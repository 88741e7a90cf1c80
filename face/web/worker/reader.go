//go:build js && wasm

package main

import (
	"errors"
	"io"
	"syscall/js"
)

// A reader reads a File of the browser, a piece at a time. The next piece is on
// its way while the last one is decoded; waiting for it lets questions in.
type reader struct {
	file     js.Value
	at, size int64 // of what was asked for
	piece    []byte
	next     chan result // nil at the end
}

type result struct {
	buffer js.Value
	err    error
}

// pieceSize is small enough for progress to be seen, and large enough for the
// overhead between two pieces to be negligible. The first is what a file is recognized by.
const firstPiece, pieceSize = 64 << 10, 2 << 20

// ahead asks for the next piece.
func (r *reader) ahead() {
	if r.at >= r.size {
		r.next = nil
		return
	}
	size := int64(pieceSize)
	if r.at == 0 {
		size = firstPiece
	}
	end := min(r.at+size, r.size)
	next := make(chan result, 1)
	var done, failed js.Func
	release := func() { done.Release(); failed.Release() }
	done = js.FuncOf(func(_ js.Value, args []js.Value) any {
		next <- result{buffer: args[0]}
		release()
		return nil
	})
	failed = js.FuncOf(func(_ js.Value, args []js.Value) any {
		next <- result{err: errors.New(args[0].Get("message").String())}
		release()
		return nil
	})
	r.file.Call("slice", float64(r.at), float64(end)).Call("arrayBuffer").Call("then", done, failed)
	r.at, r.next = end, next
}

func (r *reader) Read(p []byte) (int, error) {
	if len(r.piece) == 0 {
		if r.next == nil {
			r.ahead()
		}
		if r.next == nil {
			return 0, io.EOF
		}
		got := <-r.next
		if got.err != nil {
			return 0, got.err
		}
		if r.next = nil; r.at > firstPiece {
			r.ahead()
		}
		bytes := js.Global().Get("Uint8Array").New(got.buffer)
		r.piece = make([]byte, bytes.Length())
		js.CopyBytesToGo(r.piece, bytes)
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}
