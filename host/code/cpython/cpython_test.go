package cpython

import (
	"encoding/binary"
	"io"
	"strandline/host/calls/event"
	"strandline/host/code/pyframes"
	"strings"
	"testing"
)

// Tables of lines as Python wrote them: of a function whose first line is 10, at
// which line each byte of its code is.
func TestLineTables(t *testing.T) {
	for _, c := range []struct {
		name  string
		line  func(at int) int
		lines map[int]int
	}{
		{"3.9", func(at int) int { return lineBefore310([]byte{0, 1, 8, 2, 6, 255, 255, 0, 10, 100}, 10, at) },
			map[int]int{-1: 10, 0: 11, 7: 11, 8: 13, 14: 12, 270: 12, 279: 112}},
		{"3.10", func(at int) int { return line310([]byte{4, 1, 6, 0x80, 8, 255, 2, 127}, 10, at) },
			map[int]int{-1: 11, 0: 11, 4: 0, 9: 0, 10: 10, 18: 137, 20: 0}},
		// Forms: at the first line; two lines on; long form, 70 lines back; no line;
		// short form, one line on.
		{"3.11", func(at int) int {
			return lineFrom311([]byte{0x80 | 10<<3, 1, 2, 0x80 | 12<<3 | 1, 3, 4, 0x80 | 14<<3 | 2, 0x40 | 0x0d, 0x02, 0, 1, 1, 0x80 | 15<<3, 0x80 | 13<<3 | 7, 2, 0x80 | 3<<3, 0x11}, 10, int64(at))
		},
			map[int]int{0: 10, 1: 12, 2: 12, 3: -58, 5: -58, 6: 0, 7: -57, 14: -57, 15: -57, 16: 0}},
		{"3.11, cut", func(at int) int { return lineFrom311([]byte{0x80 | 14<<3}, 10, int64(at)) }, map[int]int{0: 10, 1: 0}},
		{"3.11, broken", func(at int) int { return lineFrom311([]byte{1}, 10, int64(at)) }, map[int]int{0: 0}},
	} {
		for at, want := range c.lines {
			if got := c.line(at); got != want {
				t.Errorf("%s: byte %d is at line %d, want %d", c.name, at, got, want)
			}
		}
	}
}

// TestLineBeforeCode has a frame that has not begun, and one that runs a copy of
// the code, as threads do in builds without the global lock.
func TestLineBeforeCode(t *testing.T) {
	r := &Runtime{layout: layouts[12]}
	k := &code{first: 10, lines: []byte{0x80 | 12<<3, 1, 2}}
	begin := uint64(0x5000) + uint64(r.codeCode)
	for instruction, want := range map[uint64]int{begin: 12, begin - 2: 10, begin - 4096: 0, begin + 4096: 0} {
		if got := r.line(k, Frame{Code: 0x5000, Instruction: instruction}); got != want {
			t.Errorf("%d bytes after the beginning of the code is at line %d, want %d", int64(instruction-begin), got, want)
		}
	}
}

// TestCodeInPlaceOfAnother has a function whose code is at the address that another's
// had when its frame was seen.
func TestCodeInPlaceOfAnother(t *testing.T) {
	r := &Runtime{layout: layouts[12]}
	const at, file, first, second = 0x1000, 0x1200, 0x1280, 0x1300
	m := memory{at, make([]byte, 0x400)}
	put := func(addr, v uint64) { binary.LittleEndian.PutUint64(m.data[addr-at:], v) }
	for addr, text := range map[uint64]string{file: "file.py", first: "first", second: "second"} {
		put(addr+uint64(r.textLength), uint64(len(text)))
		put(addr+uint64(r.textLength)+16, 1<<2|1<<5|1<<6)
		copy(m.data[addr-at+uint64(r.textASCII):], text)
	}
	put(at+uint64(r.codeFile), file)
	codes := r.Codes()
	name := func(names uint32) string {
		f, err := codes.Name(m, Frame{Code: at, Names: names})
		if err != nil {
			return err.Error()
		}
		return f.Function
	}
	for _, c := range []struct {
		inPlace, seen uint64
		want          string
	}{
		{first, first, "first"},
		{second, first, "first"}, // as it is known
		{second, second, "second"},
		{second, first, errGone.Error()},
		{first, second, "second"},
	} {
		put(at+uint64(r.codeName), c.inPlace)
		if got := name(event.NamesOf(file, c.seen)); got != c.want {
			t.Errorf("code with the name at %#x was seen, and at %#x is there now: got %q, want %q", c.seen, c.inPlace, got, c.want)
		}
	}
	if got := name(0); got != "first" {
		t.Errorf("got %q of code of which nothing is known", got)
	}
}

// memory is one stretch of memory, from an address on.
type memory struct {
	from uint64
	data []byte
}

func (m memory) Read(b []byte, addr uint64) error {
	if addr < m.from || addr-m.from > uint64(len(m.data)) || len(b) > len(m.data)-int(addr-m.from) {
		return io.ErrUnexpectedEOF
	}
	copy(b, m.data[addr-m.from:])
	return nil
}

func TestText(t *testing.T) {
	r := &Runtime{layout: layouts[12]}
	for _, c := range []struct {
		name   string
		state  uint32
		data   uint32
		length uint64
		chars  string
		want   string
	}{
		{"ASCII", 1<<2 | 1<<5 | 1<<6, 40, 3, "abc", "abc"},
		{"one byte each", 1 | 1<<2 | 1<<5, 56, 2, "g\xfc", "gü"},
		{"two bytes each", 2<<2 | 1<<5, 56, 2, "\x16\x4e\x4c\x75", "世界"},
		{"two bytes each, not text", 2<<2 | 1<<5, 56, 2, "\x16\x4e\x80\xdc", "世\uFFFD"},
		{"four bytes each", 4<<2 | 1<<5, 56, 1, "\x00\xf6\x01\x00", "😀"},
		{"interned in 16 bits", 3 | 1<<16 | 1<<19 | 1<<20, 40, 1, "x", "x"},
		{"no string", 0, 40, 1, "x", ""},
		{"too long", 1<<2 | 1<<5 | 1<<6, 40, 1 << 40, "x", ""},
	} {
		data := make([]byte, 80)
		binary.LittleEndian.PutUint64(data[16:], c.length)
		binary.LittleEndian.PutUint32(data[32:], c.state)
		copy(data[c.data:], c.chars)
		got, err := r.text(memory{0x1000, data}, 0x1000)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// block returns what an interpreter states of its offsets: version, whether it has no
// global lock, and the words behind.
func block(version, free uint64, words ...uint64) []byte {
	b := append([]byte(cookie), make([]byte, blockSize-8)...)
	for i, w := range append([]uint64{version, free}, words...) {
		binary.LittleEndian.PutUint64(b[8+8*i:], w)
	}
	return b
}

func TestDebugOffsets(t *testing.T) {
	words314 := []uint64{
		1000, 1, 808, // runtime
		9000, 1, 16, 7344, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, // interpreter
		300, 0, 8, 16, 72, 152, 160, 1, 2, // thread
		88, 8, 0, 56, 80, 74, 64, 72, // frame
		220, 112, 120, 128, 136, 68, 1, 2, 3, 208, 9, // code
	}
	o, err := debugOffsets(block(0x030e00f0, 0, words314...))
	if err != nil {
		t.Fatal(err)
	}
	want := layout{
		Minor: 14, codeMask: 3, runtimeInterpreters: 808, interpreterThreads: 7344,
		threadNext: 8, threadPthread: 152, threadNative: 160, threadFrame: 72, cframeFrame: none,
		frameCode: 0, framePrevious: 8, frameInstruction: 56, frameOwner: 74, frameEntry: none,
		codeFile: 112, codeName: 128, codeFirstLine: 68, codeLines: 136, codeCode: 208,
		textLength: 16, textASCII: 40, textOther: 56, bytesData: 32,
	}
	if *o != want {
		t.Errorf("got  %+v\nwant %+v", *o, want)
	}
	if o, err = debugOffsets(block(0x030e00f0, 1, words314...)); err != nil || o.textASCII != 56 || o.bytesData != 48 {
		t.Errorf("without the global lock: got %+v, %v", o, err)
	}
	for name, bad := range map[string][]byte{
		"later version":    block(0x030f00f0, 0, words314...),
		"other words":      block(0x030d00f0, 0, words314...),
		"nothing behind":   block(0x030e00f0, 0),
		"too short":        block(0x030e00f0, 0)[:100],
		"no such cookie":   append([]byte("xdebug??"), block(0x030e00f0, 0, words314...)[8:]...),
		"not our language": block(0x040e00f0, 0, words314...),
	} {
		if o, err := debugOffsets(bad); err == nil {
			t.Errorf("%s: taken as %+v", name, o)
		}
	}
}

func TestVersionInName(t *testing.T) {
	for name, want := range map[string]string{
		"libpython3.9.so.1.0": "9", "python3.10": "10", "libpython3.8.so": "8", "python3.8-dbg": "8",
		"python3": "", "libpython3.so": "", "xpython3.9": "", "python3.110": "",
	} {
		got := ""
		if m := fileVersion.FindStringSubmatch(name); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// noise is memory in which everything can be read and nothing is right.
type noise []byte

func (n noise) Read(b []byte, addr uint64) error {
	for i := range b {
		b[i] = n[(addr+uint64(i))%uint64(len(n))]
	}
	return nil
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte(strings.Repeat("\x80\x01\x00\x7f", 20)), uint8(11))
	f.Add(block(0x030e00f0, 0, 1, 2, 3), uint8(14))
	f.Fuzz(func(t *testing.T, data []byte, minor uint8) {
		if len(data) == 0 {
			return
		}
		mem := noise(data)
		o, ok := layouts[int(minor)]
		if o.Minor = uint32(minor); !ok {
			b := make([]byte, blockSize)
			mem.Read(b, 0)
			found, err := debugOffsets(append([]byte(cookie), b[8:]...))
			if err != nil {
				return
			}
			o = *found
		}
		r := &Runtime{layout: o}
		layout := r.Layout()
		read, state := pyframes.Walk(mem, &layout, pyframes.Thread{Native: 1, Pthread: 1})
		if len(r.Frames(read)) > pyframes.MaxFrames || state == event.Cut && len(read) < pyframes.MaxFrames {
			t.Errorf("%d frames, state %d", len(read), state)
		}
		codes := r.Codes()
		for _, addr := range []uint64{0, 8, 1 << 40} {
			codes.Name(mem, Frame{Code: addr, Instruction: addr + 300})
		}
	})
}
