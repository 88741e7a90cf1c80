package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"strandline/face/api"
	"strandline/face/api/page"
	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/plan"
)

var update = flag.Bool("update", false, "rewrite the types of the page's source")

// unions are the values of string types that the page distinguishes. A field of type
// string can have its own in a tag, as in ts:"kept|freed".
var unions = map[reflect.Type][]string{
	reflect.TypeFor[finding.Severity](): {string(finding.Problem), string(finding.Warning), string(finding.Info)},
	reflect.TypeFor[plan.Verdict]():     {string(plan.Fits), string(plan.Tight), string(plan.TooMuch), string(plan.NotRun)},
}

// unread are the fields that no source of the page reads, though other things in it have
// their names.
var unread = map[reflect.Type]string{
	reflect.TypeFor[api.Job]():                "confidence differs",
	reflect.TypeFor[api.JobFirst]():           "node confidence",
	reflect.TypeFor[api.Plan]():               "stages",
	reflect.TypeFor[api.PlannedFormat]():      "gpu_layers",
	reflect.TypeFor[api.PlannedImages]():      "count width height source",
	reflect.TypeFor[api.PlannedKV]():          "request_bytes",
	reflect.TypeFor[api.PlannedLoad]():        "prompt_tokens",
	reflect.TypeFor[api.PlannedModel]():       "notes",
	reflect.TypeFor[api.Reclaim]():            "tried",
	reflect.TypeFor[api.Solved]():             "model",
	reflect.TypeFor[finding.Finding]():        "count",
	reflect.TypeFor[finding.LevelsEvidence](): "bytes_per_token column confidence growing phase rate_percent samples unit",
	reflect.TypeFor[finding.Remedy]():         "kind effect",
	reflect.TypeFor[page.At]():                "event requested reserved count",
	reflect.TypeFor[page.Device]():            "allocations pending",
	reflect.TypeFor[page.Event]():             "alloc",
	reflect.TypeFor[page.Findings]():          "verdict",
	reflect.TypeFor[page.Hit]():               "band y0 bytes",
	reflect.TypeFor[page.ProcessFile]():       "path",
	reflect.TypeFor[page.Recording]():         "verdict",
	reflect.TypeFor[page.Segment]():           "releasable",
	reflect.TypeFor[page.Watch]():             "verdict",
	reflect.TypeFor[plan.GPU]():               "source",
	reflect.TypeFor[recording.GPUDevice]():    "beyond_bytes",
	reflect.TypeFor[recording.Growth]():       "anonymous_bytes file_bytes shared_bytes",
}

// TestTypeScript checks that the page's types of what it reads are those of this package.
func TestTypeScript(t *testing.T) {
	read := wordsOf(t, "../../ui/src")
	for in, names := range unread {
		for _, name := range strings.Fields(names) {
			if !slices.ContainsFunc(reflect.VisibleFields(in), func(f reflect.StructField) bool { return jsonName(f) == name }) {
				t.Errorf("%v has no field %s", in, name)
			}
		}
	}
	for file, documents := range map[string][]any{
		"../../ui/src/base/api.ts": {
			page.Session{}, page.Device{}, page.Bands{}, page.At{}, page.Diff{}, page.Hit{}, page.Alloc{},
			page.Event{}, page.Flame{}, page.State{}, page.Findings{}, page.Comparison{},
			page.Replay{}, page.Outcome{}, page.Fits{}, api.Reclaim{}, page.Recording{}, page.Window{}, page.Watch{}, page.Levels{}, page.Wall{}, page.Lines{}, api.Job{},
		},
		"../../ui/src/plan/api.ts": {api.PlanForm{}, api.Plan{}, api.TrainPlan{}, api.RLPlan{}, api.Solved{}},
	} {
		want := typescript(documents, read)
		if *update {
			if err := os.WriteFile(file, want, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what the structs make (%v): go test ./face/api -update writes it", file, err)
		}
	}
}

// wordsOf returns the words in the page's source, without those of the types made here.
func wordsOf(t *testing.T, folder string) map[string]bool {
	words := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ts" || d.Name() == "api.ts" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			words[word] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// typescript is the source of the types of documents and of all that is in them. Fields
// that no source of the page names are left out.
func typescript(documents []any, read map[string]bool) []byte {
	g := generator{names: map[string]reflect.Type{}, read: read}
	for _, d := range documents {
		g.name(reflect.TypeOf(d))
	}
	for len(g.waiting) > 0 {
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		g.declare(next)
	}
	return append([]byte("// Made from the structs of face/api by go test ./face/api -update; do not edit.\n"), g.out.Bytes()...)
}

// A generator writes interfaces, each once.
type generator struct {
	out     bytes.Buffer
	names   map[string]reflect.Type
	read    map[string]bool // the names of fields that are written
	waiting []reflect.Type
}

// name returns what the interface of a struct is called: as the struct, behind the name of
// its package if that is not one of this folder.
func (g *generator) name(t reflect.Type) string {
	name := t.Name()
	if from := path.Base(t.PkgPath()); from != "api" && from != "page" {
		name = strings.ToUpper(from[:1]) + from[1:] + name
	}
	switch g.names[name] {
	case nil:
		g.names[name] = t
		g.waiting = append(g.waiting, t)
	case t:
	default:
		panic(fmt.Sprintf("%v and %v have the same name", t, g.names[name]))
	}
	return name
}

func (g *generator) declare(t reflect.Type) {
	fmt.Fprintf(&g.out, "\nexport interface %s%s {\n", g.name(t), g.extended(t))
	g.fields(t)
	g.out.WriteString("}\n")
}

// extended names the structs that a struct embeds.
func (g *generator) extended(t reflect.Type) string {
	var names []string
	for i := range t.NumField() {
		if f := t.Field(i); embedded(f) {
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			names = append(names, g.name(of))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " extends " + strings.Join(names, ", ")
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func embedded(f reflect.StructField) bool { return f.Anonymous && jsonName(f) == "" }

// fields writes the fields of a struct, but for those of the structs that it embeds.
func (g *generator) fields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case embedded(f) || name == "-" || name == "" || !g.read[name] || slices.Contains(strings.Fields(unread[t]), name):
			continue
		}
		optional := slices.Contains([]string{"omitempty", "omitzero"}, options)
		text := g.typeOf(f.Type, f.Tag.Get("ts"))
		if optional {
			name, text = name+"?", strings.TrimSuffix(text, " | null")
		}
		fmt.Fprintf(&g.out, "  %s: %s;\n", name, text)
	}
}

// typeOf is the type of a field. Its tag lists the values of a string, or of the strings
// of a list, or states that a list can be null, or that a pointer is always set.
func (g *generator) typeOf(t reflect.Type, tag string) string {
	if tag == "null" {
		return g.typeOf(t, "") + " | null"
	}
	values := unions[t]
	if tag != "" && t.Kind() == reflect.String {
		values = strings.Split(tag, "|")
	}
	if values != nil {
		return `"` + strings.Join(values, `" | "`) + `"`
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Pointer:
		if tag == "set" {
			return g.typeOf(t.Elem(), "")
		}
		return g.typeOf(t.Elem(), "") + " | null"
	case reflect.Slice:
		element := g.typeOf(t.Elem(), tag)
		if strings.Contains(element, " ") {
			element = "(" + element + ")"
		}
		return element + "[]"
	case reflect.Array:
		return "[" + strings.TrimSuffix(strings.Repeat(g.typeOf(t.Elem(), "")+", ", t.Len()), ", ") + "]"
	case reflect.Map:
		return "Record<string, " + g.typeOf(t.Elem(), "") + ">"
	case reflect.Struct:
		return g.name(t)
	case reflect.Interface:
		return "Record<string, unknown>"
	}
	return "number"
}
