package hsperf

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// counters is a file of some counters in the form of OpenJDK 8 to 25.
func counters(order binary.AppendByteOrder, all map[string]int64) []byte {
	out := []byte{0xca, 0xfe, 0xc0, 0xc0, 0, 2, 0, 1}
	if order.String() == "LittleEndian" {
		out[4] = 1
	}
	out = order.AppendUint64(append(out, make([]byte, 8)...), 0)
	out = order.AppendUint32(order.AppendUint32(out, 32), uint32(len(all)))
	for name, n := range all {
		at := (20 + len(name) + 8) &^ 7
		e := order.AppendUint32(nil, uint32(at+8))
		e = order.AppendUint32(order.AppendUint32(e, 20), 0)
		e = order.AppendUint32(append(e, 'J', 0, 1, 1), uint32(at))
		e = append(e, name...)
		e = append(e, make([]byte, at-len(e))...)
		out = append(out, order.AppendUint64(e, uint64(n))...)
	}
	return out
}

func TestParse(t *testing.T) {
	all := map[string]int64{
		"sun.gc.generation.0.space.0.used": 5 << 20, "sun.gc.generation.0.space.0.capacity": 8 << 20, "sun.gc.generation.0.space.0.maxCapacity": 99 << 20,
		"sun.gc.generation.1.space.0.used": 30 << 20, "sun.gc.generation.1.space.0.capacity": 40 << 20, "sun.gc.generation.1.capacity": 40 << 20,
		"sun.gc.metaspace.capacity": 7 << 20, "java.threads.live": 12,
	}
	want := Heap{Used: 35 << 20, Committed: 48 << 20}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		data := counters(order, all)
		if h, err := parse(data); err != nil || *h != want {
			t.Errorf("%s: %+v, %v", order, h, err)
		}
		for i := range data { // cut off anywhere, it is read in part or refused
			if h, err := parse(data[:i]); err == nil && h.Used > want.Used {
				t.Errorf("%d bytes: %+v", i, h)
			}
		}
	}
	if _, err := parse(counters(binary.LittleEndian, map[string]int64{"java.threads.live": 12})); err == nil {
		t.Error("a heap without spaces")
	}
}

// FuzzParse reads any file: one that a process maps under that name need not be Java's.
func FuzzParse(f *testing.F) {
	f.Add(counters(binary.LittleEndian, map[string]int64{"sun.gc.generation.0.space.0.used": 1, "x": 2}))
	f.Fuzz(func(_ *testing.T, data []byte) { parse(data) })
}

// TestOf reads the heap of a running program, which holds 40 MiB.
func TestOf(t *testing.T) {
	java := live.Tool(t, "java")
	file := filepath.Join(t.TempDir(), "Holds.java")
	const program = `public class Holds {
  public static void main(String[] args) throws Exception {
    byte[][] kept = new byte[40][];
    for (int i = 0; i < kept.length; i++) kept[i] = new byte[1 << 20];
    System.gc();
    System.out.println("ready");
    Thread.sleep(100000);
    System.out.println(kept.length);
  }
}
`
	if err := os.WriteFile(file, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	pid, _ := live.Start(t, java, "-Xmx200m", "-XX:+UseSerialGC", file)
	p := procfs.Process(pid)
	mappings, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	var h *Heap
	for range 50 { // its counters are written now and then
		if h, err = Of(p, mappings); err == nil && h.Used >= 40<<20 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || h.Used < 40<<20 || h.Committed < h.Used || h.Committed > 200<<20 {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := Of(p, nil); !errors.Is(err, ErrNone) {
		t.Errorf("without the file: %v", err)
	}
}
