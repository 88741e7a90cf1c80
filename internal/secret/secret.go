// Package secret masks keys, tokens and passwords in command lines, addresses, names of
// variables and quoted texts. Everything that strandline reads of these passes through
// it before it is kept, so that no recording, report or log contains a secret.
//
// The rule has two halves. A name says that its value is a secret: a flag, a variable, a
// header or a key of JSON whose last words are such as "password" or "api key"
// (names.go). Or the value says it itself: it begins as the tokens of a known service
// do, or stands where an address has its password (values.go). The value is replaced by
// [Mask]; the name stays, so that a reader of flags finds the same flags.
package secret

import (
	"path"
	"strings"
)

// Mask stands in the place of a secret.
const Mask = "***"

// Args masks the arguments of one command. The slice is returned unchanged if they
// contain no secret, otherwise a copy is.
func Args(args []string) []string {
	a := arguments{in: args, out: args}
	for i := range args {
		if masked := a.next(args[i]); masked != args[i] {
			if !a.copied {
				a.out, a.copied = append([]string(nil), args...), true
			}
			a.out[i] = masked
		}
	}
	return a.out
}

// Command is the command line in a file such as /proc/PID/cmdline, whose arguments end
// in NUL, joined by spaces and masked. It keeps at most size bytes: read a [Margin]
// more, so that a secret is recognized whose end is cut.
func Command(text string, size int) string {
	args := Split(text)
	out := strings.TrimSpace(strings.ToValidUTF8(strings.Join(Args(args), " "), "?"))
	if len(out) > size {
		out = strings.ToValidUTF8(out[:size], "")
	}
	return out
}

// Line masks a command line whose arguments are joined by spaces, as recordings have it.
func Line(text string) string { return Text(strings.Join(Args(strings.Split(text, " ")), " ")) }

// Margin is how many bytes more of a command line are read than are kept.
const Margin = 512

// Split separates the arguments of a file such as /proc/PID/cmdline.
func Split(text string) []string {
	return strings.Split(strings.TrimRight(text, "\x00"), "\x00")
}

// Environ leaves out the variables whose values are secrets, for a program that needs none.
func Environ(env []string) (out []string) {
	for _, e := range env {
		if Text(e) == e {
			out = append(out, e)
		}
	}
	return out
}

// arguments are looked at one after another.
type arguments struct {
	in, out []string
	copied  bool
	program string // the name of the program or module that runs, as far as its flags matter
	login   bool   // the next argument without a dash is the secret of a program's login
	kind    kind   // of the flag before, whose value comes next
	many    bool   // and more values may follow
	set     bool   // the argument before is "set": a name and its value follow
	script  bool   // the argument before is -c: a program's text follows
}

// programs have flags of one letter, or places, for secrets.
var programs = map[string]struct {
	value    kind
	separate string // flags whose value is the next argument, between spaces
	attached string // flags whose value follows without a space
	login    string // a subcommand whose argument is a secret
}{
	"curl":         {value: login, separate: " -u --user -U --proxy-user ", attached: " -u -U "},
	"http":         {value: login, separate: " -a "},
	"sshpass":      {value: password, separate: " -p ", attached: " -p "},
	"redis-cli":    {value: password, separate: " -a "},
	"mysql":        {value: password, attached: " -p "},
	"mysqldump":    {value: password, attached: " -p "},
	"mariadb":      {value: password, attached: " -p "},
	"llama-server": {value: password, separate: " -hft "},
	"llama-cli":    {value: password, separate: " -hft "},
	"wandb":        {login: "login"},
	"vllm":         {}, // takes several keys
}

// next masks one argument.
func (a *arguments) next(arg string) string {
	if a.kind != none {
		if !looksLikeFlag(arg) {
			of := a.kind
			if !a.many {
				a.kind = none
			}
			if plain(of, arg) {
				return arg
			}
			return Mask
		}
		a.kind, a.many = none, false
	}
	if a.script {
		a.script = false
		return Text(arg)
	}
	if len(arg) > 1 && arg[0] == '-' {
		a.script = arg[1] != '-' && arg[len(arg)-1] == 'c' && len(arg) <= 4
		return a.flag(arg)
	}
	if a.login {
		a.login = false
		return Mask
	}
	if a.set && kindOf(arg) != none {
		a.kind, a.set = kindOf(arg), false
		return arg
	}
	a.set = arg == "set"
	if name := path.Base(arg); len(name) < 64 {
		if p, ok := programs[name]; ok && !strings.ContainsAny(name, " =") {
			a.program = name
		} else if strings.HasPrefix(name, "vllm.") {
			a.program = "vllm"
		} else if ok = a.program != ""; ok {
			p = programs[a.program]
			a.login = p.login != "" && p.login == arg
		}
	}
	if name, value, ok := strings.Cut(arg, "="); ok && isName(name) {
		if k := kindOf(name); k != none && !plain(k, value) { // a variable: the value is all that follows
			return name + "=" + Mask
		}
	}
	return Text(arg)
}

// flag masks an argument that begins with a dash.
func (a *arguments) flag(arg string) string {
	name, value, given := strings.Cut(arg, "=")
	if isName(strings.TrimLeft(name, "-+")) {
		switch k := kindOf(name); {
		case k == none:
		case given && plain(k, value):
			return arg
		case given:
			return name + "=" + Mask
		case !isSwitch(name):
			a.kind, a.many = k, k == key && a.program == "vllm"
			return arg
		}
	}
	p := programs[a.program]
	if strings.Contains(p.separate, " "+arg+" ") {
		a.kind, a.program = p.value, "" // what follows can be another program
		return arg
	}
	if len(arg) > 2 && strings.Contains(p.attached, " "+arg[:2]+" ") && !plain(p.value, arg[2:]) {
		return arg[:2] + Mask
	}
	return Text(arg)
}

// looksLikeFlag reports whether an argument is the next flag rather than a value that
// begins with a dash.
func looksLikeFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" {
		return arg == "--"
	}
	if arg[1] != '-' {
		return len(name) == 1 && isLetter(name[0])
	}
	for i := range len(name) {
		if c := name[i]; !('a' <= c && c <= 'z' || i > 0 && (c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return true
}
