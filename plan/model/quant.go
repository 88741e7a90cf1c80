package model

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// quant is what a quantization_config states: which modules are stored in which
// format.
type quant struct {
	name       string
	base       Format
	on         bool
	ignored    patterns
	overrides  []group           // modules with another format, which take precedence
	groups     []group           // compressed-tensors
	layers     map[string]Format // modelopt's formats by module
	experts    *Format           // of the experts alone
	only       []Role            // where not empty, the roles that are quantized
	assumed    string            // what the config does not state
	unsure     string            // that the method is not known
	ignoreEnds bool              // the first and the last layer are left as they are
	head       bool              // lm_head is quantized, too
	embedding  bool              // and so is the embedding
	untied     bool              // the files hold lm_head, though it is the embedding
	mlx        bool              // MLX wrote the files
	cache      string            // the format of keys and values, where one is stated
}

// patterns returns how many names of modules need more than a look-up.
func (q *quant) patterns() int {
	n := q.ignored.count()
	for _, list := range [][]group{q.groups, q.overrides} {
		for i := range list {
			n += list[i].targets.count()
		}
	}
	return n
}

func (p *patterns) count() int { return len(p.globs) + len(p.exprs) }

type group struct {
	targets patterns
	format  Format
}

// patterns match names of modules: exactly, as a beginning, by "*", or as a
// regular expression after "re:".
type patterns struct {
	exact map[string]bool
	globs []string
	exprs []*regexp.Regexp
}

func (p *patterns) add(f fields, name string, list []string) {
	if p.exact == nil {
		p.exact = map[string]bool{}
	}
	const maxExprs = 512
	for _, s := range list {
		switch expr, isExpr := strings.CutPrefix(s, "re:"); {
		case isExpr:
			re, err := regexp.Compile("^(?:" + expr + ")")
			if err != nil || len(p.exprs) >= maxExprs {
				f.fail(name, "%s is not a usable regular expression", shown(s))
				return
			}
			p.exprs = append(p.exprs, re)
		case strings.Contains(s, "*"):
			if len(p.globs) >= maxExprs {
				f.fail(name, "more than %d patterns", maxExprs)
				return
			}
			p.globs = append(p.globs, withoutWrapper(s))
		default:
			p.exact[withoutWrapper(s)] = true
		}
	}
}

// withoutWrapper is a module's name without the models around the language model.
func withoutWrapper(s string) string {
	for _, prefix := range []string{"model.", "language_model.", "model.", "backbone."} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// match reports whether a module or one that contains it matches.
func (p *patterns) match(name string) bool {
	if len(p.exact)+len(p.globs)+len(p.exprs) == 0 {
		return false
	}
	short := withoutWrapper(name)
	for s := short; ; {
		if p.exact[s] {
			return true
		}
		i := strings.LastIndexByte(s, '.')
		if i < 0 {
			break
		}
		s = s[:i]
	}
	// Lists name a part by its last words, too: "gate", "mlp.gate".
	for s := short; ; {
		_, rest, more := strings.Cut(s, ".")
		if p.exact[s] {
			return true
		}
		if !more {
			break
		}
		s = rest
	}
	for _, g := range p.globs {
		if ok, _ := path.Match(g, short); ok || strings.Count(g, "*") == 1 && strings.HasSuffix(g, "*") && strings.HasPrefix(short, g[:len(g)-1]) {
			return true
		}
		if ok, _ := path.Match(g+".*", short); ok {
			return true
		}
		if ok, _ := path.Match(g+".*.*", short); ok {
			return true
		}
	}
	return slices.ContainsFunc(p.exprs, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// format is the format of a weight.
func (q *quant) format(module string, t *Tensor, full Format) Format {
	if !q.on || t.In <= 1 || t.Format.Bits != 0 {
		return full
	}
	for i := range q.overrides {
		if q.overrides[i].targets.match(module) {
			return orFull(q.overrides[i].format, full)
		}
	}
	switch t.Role {
	case Norm, Router, Tower:
		return full
	case Embedding:
		if !q.embedding {
			return full
		}
	case Head:
		if q.layers == nil && !q.head {
			return full
		}
	}
	if q.only != nil {
		found := false
		for _, r := range q.only {
			found = found || r == t.Role
		}
		if !found {
			return full
		}
	}
	if q.ignored.match(module) {
		return full
	}
	if q.layers != nil {
		for s := withoutWrapper(module); s != ""; {
			if f, ok := q.layers[s]; ok {
				return f
			}
			i := strings.LastIndexByte(s, '.')
			if i < 0 {
				break
			}
			s = s[:i]
		}
		return full
	}
	if q.experts != nil && t.Role == Expert {
		return *q.experts
	}
	for i := range q.groups {
		if q.groups[i].targets.exact["Linear"] || q.groups[i].targets.match(module) {
			return q.groups[i].format
		}
	}
	if len(q.groups) > 0 {
		return full
	}
	return q.base
}

// bitsOf is the number of bits that a word such as "mlx-4bit" states, 0 if it states none.
func bitsOf(name string) float64 {
	i := strings.IndexAny(name, "2345678")
	if i < 0 || !strings.HasPrefix(strings.TrimPrefix(name[i+1:], "-"), "bit") {
		return 0
	}
	return float64(name[i] - '0')
}

// orFull returns f, or full if f means no quantization.
func orFull(f, full Format) Format {
	if f.Bits == 0 {
		return full
	}
	return f
}

// readQuant reads a quantization_config.
// quantNamed returns the format that the user named, as files of that kind
// usually have it.
func quantNamed(name string) (q quant, ok bool) {
	q.on = true
	has := func(s string) bool { return strings.Contains(strings.ToLower(name), s) }
	switch {
	case has("mlx"):
		bits := bitsOf(name)
		q.base, q.head, q.embedding, q.mlx = affine("mlx", bits, 64), true, true, true
		if bits == 0 {
			return quant{}, false
		}
	case has("w4a8"), has("w4afp8"):
		q.base = packed(4, 128)
	case has("fbgemm"):
		q.base = channel8("fp8")
		q.only = []Role{MLP, Expert}
	case has("fp8") && has("block"):
		q.base = blockFP8(128, 128)
	case has("mxfp8"):
		q.base = mxfp8()
	case has("fp8") && has("dynamic"): // compressed-tensors, a scale in 16 bits for each row
		q.base = channel8("fp8")
		q.base.scaleBytes = 2
	case has("fp8"):
		q.base = tensorFP8()
	case has("nvfp4"):
		q.base = nvfp4()
	case has("mxfp4"):
		q.base = mxfp4()
		q.only = []Role{Expert}
	case has("nf4"), has("bnb"), has("bitsandbytes"):
		q.base = nf4(false)
	case has("gptq") && has("int8"):
		q.base = gptq(8, 128, true)
	case has("gptq"):
		q.base = gptq(4, 128, true)
	case has("awq"):
		q.base = awq(4, 128)
	case has("autoround"), has("auto-round"):
		q.base = gptq(4, 128, false)
	case has("hqq"):
		q.base = affine("hqq", 4, 64)
	case has("eetq"), has("w8a16"):
		q.base = channel8("int8")
		q.base.scaleBytes = 2
	case mixtureBits(name) > 0:
		q.base = Format{Name: "gguf-" + strings.ToUpper(name), Bits: mixtureBits(name)}
		q.head, q.embedding = true, true
	case has("gguf"):
		q.base = Format{Name: "gguf-Q4_K_M", Bits: 4.85} // a mixture of Q4_K and Q6_K
		q.head, q.embedding = true, true
	case has("int8"), has("w8a8"):
		q.base = channel8("int8")
	case has("int4"), has("w4a16"):
		q.base = packed(4, 128)
	default:
		return quant{}, false
	}
	if has("experts") {
		q.only = []Role{Expert}
	}
	q.name = q.base.Name
	return q, true
}
