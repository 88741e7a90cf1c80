package units_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"strandline/units"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
	tib = int64(1) << 40
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 512: "512 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB",
		41 * mib: "41 MiB", 41*mib + 1: "41 MiB", 1023*mib + 1: "1023 MiB",
		mib - 1: "1 MiB", gib - 1: "1 GiB", 999 * kib: "999 KiB", 1000 * kib: "1000 KiB",
		84_719_239_987: "78.9 GiB", 10*gib - 1: "10 GiB", 9*gib + gib/4: "9.25 GiB", 80 * gib: "80 GiB",
		2 * tib: "2 TiB", 5000 * tib: "5000 TiB", 50_000 * tib: "50,000 TiB",
		-1: "-1 B", -84_719_239_987: "-78.9 GiB",
		math.MaxInt64: "8,388,608 TiB", math.MinInt64: "-8,388,608 TiB",
	} {
		if got := units.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// The page writes numbers by the same rules, and its tests read the same file.
func TestNumbersOfThePage(t *testing.T) {
	type number struct {
		Of    int64
		Whole float64
		Reads string
	}
	var cases struct{ Bytes, Counts, Shares, Microseconds []number }
	text, err := os.ReadFile("testdata/numbers.json")
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil {
		t.Fatal(err)
	}
	check := func(list []number, write func(number) string) {
		t.Helper()
		if len(list) == 0 {
			t.Error("there are no cases")
		}
		for _, c := range list {
			if got := write(c); got != c.Reads {
				t.Errorf("%d reads %q, want %q", c.Of, got, c.Reads)
			}
		}
	}
	check(cases.Bytes, func(c number) string { return units.Bytes(c.Of) })
	check(cases.Counts, func(c number) string { return units.Count(c.Of) })
	check(cases.Shares, func(c number) string { return units.Percent(float64(c.Of) / c.Whole) })
	check(cases.Microseconds, func(c number) string { return units.Duration(time.Duration(c.Of) * time.Microsecond) })
}

func TestSigned(t *testing.T) {
	for got, want := range map[string]string{
		units.SignedBytes(41 * mib):   "+41 MiB",
		units.SignedBytes(0):          "0 B",
		units.SignedBytes(-41 * mib):  "-41 MiB",
		units.SignedCount(1_216_335):  "+1,216,335",
		units.SignedCount(0):          "0",
		units.SignedCount(-1_216_335): "-1,216,335",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTyped(t *testing.T) {
	for n, want := range map[int64]string{80 * gib: "80GiB", gib + gib/2: "1536MiB", gib + 1: "1073741825", 1000: "1000"} {
		if got := units.Typed(n); got != want {
			t.Errorf("Typed(%d) = %q, want %q", n, got, want)
		}
		if back, err := units.ParseBytes(want); back != n || err != nil {
			t.Errorf("%q is read as %d, %v", want, back, err)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12_345: "12,345", 1_216_335: "1,216,335",
		-999: "-999", -1000: "-1,000", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := units.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	const s, m, h, d = time.Second, time.Minute, time.Hour, 24 * time.Hour
	for in, want := range map[time.Duration]string{
		0: "0 ns", 800: "800 ns", 1500: "1.5 µs", 350 * time.Millisecond: "350 ms", 9960 * time.Microsecond: "10 ms",
		999_600 * time.Microsecond: "1 s", 1234 * time.Millisecond: "1.2 s", 42 * s: "42 s", 59_600 * time.Millisecond: "1 min",
		m: "1 min", 200 * s: "3 min 20 s", h - s: "59 min 59 s", h - 1: "1 h", h: "1 h", 2*h + 5*m: "2 h 5 min",
		2*h + 5*m + 31*s: "2 h 6 min", d - m: "23 h 59 min", d - s: "1 d", d: "1 d", 4*d + h: "4 d 1 h", 4*d - 1: "4 d",
		-200 * s: "-3 min 20 s", math.MaxInt64: "106,752 d", math.MinInt64: "-106,752 d",
	} {
		if got := units.Duration(in); got != want {
			t.Errorf("Duration(%d) = %q, want %q", int64(in), got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0%", 0.0004: "<0.1%", 0.001: "0.1%", 0.042: "4.2%", 0.41: "41%", 0.996: "99.6%", 0.99961: ">99.9%",
		1: "100%", 2.5: "250%", -0.042: "-4.2%", math.Inf(1): "?", math.Inf(-1): "?",
	} {
		if got := units.Percent(share); got != want {
			t.Errorf("Percent(%v) = %q, want %q", share, got, want)
		}
	}
	if got := units.Percent(math.NaN()); got != "?" {
		t.Errorf("Percent(NaN) = %q", got)
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1048576": mib, "1,048,576": mib, "1,048,576 bytes": mib, " 80GiB ": 80 * gib, "80 GiB": 80 * gib,
		"80g": 80 * gib, "80G": 80 * gib, "80Gi": 80 * gib, "80gib": 80 * gib, "1.5TiB": tib + tib/2, "1.5 t": tib + tib/2,
		"512MB": 512_000_000, "512mb": 512_000_000, "3 KB": 3000, "2GB": 2e9, "1TB": 1e12, "7b": 7, "1 byte": 1,
		"0.3KiB": 307, "0.5B": 1, "00080k": 80 * kib, "4194304TiB": 1 << 62,
	} {
		if got, err := units.ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseBytesRejects(t *testing.T) {
	for text, part := range map[string]string{
		"": "is empty", "  ": "is empty", "-1": "below zero", "-80GiB": "below zero", "GiB": "is not a number",
		"80 gigs": "gigs is not a unit", "80XB": "XB is not a unit", "1.5": "has no unit; write, for example, 1.5GiB",
		"1,5GiB": "is not a number", "1e9": "is not a number", "0x10": "is not a number", "1 2 GiB": "is not a number",
		"4194305TiB": "is too large", "9223372036854775807": "is too large", "99999999999999999999999": "is too large",
		"٣GiB": "is not a number", strings.Repeat("9", 1000): "is too long", "NaN": "is not a number", "1.GiB": "is not a number",
	} {
		got, err := units.ParseBytes(text)
		if err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		} else if !strings.Contains(err.Error(), part) {
			t.Errorf("ParseBytes(%q): %v; want %q in it", text, err, part)
		}
	}
}

// FuzzParseBytes checks that what is read prints as something that reads as
// the same: exactly from a count, within half a digit of the third from a size.
func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"80GiB", "80 GiB", "80g", "1.5TiB", "512MB", "1,048,576", "0", "4194304TiB", "0.3KiB", "1.5", "-1", "x", "9e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := units.ParseBytes(text)
		if err != nil {
			if n != 0 {
				t.Errorf("ParseBytes(%q) = %d with an error", text, n)
			}
			return
		}
		if n < 0 || n > 1<<62 {
			t.Fatalf("ParseBytes(%q) = %d is out of range", text, n)
		}
		if again, err := units.ParseBytes(units.Count(n)); err != nil || again != n {
			t.Errorf("ParseBytes(Count(%d)) = %d, %v", n, again, err)
		}
		again, err := units.ParseBytes(units.Bytes(n))
		if err != nil || math.Abs(float64(again-n)) > 0.0051*float64(n) {
			t.Errorf("ParseBytes(Bytes(%d)) = %d, %v", n, again, err)
		}
	})
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0 ns", 0.35: "350 ms", 7500: "2 h 5 min", math.Inf(1): units.Duration(1e9 * time.Second)} {
		if got := units.Seconds(s); got != want {
			t.Errorf("%v seconds are %q, want %q", s, got, want)
		}
	}
}
