package model

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"strandline/internal/lazyregexp"
	embedded "strandline/internal/packed"
	"strandline/internal/sorts"
)

// catalog.json.gz holds, by the name of a published model, the fields of its
// config.json that affect memory, or the name of a model of the same shape. It has a line for
// each model; `gzip -9n` packs it.
//
//go:embed catalog.json.gz
var catalogFile []byte

var catalog = sync.OnceValue(func() map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(embedded.Own(catalogFile), &all); err != nil {
		panic(err) // the file is part of the program
	}
	return all
})

// Catalog are the names of the models that are built in.
func Catalog() []string { return slices.Clone(names()) }

var names = sync.OnceValue(func() []string {
	return sorts.Collect(maps.Keys(catalog()), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
})

// plain returns the short form of a model's name: without its owner, in lower case.
func plain(name string) string {
	name = strings.ToLower(name)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// variants are endings of names that do not change a model's shape.
var variants = []string{"-instruct", "-it", "-chat", "-base", "-hf", "-thinking-2507", "-instruct-2507", "-v0.1", "-v1.0", "-v0.3"}

func stem(name string) string {
	name = plain(name)
	for _, v := range variants {
		name = strings.TrimSuffix(name, v)
	}
	return strings.TrimPrefix(name, "meta-")
}

// notBuiltIn is the error for a name that the catalog does not have.
type notBuiltIn struct {
	Name string
	Like []string // names that may be meant
}

// Error states how to get what a plan needs.
func (e *notBuiltIn) Error() string {
	if Diffuses(e.Name) {
		return fmt.Sprintf("model %s: %s", shown(e.Name), Diffusion)
	}
	text := fmt.Sprintf("model %s is neither a file nor built in", shown(e.Name))
	id := "OWNER/NAME"
	if hubName.MatchString(e.Name) {
		id = e.Name
	}
	if len(e.Like) > 0 {
		text += "; did you mean " + strings.Join(e.Like, ", ") + "?"
	}
	return text + fmt.Sprintf("; give its config.json: curl -LO https://huggingface.co/%s/raw/main/config.json, then --model config.json", id)
}

var hubName = lazyregexp.New(`^[\w-][\w.-]*/[\w-][\w.-]*$`)

// Diffusion is why a model that makes images or video has no plan.
const Diffusion = "diffusion models are out of scope: their peak depends on resolution, steps and offloading; `strandline record` or `strandline watch` shows it"

// diffusers are parts of names of models that make images or video.
var diffusers = lazyregexp.New(`(?i)\b(?:flux|sdxl|sd[-_.]?(?:xl|1[-_.]?5|2[-_.]?1|3(?:[-_.]5)?)|stable[-_. ]?(?:diffusion|cascade|video)|wan[-_.]?2|wan[-_. ]?video|hunyuan[-_.]?(?:video|image|dit)|qwen[-_.]?image|z[-_.]image|ltx[-_.]?(?:video|2)|cogvideo\w*|pixart\w*|kolors|hidream\w*|auraflow|chroma\d?|lumina[-_.]image|sana|mochi|animatediff|kandinsky\w*|playground[-_.]v2)\b`)

// Diffuses reports whether a name is that of a model that makes images or video.
func Diffuses(name string) bool { return diffusers.MatchString(name) }

// Find returns a model of the catalog by its name. The owner may be left out, and
// a word like -Instruct; "(AWQ)" or "-AWQ" after a name is the format. Quant is as
// in [Parse].
func Find(name, quant string) (*Model, error) {
	asked := name
	if bare, in, ok := strings.Cut(name, " ("); ok {
		if name = bare; quant == "" {
			quant = strings.ToLower(strings.TrimSuffix(in, ")"))
		}
	}
	for _, same := range []func(string) string{strings.ToLower, plain, stem} {
		var found []string
		for _, known := range names() {
			if same(known) == same(name) {
				found = append(found, known)
			}
		}
		if len(found) > 0 {
			m, err := parseBuiltIn(found[0], quant)
			if err == nil && stem(found[0]) == stem(name) && plain(found[0]) != plain(name) {
				m.Notes = append(m.Notes, "the shape follows "+found[0])
			}
			return m, err
		}
	}
	bare, words := quantOfName(name)
	if words == "" {
		return nil, &notBuiltIn{asked, similar(name)}
	}
	if quant == "" {
		if quant = words; !KnownQuant(words) {
			return nil, fmt.Errorf("model %s is not built in, and the format %s in its name is not known; give --quant", shown(asked), shown(words))
		}
	}
	m, err := Find(bare, quant)
	var not *notBuiltIn
	if errors.As(err, &not) {
		not.Name = asked
	}
	return m, err
}

func parseBuiltIn(name, quant string) (*Model, error) {
	config := catalog()[name]
	var twin string
	if json.Unmarshal(config, &twin) == nil {
		config = catalog()[twin]
	}
	return Parse(name, config, quant)
}

// similar returns a few names that begin as a given one does.
func similar(name string) (out []string) {
	short := plain(name)
	const maxNames, minLen, maxLen = 3, 4, 64 // no name is longer
	for n := min(len(short), maxLen); n >= minLen && len(out) == 0; n-- {
		for _, known := range names() {
			if strings.HasPrefix(plain(known), short[:n]) && len(out) < maxNames {
				out = append(out, known)
			}
		}
	}
	return out
}
