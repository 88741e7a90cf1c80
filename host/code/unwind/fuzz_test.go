//go:build linux && amd64

package unwind

import (
	"encoding/binary"
	"os"
	"testing"

	"strandline/host/code/cpython"
	"strandline/host/code/elffile"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
)

// FuzzCalls steps through stacks that hold anything, from any place of a real
// program on, and lays frames of Python into them that do so, too.
func FuzzCalls(f *testing.F) {
	files := image.NewFiles()
	f.Cleanup(files.Close)
	im, err := image.Open(procfs.Process(os.Getpid()), files)
	if err != nil {
		f.Skipf("this process cannot be read here: %v", err)
	}
	f.Cleanup(im.Close)
	var code, stack procfs.Mapping
	for _, m := range im.Map.Mappings {
		switch {
		case m.Exec && code.End == 0:
			code = m
		case m.Path == "[stack]":
			stack = m
		}
	}
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint32(100), uint8(12))
	f.Fuzz(func(t *testing.T, data []byte, at uint32, minor uint8) {
		s := &Sample{Known: allKnown, Stack: data}
		for i := range s.Registers {
			s.Registers[i] = stack.End - 1<<14 + uint64(i)*8
		}
		s.Registers[elffile.PC] = code.Start + uint64(at)%code.Size()
		for i := 0; i+8 <= len(data); i += 8 { // so that many words lead to code or to the stack
			w := binary.LittleEndian.Uint64(data[i:])
			switch w % 3 {
			case 0:
				w = code.Start + w%code.Size()
			case 1:
				w = s.Registers[elffile.SP] + w%4096&^7
			}
			binary.LittleEndian.PutUint64(data[i:], w)
		}
		calls, err := Calls(im, s, nil)
		if len(calls) > maxCalls {
			t.Errorf("%d calls", len(calls))
		}
		for i := 1; i < len(calls); i++ {
			if calls[i].sp < calls[i-1].sp && err == nil {
				t.Errorf("call %d lies below the one before: %+v", i, calls)
			}
		}
		var frames []cpython.Frame
		for i := 0; i+24 <= len(data); i += 24 {
			w := func(j int) uint64 { return binary.LittleEndian.Uint64(data[i+8*j:]) }
			frames = append(frames, cpython.Frame{Address: w(0), Code: w(1), Instruction: w(2), Owner: data[i] % 8, Entry: data[i+1]%2 == 0})
		}
		place, _ := im.Locate(code.Start)
		r := &cpython.Runtime{Object: place.Object}
		r.Minor = 8 + uint32(minor)%7
		steps, _ := Merge(im, r, calls, frames)
		if len(steps) > len(calls)+len(frames) {
			t.Errorf("%d steps of %d calls and %d frames", len(steps), len(calls), len(frames))
		}
		for _, step := range steps {
			if step.Python == nil {
				Name(im, nil, step)
			}
		}
	})
}
