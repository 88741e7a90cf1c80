package journal

import "strings"

// MaxText is how many bytes of a text are kept that is printed: no program has longer commands,
// and no finding says as much.
const MaxText = 64 << 10

// Clip keeps the beginnings of texts.
func Clip(texts ...*string) {
	for _, t := range texts {
		if len(*t) > MaxText {
			*t = strings.ToValidUTF8((*t)[:MaxText], "") + "…"
		}
	}
}
