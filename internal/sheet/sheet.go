// Package sheet makes text safe in tables that spreadsheets open.
package sheet

import "strconv"

// Cell returns text with a leading apostrophe where a spreadsheet would take it
// for a formula. Numbers, negative ones too, stay as they are.
func Cell(text string) string {
	if text == "" {
		return text
	}
	switch text[0] {
	case '=', '+', '@', '\t', '\r':
		return "'" + text
	case '-':
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return "'" + text
		}
	}
	return text
}
