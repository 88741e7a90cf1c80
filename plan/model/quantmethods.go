package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// quantMethods read a quantization_config, by its quant_method.
var quantMethods = map[string]func(q *quant, f fields){
	"fp8": (*quant).readFP8, "fbgemm_fp8": func(q *quant, _ fields) { q.base = channel8("fp8") },
	"gptq": (*quant).readGPTQ, "gptqmodel": (*quant).readGPTQ, "gptq_marlin": (*quant).readGPTQ,
	"awq": (*quant).readAWQ, "awq_marlin": (*quant).readAWQ,
	"auto-round": (*quant).readAutoRound, "intel/auto-round": (*quant).readAutoRound,
	"bitsandbytes": func(q *quant, f fields) {
		q.base = nf4(f.flag(false, "bnb_4bit_use_double_quant"))
		if f.flag(false, "load_in_8bit") {
			q.base = channel8("int8")
		}
	},
	"mxfp4":              func(q *quant, _ fields) { q.base, q.only = mxfp4(), []Role{Expert} },
	"compressed-tensors": (*quant).readGroups,
	"modelopt":           (*quant).readModelOpt, "modelopt_fp4": (*quant).readModelOpt, "modelopt_mixed": (*quant).readModelOpt,
	"quark":   (*quant).readQuark,
	"hqq":     (*quant).readHQQ,
	"torchao": (*quant).readTorchAO,
	"mlx":     (*quant).readMLX,
	"bitnet":  func(q *quant, _ fields) { q.base = Format{Name: "bitnet", Bits: 2, perTensor: 2, parts: 2} },
	"eetq":    func(q *quant, _ fields) { q.base = Format{Name: "int8", Bits: 8, groupOut: 1, scaleBytes: 2, parts: 2} },
	"aqlm":    (*quant).readAQLM,
}

// readQuant reads a quantization_config.
func readQuant(f fields) (q quant) {
	if algo, stated := f.of["quant_algo"]; stated && algo == nil && !f.has("config_groups") { // of keys and values alone
		q.cache = cacheFormat(f)
		return q
	}
	method := f.text("quant_method")
	switch {
	case method != "":
	case f.has("quant_algo"):
		method = "modelopt"
	case f.has("load_in_4bit"), f.has("load_in_8bit"):
		method = "bitsandbytes"
	case f.has("w_bit"):
		method = "awq"
	case f.has("bits") && (f.has("desc_act") || f.has("sym")):
		method = "gptq"
	case f.has("bits") && f.has("group_size"):
		method = "mlx"
	case len(f.of) == 0:
		return q
	}
	q.on = true
	for _, name := range []string{"modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules", "exclude", "skip_modules"} {
		if f.has(name) {
			q.ignored.add(f, name, f.texts(name))
		}
	}
	if read := quantMethods[method]; read != nil {
		read(&q, f)
	} else if !q.readUnknown(f, method) {
		f.fail("quant_method", "%s is not known; these are: %s", shown(method), strings.Join(slices.Sorted(maps.Keys(quantMethods)), ", "))
	}
	if sparse := f.object("sparsity_config").text("format"); sparse != "" && sparse != "dense" {
		q.assumed = "sparsity_config states " + shown(sparse) + "; the weights are counted as if they were dense"
	}
	q.name, q.cache = q.base.Name, cacheFormat(f)
	return q
}

// cacheFormat is the format of keys and values that a checkpoint states, "" if it states
// none that is known: modelopt in kv_cache_quant_algo, compressed-tensors in
// kv_cache_scheme.
func cacheFormat(f fields) string {
	scheme := f.object("kv_cache_scheme")
	switch algo := strings.ToLower(f.text("kv_cache_quant_algo")); {
	case algo == "fp8", algo == "nvfp4":
		return algo
	case scheme.text("type") == "float" && scheme.whole(0, 1, 64, "num_bits") == 8:
		return "fp8"
	}
	return ""
}

// override gives some modules another format; one without bits is not quantized.
func (q *quant) override(f fields, name string, form Format, module string) {
	one := group{format: form}
	one.targets.add(f, name, []string{module})
	q.overrides = append(q.overrides, one)
}

// bitsAndGroup are the width of a number and how many share a scale, 0 for a whole row.
func bitsAndGroup(f fields, bits, group int64) (float64, int64) {
	bits = f.whole(bits, 1, 16, "bits", "w_bit", "nbits")
	return float64(bits), max(f.whole(group, -1, 1<<20, "group_size", "q_group_size"), 0)
}

func (q *quant) readFP8(f fields) {
	q.base = tensorFP8()
	if block := f.integers("weight_block_size", 1, 1<<16); len(block) == 2 {
		q.base = blockFP8(block[0], block[1])
	} else if len(block) > 0 {
		f.fail("weight_block_size", "%d numbers do not make a block", len(block))
	} else if f.text("activation_scheme") == "static" {
		q.base.perTensor, q.base.parts = 8, 3
	}
}

// readGPTQ reads GPTQModel's and AutoGPTQ's form. "dynamic" leaves out modules that
// match after "-:", and changes the bits of others.
func (q *quant) readGPTQ(f fields) {
	bits, size := bitsAndGroup(f, 4, 128)
	q.base = gptq(bits, size, true)
	q.head = f.flag(false, "lm_head")
	_, autoGPTQ := f.of["model_file_base_name"] // which copies each tensor before it writes
	q.untied = autoGPTQ || f.text("quant_method") == ""
	for _, name := range slices.Sorted(maps.Keys(f.object("dynamic").of)) {
		var form Format
		if !strings.HasPrefix(name, "-:") {
			b, g := bitsAndGroup(f.object("dynamic").object(name), int64(bits), size)
			form = gptq(b, g, true)
		}
		q.override(f, "dynamic", form, "re:"+strings.TrimPrefix(strings.TrimPrefix(name, "-:"), "+:"))
	}
}

// readUnknown takes of a method that is not known the bits of a weight, and reports
// whether they are stated.
func (q *quant) readUnknown(f fields, method string) bool {
	for _, name := range []string{"bits", "num_bits", "w_bit", "nbits", "weight_bits"} {
		bits := 0.0
		if n, ok := f.of[name].(json.Number); ok {
			bits, _ = n.Float64()
		}
		if bits < 1 || bits > 8 {
			continue
		}
		q.base = affine(method, bits, max(f.whole(64, -1, 1<<20, "group_size"), 0))
		q.head, q.embedding = f.has("head_bits"), f.flag(false, "quantize_embeddings")
		q.unsure = fmt.Sprintf("quant_method %s is not known here; its weights are counted as %g bits each, with a scale for each group", shown(method), bits)
		return true
	}
	return false
}

// readAQLM reads additive quantization: codes of so many bits for a group of weights, a
// scale for each row, and the codebooks of each matrix.
func (q *quant) readAQLM(f fields) {
	in, out := f.whole(8, 1, 1<<10, "in_group_size"), f.whole(1, 1, 1<<10, "out_group_size")
	books, bits := f.whole(1, 1, 64, "num_codebooks"), f.whole(16, 1, 16, "nbits_per_codebook")
	const half = 2
	q.base = Format{Name: "aqlm", Bits: float64(books*bits) / float64(in*out), groupOut: 1, scaleBytes: half, perTensor: half * books << bits * in * out, parts: 3}
	if f.has("linear_weights_not_to_quantize") {
		q.ignored.add(f, "linear_weights_not_to_quantize", f.texts("linear_weights_not_to_quantize"))
	}
}

func (q *quant) readAWQ(f fields) { q.base = awq(bitsAndGroup(f, 4, 128)) }

// readAutoRound reads Intel's form: that of GPTQ without an index, or of AWQ, which is as
// large, and modules with other bits in extra_config.
func (q *quant) readAutoRound(f fields) {
	form := func(f fields, bits, size int64) Format {
		b, g := bitsAndGroup(f, bits, size)
		switch kind := f.text("data_type"); {
		case b >= 16:
			return Format{}
		case strings.HasPrefix(kind, "mx") && b == 4:
			return mxfp4()
		case strings.HasPrefix(kind, "mx"):
			return mxfp8()
		case strings.HasPrefix(kind, "nv"):
			return nvfp4()
		case strings.HasPrefix(kind, "fp8"):
			return channel8("fp8")
		}
		return gptq(b, g, false)
	}
	q.base = form(f, 4, 128)
	extra := f.object("extra_config")
	bits, size := bitsAndGroup(f, 4, 128)
	for _, name := range slices.Sorted(maps.Keys(extra.of)) {
		module := name
		if strings.ContainsAny(name, `\^$()[]*`) {
			module = "re:" + name
		}
		q.override(f, "extra_config", form(extra.object(name), int64(bits), size), module)
	}
}

func (q *quant) readHQQ(f fields) {
	bits, size := bitsAndGroup(f.object("quant_config").object("weight_quant_params"), 4, 64)
	q.base = affine("hqq", bits, size)
}

// readTorchAO reads torchao's types: a name, or one with a group size.
func (q *quant) readTorchAO(f fields) {
	name, size := "", int64(128)
	if text, ok := f.of["quant_type"].(string); ok {
		name = text
	} else {
		kind := f.object("quant_type").object("default")
		name, size = kind.text("_type"), kind.object("_data").whole(size, 1, 1<<20, "group_size")
	}
	switch name = strings.ToLower(name); {
	case strings.Contains(name, "int4"):
		q.base = affine("torchao", 4, size)
	case strings.Contains(name, "int8"):
		q.base = channel8("int8")
	case strings.Contains(name, "float8"):
		q.base = channel8("fp8")
	default:
		f.fail("quant_type", "%s is not known", shown(f.of["quant_type"]))
	}
}

// readMLX reads the form of Apple's MLX, which quantizes embedding and lm_head, too.
// Modules that differ are listed beside the common bits, by name.
func (q *quant) readMLX(f fields) {
	bits, size := bitsAndGroup(f, 4, 64)
	q.base, q.head, q.embedding, q.mlx = affine("mlx", bits, size), true, true, true
	switch f.text("mode") {
	case "mxfp4":
		q.base = mxfp4()
	case "mxfp8":
		q.base = mxfp8()
	case "nvfp4":
		q.base = nvfp4()
	}
	for _, name := range slices.Sorted(maps.Keys(f.of)) {
		switch f.of[name].(type) {
		case bool:
			if f.of[name] == false {
				q.override(f, name, Format{}, name)
			}
		case map[string]any:
			b, g := bitsAndGroup(f.object(name), int64(bits), size)
			q.override(f, name, affine("mlx", b, g), name)
		}
	}
}

// readQuark reads AMD's form: a weight's type for all layers, and others for some.
func (q *quant) readQuark(f fields) {
	q.base = quarkForm(f.object("global_quant_config"))
	layers := f.object("layer_quant_config")
	for _, name := range slices.Sorted(maps.Keys(layers.of)) {
		own := quarkForm(layers.object(name))
		q.override(f, "layer_quant_config", own, name)
		if q.base.Bits == 0 { // nothing else is quantized
			q.base, q.only = own, []Role{}
		}
	}
}

func quarkForm(f fields) Format {
	w := fields{nil, f.path + "weight.", f.err}
	if list, ok := f.of["weight"].([]any); ok && len(list) > 0 { // stages, of which the last is stored
		w.of, _ = list[len(list)-1].(map[string]any)
	} else {
		w = f.object("weight")
	}
	kind, scheme := w.text("dtype"), w.text("qscheme")
	switch size := max(w.whole(32, -1, 1<<20, "group_size"), 0); {
	case len(w.of) == 0:
		return Format{}
	case strings.HasPrefix(kind, "fp8") && scheme == "per_tensor":
		return tensorFP8()
	case strings.HasPrefix(kind, "fp8"):
		return channel8("fp8")
	case strings.HasPrefix(kind, "fp4"), strings.HasPrefix(kind, "mx_fp4"):
		return mxfp4()
	case strings.HasPrefix(kind, "fp6"), strings.HasPrefix(kind, "mx_fp6"):
		return Format{Name: "mxfp6", Bits: 6, groupOut: 1, groupIn: 32, scaleBytes: 1, parts: 2}
	case kind == "int8":
		return channel8("int8")
	case oneOf(kind, "int4", "uint4") && scheme == "per_channel":
		return Format{Name: "int4", Bits: 4, groupOut: 1, scaleBytes: 4, parts: 2}
	case oneOf(kind, "int4", "uint4"):
		return awq(4, size)
	}
	w.fail("dtype", "%s is not known", shown(kind))
	return Format{}
}

// readGroups reads compressed-tensors: formats by the modules they are for.
func (q *quant) readGroups(f fields) {
	all := f.object("config_groups")
	outer := f.text("format")
	for _, name := range slices.Sorted(maps.Keys(all.of)) {
		g := all.object(name)
		w := g.object("weights")
		if len(w.of) == 0 {
			continue
		}
		form, ok := compressedForm(w, cmp.Or(g.text("format"), outer))
		if !ok {
			continue
		}
		one := group{format: form}
		one.targets.add(g, "targets", g.texts("targets"))
		q.groups = append(q.groups, one)
	}
	if len(q.groups) > 0 {
		q.base = q.groups[0].format
	}
}

// compressedForm is the form of weights in compressed-tensors. Source: its compressors:
// packed weights have their shape as two int64, packed zero points where they are not
// symmetric, and an index where groups are ordered by activation.
func compressedForm(w fields, form string) (fm Format, ok bool) {
	bits := w.whole(8, 1, 16, "num_bits")
	size := max(w.whole(0, -1, 1<<20, "group_size"), 0)
	kind := w.text("type")
	float := kind == "float"
	switch strategy := w.text("strategy"); {
	case strings.HasPrefix(form, "nvfp4") || float && bits == 4 && size == 16:
		return nvfp4(), true
	case strings.HasPrefix(form, "mxfp4") || float && bits == 4:
		return mxfp4(), true
	case strings.HasPrefix(form, "mxfp8") || float && bits == 8 && size == 32:
		return mxfp8(), true
	case bits == 16:
		return fm, false
	case strategy == "block":
		b := w.integers("block_structure", 1, 1<<16)
		if len(b) != 2 {
			b = []int64{128, 128}
		}
		return blockFP8(b[0], b[1]), true
	case strategy == "tensor" && float:
		return tensorFP8(), true
	case strategy == "tensor":
		return Format{Name: fmt.Sprintf("%s%d", kind, bits), Bits: float64(bits), perTensor: 4, parts: 2}, true
	case form == "pack-quantized", strategy != "channel" && !float:
		fm = packed(float64(bits), size)
	default: // as wide as the number of bits says, with scales in 16 bits
		fm = channel8(fmt.Sprintf("%s%d", kind, bits))
		fm.Bits, fm.scaleBytes, fm.groupIn = float64(bits), 2, size
	}
	if !w.flag(true, "symmetric") { // zero points, packed as the weights are
		fm.zeroBits = float64(bits)
		fm.parts++
	}
	if order, stated := w.of["actorder"]; stated && order != nil && order != "static" && order != "weight" && order != false {
		fm.perIn = 4 // which group a column belongs to
		fm.parts++
	}
	return fm, true
}

func modelOptFormat(algo string) (Format, bool) {
	switch {
	case strings.Contains(algo, "NVFP4"):
		fm := nvfp4()
		if strings.Contains(algo, "AWQ") { // with a scale of each input in 16 bits
			fm.perIn, fm.parts = 2, fm.parts+1
		}
		return fm, true
	case strings.Contains(algo, "MXFP4"):
		return mxfp4(), true
	case strings.Contains(algo, "MXFP8"):
		return mxfp8(), true
	case strings.Contains(algo, "FP8_PB") || strings.Contains(algo, "BLOCK"):
		return blockFP8(128, 128), true
	case strings.HasPrefix(algo, "FP8_PER_CHANNEL"):
		return channel8("fp8"), true
	case strings.HasPrefix(algo, "FP8"):
		fm := tensorFP8()
		fm.perTensor, fm.parts = 8, 3
		return fm, true
	case strings.Contains(algo, "W4A"): // symmetric, with a scale of each input
		return Format{Name: "awq-int4", Bits: 4, groupOut: 1, groupIn: 128, scaleBytes: 2, perIn: 2, parts: 3}, true
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
		algo, q.assumed = "NVFP4", "quantization_config does not state quant_algo; NVFP4 is assumed"
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
		q.layers[withoutWrapper(name)] = fm
		if counts[fm.Name]++; q.base.Name == "" || counts[fm.Name] > counts[q.base.Name] {
			q.base = fm
		}
	}
}
