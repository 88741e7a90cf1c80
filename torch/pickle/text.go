package pickle

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// textual handles the opcodes of protocol 0 that write their argument as text.
func (d *decoder) textual(op byte, _ []byte) error {
	b, err := d.line()
	if err != nil {
		return err
	}
	switch op {
	case opInt:
		if s := string(b); s == "00" || s == "01" {
			d.stack = append(d.stack, BoolValue(s == "01"))
			return nil
		}
		return d.decimal(b)
	case opLong:
		if n := len(b); n > 0 && b[n-1] == 'L' {
			b = b[:n-1]
		}
		return d.decimal(b)
	case opFloat:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%q is not a number", clip(b))
		}
		d.stack = append(d.stack, FloatValue(f))
	case opString:
		if n := len(b); n < 2 || b[0] != b[n-1] || b[0] != '\'' && b[0] != '"' {
			return fmt.Errorf("the text %q is not quoted", clip(b))
		}
		return d.push(String)(d.h.String(unescape(b[1:len(b)-1], true)))
	case opUnicode:
		return d.push(String)(d.h.String(unescape(b, false)))
	case opGet, opPut:
		i, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not an index into the memo", clip(b))
		}
		return d.memo(op == opPut, i)
	}
	return nil
}

func (d *decoder) decimal(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		d.stack = append(d.stack, IntValue(n))
		return nil
	}
	// Conversion from decimal takes time quadratic in the digits.
	const maxDigits = 10_000
	x, ok := new(big.Int), len(b) <= maxDigits
	if ok {
		x, ok = x.SetString(string(b), 10)
	}
	if !ok {
		return fmt.Errorf("%q is not an integer of at most %d digits", clip(b), maxDigits)
	}
	return d.integer(twosComplement(x))
}

// twosComplement is x as little-endian bytes with room for the sign.
func twosComplement(x *big.Int) []byte {
	n := x.BitLen()/8 + 1
	if x.Sign() < 0 {
		x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	b := x.FillBytes(make([]byte, n))
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}

// BigIntOf turns the bytes that [Handler.BigInt] gets into a number.
func BigIntOf(b []byte) *big.Int {
	rev := make([]byte, len(b))
	for i, c := range b {
		rev[len(b)-1-i] = c
	}
	x := new(big.Int).SetBytes(rev)
	if len(rev) > 0 && rev[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(rev))))
	}
	return x
}

// unescape undoes Python's raw-unicode-escape (\uXXXX and \UXXXXXXXX; other
// bytes are Latin-1) or, for the str of Python 2, its string-escape.
func unescape(b []byte, str bool) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' || i+1 == len(b) {
			out = appendLatin1(out, c, str)
			continue
		}
		digits := 0
		switch e := b[i+1]; {
		case e == 'u' && !str:
			digits = 4
		case e == 'U' && !str:
			digits = 8
		case e == 'x' && str:
			digits = 2
		case str:
			if k := indexByte(`\'"ntr`, e); k >= 0 {
				out = append(out, "\\'\"\n\t\r"[k])
				i++
				continue
			}
		}
		if digits > 0 && i+2+digits <= len(b) {
			if n, err := strconv.ParseUint(string(b[i+2:i+2+digits]), 16, 32); err == nil {
				if str {
					out = append(out, byte(n))
				} else {
					out = append(out, string(rune(min(n, math.MaxInt32)))...)
				}
				i += 1 + digits
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func appendLatin1(out []byte, c byte, raw bool) []byte {
	if raw || c < 0x80 {
		return append(out, c)
	}
	return append(out, string(rune(c))...)
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// clip shortens input that is quoted in an error.
func clip(b []byte) []byte {
	const maxQuoted = 40
	return b[:min(len(b), maxQuoted)]
}
