package model

import (
	"fmt"
	"path"
	"strings"

	"strandline/internal/lazyregexp"
)

// quantWord is a word of a model's name that states the format of the weights,
// with what follows it.
var quantWord = lazyregexp.New(`(?i)^(.+?)[-_.]((?:quantized\.)?(?:fp8|w\d+a(?:\d+|fp8)|int8|int4|awq|gptq|nvfp4(?:a16)?|mxfp4|mxfp8|fp4|bnb|nf4|autoround|hqq|aqlm|eetq|exl[23]|gguf|i?q\d_[0-9a-z_]+|marlin|torchao|quip|dwq|[2-8]-?bits?)(?:[-_.].*)?)$`)

// bitsWord is such a word that states no more than a number of bits.
var bitsWord = lazyregexp.New(`^[2-8]-?bits?\b`)

// mlxWord is the part of a name that says that Apple's MLX wrote the files.
var mlxWord = lazyregexp.New(`(?i)(?:^|[-_./])mlx(?:[-_./]|$)`)

func mlxName(name string) bool { return mlxWord.MatchString(name) }

// quantOfName divides a model's name into that of the model and the words for
// its format, which may be empty.
func quantOfName(name string) (bare, words string) {
	m := quantWord.FindStringSubmatch(name)
	if m == nil {
		return name, ""
	}
	bare = m[1]
	for _, maker := range []string{"-unsloth", "-mlx"} {
		bare = strings.TrimSuffix(bare, maker)
	}
	return bare, ofMLX(strings.ToLower(m[2]), name)
}

// ofMLX is a word such as "4bit" with MLX before it, if the name of the model has it.
func ofMLX(word, name string) string {
	if bitsWord.MatchString(word) && mlxName(name) {
		return "mlx-" + word
	}
	return word
}

// KnownQuant reports whether a name of a format is known, as --quant takes it.
func KnownQuant(name string) bool {
	_, ok := quantNamed(name)
	return ok || oneOf(name, "bf16", "fp16", "fp32")
}

// FolderName is the model that a folder is named after: its last part, or in
// Hugging Face's cache the part that has the owner.
func FolderName(dir string) string {
	dir = strings.TrimRight(strings.ReplaceAll(dir, `\`, "/"), "/")
	for _, part := range strings.Split(dir, "/") {
		if id, ok := strings.CutPrefix(part, "models--"); ok {
			return strings.Replace(id, "--", "/", 1)
		}
	}
	return path.Base(dir)
}

// nameQuant returns the format in the name of a model whose config does not state one,
// "" if the name does not either.
func (b *builder) nameQuant() string {
	if b.q.on {
		return ""
	}
	_, words := quantOfName(plain(FolderName(b.m.Name)))
	words = ofMLX(words, b.m.Name)
	switch {
	case words == "":
		return ""
	case !KnownQuant(words):
		b.f.fail("quantization_config", "is missing, and the name says %s; give --quant", shown(words))
		return ""
	}
	b.unsure(fmt.Sprintf("the name says %s and the config has no quantization_config, so the unquantized parts are unknown; give hf_quant_config.json or --quant", shown(words)))
	return words
}
