package cli

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"strandline/internal/test/live"
)

// TestPicture keeps the pictures in the README what the commands print; -update redraws
// them.
func TestPicture(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	args := []string{"diagnose", "examples/image-leak"}
	stdout, _, _ := runWith(map[string]string{"CLICOLOR_FORCE": "1"}, args...)
	sameAsFile(t, "docs/diagnose.svg", drawTerminal("$ strandline "+strings.Join(args, " ")+"\n"+stdout))
	watch, moment := terminalModel(60), madeSample(61)
	moment.Processes = moment.Processes[:2]
	watch.Update(sampleMsg{moment, watch.screen.Findings, watch.screen.Rows})
	watch.Update(tea.WindowSizeMsg{Width: 110, Height: 9})
	sameAsFile(t, "docs/watch.svg", drawTerminal("$ strandline watch\n"+screenOf(watch)))
}

// The look of the picture. Characters are placed by column, since no monospace
// font is the same everywhere.
const (
	charWidth  = 8.43
	lineHeight = 19
	margin     = 18
	background = "#0d1117"
	foreground = "#d5dbe3"
)

// inks are the colors of what report prints, by the code of the terminal.
var inks = map[string]string{
	"1":    `fill="#ffffff" font-weight="bold"`,
	"2":    `fill="#8b949e"`,
	"1;31": `fill="#ff7b72" font-weight="bold"`,
	"33":   `fill="#e3b341"`,
	"32":   `fill="#56d364"`,
}

// drawTerminal is a picture, in SVG, of text with the colors of a terminal.
func drawTerminal(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var body strings.Builder
	widest := 0
	for i, line := range lines {
		y := margin + lineHeight*i + 14
		column := 0
		for _, part := range inked(line) {
			n := utf8.RuneCountInString(part.text)
			if strings.TrimSpace(part.text) != "" {
				drawPart(&body, part, column, y)
			}
			column += n
		}
		widest = max(widest, column)
	}
	width, height := int(2*margin+charWidth*float64(widest))+1, 2*margin+lineHeight*len(lines)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="what strandline prints in a terminal">
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="%s">
%s</g>
</svg>
`, width, height, width, height, background, foreground, body.String())
}

// drawPart draws text of one color; its blanks at the front are skipped, and
// its length is fixed so that columns stay aligned in every font.
func drawPart(w *strings.Builder, p inkedText, column, y int) {
	text := strings.TrimLeft(p.text, " ")
	column += len(p.text) - len(text)
	text = strings.TrimRight(text, " ")
	ink := ""
	if p.ink != "" {
		ink = " " + p.ink
	}
	fmt.Fprintf(w, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>%s</text>`+"\n",
		margin+charWidth*float64(column), y, charWidth*float64(utf8.RuneCountInString(text)), ink, html.EscapeString(text))
}

type inkedText struct{ text, ink string }

// inked cuts a line at its escape sequences.
func inked(line string) (out []inkedText) {
	ink := ""
	for i, part := range strings.Split(line, "\x1b[") {
		if i > 0 {
			code, rest, _ := strings.Cut(part, "m")
			ink, part = inks[code], rest
		}
		if part != "" {
			out = append(out, inkedText{part, ink})
		}
	}
	return out
}
