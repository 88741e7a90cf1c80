package procfs

import (
	"reflect"
	"testing"
)

const status = "Name:\tpy thon: x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nPPid:\t7\nVmLck:\t       4 kB\nVmPin:\t       8 kB\nVmRSS:\t     600 kB\nRssAnon:\t     100 kB\nRssFile:\t     200 kB\nRssShmem:\t     300 kB\nVmSwap:\t      16 kB\nThreads:\t3\n"

func TestParseVitals(t *testing.T) {
	var v Vitals
	if err := ParseVitals([]byte(status), &v); err != nil {
		t.Fatal(err)
	}
	if string(v.Name) != "py thon: x" {
		t.Errorf("the name is %q", v.Name)
	}
	v.Name = nil
	want := Vitals{State: 'S', Parent: 7, Threads: 3, Anon: 100 << 10, File: 200 << 10, Shared: 300 << 10, Locked: 4 << 10, Pinned: 8 << 10, Swapped: 16 << 10, Resident: true}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%+v", v)
	}
	if err := ParseVitals([]byte("Name:\tz\nState:\tZ (zombie)\nThreads:\t1\n"), &v); err != nil || v.Resident || v.State != 'Z' || v.Anon != 0 {
		t.Errorf("a zombie: %+v, %v", v, err)
	}
	for _, text := range []string{"", "\n\n:::\n", "not a status", "RssAnon:\t99999999999999999999999999 kB"} {
		if err := ParseVitals([]byte(text), &v); err == nil {
			t.Errorf("%q is read as %+v", text, v)
		}
	}
	if n := testing.AllocsPerRun(10, func() { ParseVitals([]byte(status), &v) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseMapped(t *testing.T) {
	page := int64(PageSize)
	if resident, mapped, ok := ParseMapped([]byte("5000 300 120 7 0 900 0\n")); !ok || resident != 300*page || mapped != 120*page {
		t.Errorf("%d, %d, %v", resident, mapped, ok)
	}
	if resident, mapped, ok := ParseMapped([]byte("0 0 0 0 0 0 0\n")); !ok || resident != 0 || mapped != 0 {
		t.Errorf("a zombie: %d, %d, %v", resident, mapped, ok)
	}
	for _, text := range []string{"", "\n", "1 2", "1 2 3 4", "1 x y ", "statm"} {
		if resident, mapped, ok := ParseMapped([]byte(text)); ok && (resident != 0 || mapped != 0) {
			t.Errorf("%q is read as %d, %d", text, resident, mapped)
		}
	}
}

func TestParseRead(t *testing.T) {
	if n, ok := ParseRead([]byte("rchar: 4711\nwchar: 12\nread_bytes: 4096\n")); !ok || n != 4711 {
		t.Errorf("%d, %v", n, ok)
	}
	for _, text := range []string{"", "wchar: 3\n", "rchar:"} {
		if n, ok := ParseRead([]byte(text)); ok {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}
