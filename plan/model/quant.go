package model

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// quant is what a quantization_config says: which modules are stored in which
// format.
type quant struct {
	name       string
	base       Format
	on         bool
	ignored    patterns
	groups     []group           // compressed-tensors
	layers     map[string]Format // modelopt's formats by module
	experts    *Format           // of the experts alone
	only       []Role            // where not empty, the roles that are quantised
	assumed    string            // what the config does not say
	ignoreEnds bool              // the first and the last layer are left as they are
}

// patterns is how many names of modules need more than a look-up.
func (q *quant) patterns() int {
	n := q.ignored.many()
	for i := range q.groups {
		n += q.groups[i].targets.many()
	}
	return n
}

func (p *patterns) many() int { return len(p.globs) + len(p.exprs) }

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
	const mostExprs = 512
	for _, s := range list {
		switch expr, isExpr := strings.CutPrefix(s, "re:"); {
		case isExpr:
			re, err := regexp.Compile("^(?:" + expr + ")")
			if err != nil || len(p.exprs) >= mostExprs {
				f.fail(name, "%s is no regular expression that can be used", shown(s))
				return
			}
			p.exprs = append(p.exprs, re)
		case strings.Contains(s, "*"):
			if len(p.globs) >= mostExprs {
				f.fail(name, "more than %d patterns", mostExprs)
				return
			}
			p.globs = append(p.globs, bare(s))
		default:
			p.exact[bare(s)] = true
		}
	}
}

// bare is a module's name without the models around the language model.
func bare(s string) string {
	for _, prefix := range []string{"model.", "language_model.", "model.", "backbone."} {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// match tells whether a module or one that it stands in is meant.
func (p *patterns) match(name string) bool {
	if len(p.exact)+len(p.globs)+len(p.exprs) == 0 {
		return false
	}
	short := bare(name)
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
	for _, re := range p.exprs {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// format is the format of a weight.
func (q *quant) format(module string, t *Tensor, full Format) Format {
	if !q.on || t.In <= 1 || t.Format.Bits != 0 {
		return full
	}
	if strings.HasPrefix(q.base.Name, "gguf-") && (t.Role == Embedding || t.Role == Head) {
		return q.base
	}
	switch t.Role {
	case Norm, Router, Embedding, Tower:
		return full
	case Head:
		if q.layers == nil {
			return full
		}
	}
	if len(q.only) > 0 {
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
		for s := bare(module); s != ""; {
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

// readQuant reads a quantization_config.
func readQuant(f fields) (q quant) {
	method := f.text("quant_method")
	if method == "" && f.has("quant_algo") {
		method = "modelopt"
	}
	if method == "" && len(f.of) == 0 {
		return q
	}
	q.on = true
	for _, name := range []string{"modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"} {
		if f.has(name) {
			q.ignored.add(f, name, f.texts(name))
		}
	}
	bits := float64(f.whole(4, 1, 8, "bits", "w_bit"))
	group := max(f.whole(128, -1, 1<<20, "group_size", "q_group_size"), 0)
	switch method {
	case "fp8":
		q.base = tensorFP8()
		if block := f.wholes("weight_block_size", 1, 1<<16); len(block) == 2 {
			q.base = blockFP8(block[0], block[1])
		} else if len(block) > 0 {
			f.fail("weight_block_size", "%d numbers are no block", len(block))
		} else if f.text("activation_scheme") == "static" {
			q.base.PerTensor, q.base.Parts = 8, 3
		}
	case "fbgemm_fp8":
		q.base = channel8("fp8")
	case "gptq", "gptqmodel", "auto-round":
		q.base = gptq(bits, group, method == "gptq")
	case "awq":
		q.base = awq(bits, group)
	case "bitsandbytes":
		q.base = nf4(f.flag(false, "bnb_4bit_use_double_quant"))
		if f.flag(false, "load_in_8bit") {
			q.base = channel8("int8")
		}
	case "mxfp4":
		q.base = mxfp4()
		q.only = []Role{Expert}
	case "compressed-tensors":
		q.readGroups(f)
	case "modelopt", "modelopt_fp4":
		q.readModelOpt(f)
	default:
		f.fail("quant_method", "%s is not known; fp8, fbgemm_fp8, gptq, awq, bitsandbytes, mxfp4, compressed-tensors and modelopt are", shown(method))
	}
	q.name = q.base.Name
	return q
}

func (q *quant) readGroups(f fields) {
	all := f.object("config_groups")
	outer := f.text("format")
	for _, name := range sortedKeys(all.of) {
		g := all.object(name)
		w := g.object("weights")
		if len(w.of) == 0 {
			continue
		}
		form := g.text("format")
		if form == "" {
			form = outer
		}
		bits := w.whole(8, 1, 16, "num_bits")
		size := max(w.whole(0, -1, 1<<20, "group_size"), 0)
		var fm Format
		switch strategy := w.text("strategy"); {
		case strings.HasPrefix(form, "nvfp4") || w.text("type") == "float" && bits == 4 && size == 16:
			fm = nvfp4()
		case strings.HasPrefix(form, "mxfp4") || w.text("type") == "float" && bits == 4:
			fm = mxfp4()
		case bits == 16:
			continue
		case strategy == "block":
			b := w.wholes("block_structure", 1, 1<<16)
			if len(b) != 2 {
				b = []int64{128, 128}
			}
			fm = blockFP8(b[0], b[1])
		case strategy == "channel":
			fm = channel8(fmt.Sprintf("%s%d", w.text("type"), bits))
			fm.Bits = float64(bits)
			fm.ScaleBytes = 2
		case strategy == "tensor":
			fm = tensorFP8()
		default:
			fm = packed(float64(bits), size)
			if !w.flag(true, "symmetric") { // zero points, packed as the weights are
				fm.ZeroBits = float64(bits)
				fm.Parts++
			}
			if w.has("actorder") && w.of["actorder"] != "static" && w.of["actorder"] != "weight" && w.of["actorder"] != false {
				fm.PerIn = 4 // which group a column belongs to
				fm.Parts++
			}
		}
		one := group{format: fm}
		one.targets.add(g, "targets", g.texts("targets"))
		q.groups = append(q.groups, one)
	}
	if len(q.groups) > 0 {
		q.base = q.groups[0].format
	}
}

func modelOptFormat(algo string) (Format, bool) {
	switch {
	case strings.Contains(algo, "NVFP4"):
		return nvfp4(), true
	case strings.Contains(algo, "MXFP4"):
		return mxfp4(), true
	case strings.Contains(algo, "FP8_PB") || strings.Contains(algo, "BLOCK"):
		return blockFP8(128, 128), true
	case strings.HasPrefix(algo, "FP8"):
		return tensorFP8(), true
	case strings.Contains(algo, "W4A"):
		return awq(4, 128), true
	case strings.HasPrefix(algo, "W8A8"), strings.HasPrefix(algo, "INT8"):
		return channel8("int8"), true
	}
	return Format{}, false
}

func (q *quant) readModelOpt(f fields) {
	algo := f.text("quant_algo")
	if algo == "" {
		if len(f.object("config_groups").of) > 0 {
			q.readGroups(f)
			return
		}
		algo, q.assumed = "NVFP4", "quantization_config does not say quant_algo; NVFP4 is assumed"
	}
	if algo != "MIXED_PRECISION" {
		fm, ok := modelOptFormat(algo)
		if !ok {
			f.fail("quant_algo", "%s is not known", shown(algo))
		}
		q.base = fm
		return
	}
	q.layers = map[string]Format{}
	counts := map[string]int{}
	all := f.object("quantized_layers")
	for name := range all.of {
		a := all.object(name).text("quant_algo")
		fm, ok := modelOptFormat(a)
		if !ok {
			all.fail(name, "quant_algo %s is not known", shown(a))
			return
		}
		q.layers[bare(name)] = fm
		if counts[fm.Name]++; q.base.Name == "" || counts[fm.Name] > counts[q.base.Name] {
			q.base = fm
		}
	}
}

// quantNamed is the format that a person names, as the files of that kind
// usually have it.
func quantNamed(name string) (q quant, ok bool) {
	q.on = true
	has := func(s string) bool { return strings.Contains(strings.ToLower(name), s) }
	switch {
	case has("fbgemm"):
		q.base = channel8("fp8")
		q.only = []Role{MLP, Expert}
	case has("fp8") && has("block"):
		q.base = blockFP8(128, 128)
	case has("mxfp8"):
		q.base = Format{Name: "mxfp8", Bits: 8, GroupOut: 1, GroupIn: 32, ScaleBytes: 1, Parts: 2}
	case has("fp8") && has("dynamic"): // compressed-tensors, a scale in 16 bits for each row
		q.base = channel8("fp8")
		q.base.ScaleBytes = 2
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
	case ggufMixtures[strings.ToLower(name)] > 0:
		q.base = Format{Name: "gguf-" + strings.ToUpper(name), Bits: ggufMixtures[strings.ToLower(name)]}
	case has("q8_0"):
		q.base = Format{Name: "gguf-Q8_0", Bits: ggufBits["Q8_0"]}
	case has("gguf"), has("q4_"):
		q.base = Format{Name: "gguf-Q4_K_M", Bits: 4.85} // a mixture of Q4_K and Q6_K
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
