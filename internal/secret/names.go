package secret

import (
	"bytes"
	"strings"
)

// A kind is what a name says of its value.
type kind int

const (
	none     kind = iota
	password      // whatever it is
	key           // of an API
	token         // unless it is a token of a text: a number, or a word such as <pad>
	file          // unless it is the path of a file
	header        // of HTTP: everything up to the end of the line
	login         // name:password
)

// last are names, or the last word of names, whose values are secrets.
var last = map[string]kind{
	"password": password, "passwords": password, "passwd": password, "passphrase": password, "passcode": password, "passkey": password,
	"secret": password, "secrets": password, "jwt": password, "bearer": password,
	"apikey": key, "apikeys": key, "accesskey": key, "secretkey": key, "authkey": key, "accountkey": key,
	"token": token, "authtoken": token, "accesstoken": token, "apitoken": token, "hftoken": token, "pass": token,
	"credential": file, "credentials": file, "creds": file, "privatekey": file,
	"authorization": header, "cookie": header,
	"auth": login, "userpwd": login,
}

// glued are ends of words that are written together, as in PGPASSWORD.
var glued = []string{"password", "passwd", "passphrase", "apikey", "authtoken", "accesstoken", "secretkey", "accesskey", "clientsecret"}

// keys are the words before "key" that make it a secret. A key of anything else is a
// column, a cache's or a sort order's.
var keys = words("api access secret auth account encryption master admin license signing shared subscription service " +
	"wandb openai anthropic azure hf huggingface comet neptune mistral cohere gemini google groq deepseek together replicate langsmith langchain " +
	"tavily serpapi pinecone ngc nvidia fireworks openrouter xai perplexity mlflow aws s3 gcp minio litellm")

// texts are the words before "token" that make it one of a text, or of a model's vocabulary.
var texts = words("bos eos pad unk sep cls mask image video audio stop start end begin special max min num per next last first prefix suffix new " +
	"draft think thinking reasoning answer response prompt assistant system tool call text time extra byte bytes single each every block sos eot eom eop bot " +
	"placeholder separator input output generated cached speech vision latent register class position control fim middle trigger rare initializer instance " +
	"concept modifier by to in add target")

// accounts are the words before "tokens", "pass" and "pwd" that make them secrets.
var accounts = words("api auth access secret bearer refresh session db database smtp mysql pg redis ftp mail email user admin proxy root login http mongo rabbitmq")

// switches are the first words of flags that have no value, or one that is no secret.
var switches = words("no disable enable without require requires has skip allow is show print hide")

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// maxName is how much of a name is looked at, from its end, in bytes.
const maxName = 64

// kindOf is what a name says of its value: a flag with or without dashes, a variable, a
// key of a configuration.
func kindOf(name string) kind {
	if !mayName(name) {
		return none
	}
	var buffer [2 * maxName]byte
	w, rest := lastWord(split(name, buffer[:0]))
	for len(w) > 0 && len(bytes.TrimRight(w, "0123456789")) == 0 { // API_KEY_1
		w, rest = lastWord(rest)
	}
	w = bytes.TrimRight(w, "0123456789")
	before, _ := lastWord(rest)
	switch string(w) {
	case "key", "keys":
		switch {
		case string(before) == "private":
			return file
		case keys[string(before)]:
			return key
		}
		return none
	case "id":
		if string(before) == "key" && bytes.HasSuffix(rest, []byte("access-key")) { // half of a pair of Amazon's
			return key
		}
		return none
	case "token":
		if texts[string(before)] {
			return none
		}
	case "pass":
		if len(before) > 0 && !accounts[string(before)] {
			return none
		}
	case "tokens", "pwd":
		if !accounts[string(before)] {
			return none
		}
		return password
	}
	if k, ok := last[string(w)]; ok {
		return k
	}
	for _, end := range glued {
		if len(w) > len(end) && string(w[len(w)-len(end):]) == end {
			return password
		}
	}
	return none
}

// mayName is a cheap condition that every name of a secret meets: it ends, but for
// digits, in a letter in which such names end.
func mayName(name string) bool {
	i := len(name)
	for i > 0 && (name[i-1] <= '9' || name[i-1] == '_') {
		i--
	}
	if i < 2 {
		return false
	}
	switch name[i-1] | 0x20 {
	case 'd', 's', 'e', 'y', 't', 'r', 'n', 'l', 'h':
		return true
	}
	return false
}

// isSwitch reports whether a flag says by its first word that no secret follows.
func isSwitch(name string) bool {
	var buffer [2 * maxName]byte
	first, _, _ := bytes.Cut(split(name, buffer[:0]), []byte("-"))
	return switches[string(first)]
}

// split writes the words of a name in small letters, with dashes between: "API_KEY",
// "api.key" and "apiKey" become "api-key".
func split(name string, out []byte) []byte {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	for i := range len(name) {
		c := name[i]
		upper := 'A' <= c && c <= 'Z'
		switch {
		case upper:
			small := i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z'
			ends := i > 0 && 'A' <= name[i-1] && name[i-1] <= 'Z' && i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' // the K of APIKey
			if small || ends && name[i+1:] != "s" {
				out = append(out, '-')
			}
			out = append(out, c|0x20)
		case isLetter(c) || '0' <= c && c <= '9':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	return bytes.TrimRight(out, "-")
}

// lastWord separates the last word of words.
func lastWord(words []byte) (word, rest []byte) {
	i := bytes.LastIndexByte(words, '-')
	return words[i+1:], words[:max(i, 0)]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func inName(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// isName reports whether a text can be the name of a flag, a variable or a setting.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; !inName(c) && c != '+' && c != '/' && c != ':' {
			return false
		}
	}
	return text != "" && !strings.Contains(text, "://")
}
