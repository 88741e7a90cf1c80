package units

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
)

// factors are the units that people type, in lower case. A letter alone is
// binary, as is Ki; KB and the like are powers of 1000.
var factors = map[string]int64{
	"b": 1, "byte": 1, "bytes": 1,
	"k": 1 << 10, "ki": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mi": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gi": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "ti": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// size is a number, plain or in groups of three digits, and a unit.
var size = lazyregexp.New(`^(\d+|\d{1,3}(?:,\d{3})+)(\.\d+)?\s*([A-Za-z]*)$`)

// longest is the number of characters of any text that can be a size.
const longest = 64

// ParseBytes reads a size: "80GiB", "80 GiB", "80g", "1.5TiB", "512MB" (of
// 1,000,000 bytes), "1048576", and whatever [Bytes] and [Count] print of a
// number that is not negative. A fraction of a byte is rounded.
func ParseBytes(text string) (int64, error) {
	bad := func(why string) (int64, error) { return 0, fmt.Errorf("size %q: %s", Clip(text, longest), why) }
	s := strings.TrimSpace(text)
	switch {
	case s == "":
		return bad("is empty; write a number of bytes or, for example, 80GiB")
	case s[0] == '-':
		return bad("is below zero")
	case len(s) > longest:
		return bad("is too long")
	}
	whole, fraction, unit, ok := split(s)
	if !ok {
		return bad("is not a number with a unit; write a number of bytes or, for example, 80GiB")
	}
	if unit == "" && fraction != "" {
		return bad("has no unit; write, for example, " + whole + fraction + "GiB")
	}
	factor := int64(1)
	if unit != "" {
		if factor, ok = factors[strings.ToLower(unit)]; !ok {
			return bad(fmt.Sprintf("%s is not a unit; the units are B, KiB, MiB, GiB, TiB and KB, MB, GB, TB", unit))
		}
	}
	n, ok := product(whole+fraction, factor)
	if !ok {
		return bad("is too large; the most is " + Bytes(1<<62))
	}
	return n, nil
}

// split divides a size into a number without separators, its fraction with the point, and
// its unit.
func split(s string) (whole, fraction, unit string, ok bool) {
	n := digits(s)
	if n > 0 && n < len(s) && s[n] == ',' {
		parts := size.FindStringSubmatch(s)
		if parts == nil {
			return "", "", "", false
		}
		return strings.ReplaceAll(parts[1], ",", ""), parts[2], parts[3], true
	}
	end := n
	if n < len(s) && s[n] == '.' {
		if d := digits(s[n+1:]); d > 0 {
			end += 1 + d
		}
	}
	unit = strings.TrimLeft(s[end:], " \t\n\f\r")
	for i := range len(unit) {
		if c := unit[i] | 0x20; c < 'a' || c > 'z' {
			return "", "", "", false
		}
	}
	return s[:n], s[n:end], unit, n > 0
}

// digits is how many digits a text begins with.
func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// product is the nearest whole number to a decimal times factor, and whether
// it is at most 2^62: half of what an int64 holds, so that two sizes can be
// added.
func product(decimal string, factor int64) (int64, bool) {
	const maxProduct, places = 1 << 62, 18
	whole, fraction, _ := strings.Cut(decimal, ".")
	scale := int64(1)
	for range min(len(fraction), places) {
		scale *= 10
	}
	if n, err := strconv.ParseInt(whole+fraction, 10, 64); err == nil && len(fraction) <= places && n <= (maxProduct-scale)/factor {
		return (n*factor + scale/2) / scale, true
	}
	return productOf(decimal, factor)
}

// productOf is [product] for numbers of any length.
func productOf(decimal string, factor int64) (int64, bool) {
	const maxProduct = 1 << 62
	x, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return 0, false
	}
	x.Mul(x, new(big.Rat).SetInt64(factor)).Add(x, big.NewRat(1, 2))
	n := new(big.Int).Quo(x.Num(), x.Denom())
	return n.Int64(), n.Cmp(big.NewInt(maxProduct)) <= 0
}

// Clip shortens a text that an error quotes to most bytes.
func Clip(s string, maxLen int) string {
	if len(s) > maxLen {
		return strings.ToValidUTF8(s[:maxLen], "") + "…"
	}
	return s
}
