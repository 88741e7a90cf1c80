package procfs

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

const mapsText = `55d0-55e0 r-xp 00002000 fe:01 131 /usr/bin/a b (deleted)
7f00-7f10 rw-p 00000000 00:00 0 
7f10-7f20 rw-s 00000000 00:05 7 /memfd:x\012y (deleted)
7fff-8fff rw-p 00000000 00:00 0                          [stack]
`

func TestParseMaps(t *testing.T) {
	got, err := parseMaps(strings.NewReader(mapsText))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{Start: 0x55d0, End: 0x55e0, Read: true, Exec: true, Offset: 0x2000, Dev: "fe:01", Inode: 131, Path: "/usr/bin/a b", Deleted: true},
		{Start: 0x7f00, End: 0x7f10, Read: true, Write: true, Dev: "00:00"},
		{Start: 0x7f10, End: 0x7f20, Read: true, Write: true, Shared: true, Dev: "00:05", Inode: 7, Path: "/memfd:x\ny", Deleted: true},
		{Start: 0x7fff, End: 0x8fff, Read: true, Write: true, Dev: "00:00", Path: "[stack]"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBrokenMapsNameTheLine(t *testing.T) {
	for _, bad := range []string{"x", "1-", "2-1 rw-p 0 0:0 0 ", "1-2 rw 0 0:0 0 ", "1-2 rw-p z 0:0 0 ", "1-2 rw-p 0 0:0 x "} {
		_, err := parseMaps(strings.NewReader("1-2 rw-p 00000000 00:00 0 \n" + bad + "\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: got the error %v", bad, err)
		}
	}
}

func TestParseSmaps(t *testing.T) {
	got, err := ParseSmaps(strings.NewReader("1000-2000 rw-p 00000000 00:00 0 [a: b]\nSize: 4 kB\nRss:                  4 kB\nPrivate_Dirty: 3 kB\nVmFlags: rd wr \n"))
	if err != nil || len(got) != 1 || got[0].RSS != 4096 || got[0].PrivateDirty != 3072 || got[0].Path != "[a: b]" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"Rss: 4 kB\n", "1-2 rw-p 0 0:0 0 \nRss: 4 MB\n", "1-2 rw-p 0 0:0 0 \nRss: x\n"} {
		if _, err := ParseSmaps(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestStarted(t *testing.T) {
	stat := "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"
	if got, err := started(stat); err != nil || got != 4242 {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := started("12 (a"); err == nil {
		t.Error("a cut stat is taken")
	}
}

// TestSelf reads this process.
func TestSelf(t *testing.T) {
	p := Process(os.Getpid())
	status, err := p.Status()
	if errors.Is(err, fs.ErrNotExist) {
		live.Missing(t, "/proc", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if sum := status.Anon + status.File + status.Shared; status.RSS == 0 || sum != status.RSS {
		t.Errorf("RSS %d is not the sum of its kinds, %d", status.RSS, sum)
	}
	maps, err := p.Maps()
	if err != nil || len(maps) == 0 {
		t.Fatalf("%d mappings, %v", len(maps), err)
	}
	usage, err := p.Smaps()
	if err != nil || len(usage) == 0 {
		t.Fatalf("%d uses, %v", len(usage), err)
	}
	if began, err := p.Started(); err != nil || began == 0 {
		t.Errorf("started at %d, %v", began, err)
	}
	pages, err := p.Pages()
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	here := maps[0]
	for _, m := range maps {
		if m.Path == "[stack]" {
			here = m
		}
	}
	if n, err := pages.Resident(here.Start, here.End); err != nil || n == 0 || n > here.Size() {
		t.Errorf("%d of %d bytes of %+v are resident, %v", n, here.Size(), here, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(mapsText)
	f.Add("1-2 rw-p 0 0:0 0 \nRss: 4 kB\nVmFlags: rd\n")
	f.Add("Name:\tx\nNSpid:\t1 2\nVmRSS: 12 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		maps, _ := parseMaps(strings.NewReader(text))
		for _, m := range maps {
			if m.End < m.Start {
				t.Errorf("%+v ends before it starts", m)
			}
		}
		ParseSmaps(strings.NewReader(text))
		parseStatus(strings.NewReader(text))
		started(text)
	})
}

// TestSumsCounters judges releases of Linux.
func TestSumsCounters(t *testing.T) {
	for release, want := range map[string]bool{
		"6.18.44-fc-v657\n": true, "6.17.0-5-generic": true, "7.0.0": true, "7.1": true,
		"6.12.57+deb13-amd64": true, "6.12.39": true, "6.12.38-amd64": false, "6.12.0-124.8.1.el10_1.x86_64": false,
		"6.15.7-200.fc42": true, "6.15.6": false, "6.13.12": false, "6.14.0-37-generic": false, "6.6.100": false,
		"5.15.0-160-generic": false, "4.4.0": false, "": false, "rolling": false,
	} {
		if got := sumsCounters(release); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
}
