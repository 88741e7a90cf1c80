package secret

import (
	"path"
	"slices"
	"strings"
)

// arguments are those of one command, looked at one after another.
type arguments struct {
	shell  bool    // they are words of a shell, where $NAME is a variable
	depth  int     // in how many texts of shells the command stands
	rules  []place // of the program that runs
	kind   kind    // of the flag before, whose value comes next
	many   bool    // and more values may follow
	config bool    // the name of a setting and its value can follow
	script bool    // the argument before is -c: a program's text follows
}

// A place is where in a program's arguments the next one stands.
type place struct {
	*program
	subcommand string // what of it is to come
	words      int    // how many arguments without a dash followed it
}

// holds reports whether the rule of the program holds here.
func (p *place) holds() bool { return p.subcommand == "" }

// next returns the parts of one argument that are secrets.
func (a *arguments) next(arg string) []span {
	if a.kind != none {
		if !looksLikeFlag(arg) {
			of := a.kind
			if !a.many {
				a.kind = none
			}
			switch {
			case a.refers(arg):
				return a.text(arg, 0)
			case plain(of, arg[:a.last(arg)]):
				return nil
			}
			return []span{{0, a.last(arg)}}
		}
		a.kind, a.many = none, false
	}
	if a.script {
		a.script = false
		a.see(arg)
		return a.text(arg, 0)
	}
	if len(arg) > 1 && arg[0] == '-' {
		a.script = arg[1] != '-' && arg[len(arg)-1] == 'c' && len(arg) <= 4
		return a.flag(arg)
	}
	if a.config {
		if k := kindOf(arg); k != none && isName(arg) {
			a.kind, a.config = k, false
			return nil
		}
	}
	if a.see(arg) {
		return []span{{0, a.last(arg)}}
	}
	if name, value, ok := strings.Cut(arg[:a.last(arg)], "="); ok && isName(name) && !strings.HasPrefix(value, "=") {
		k := kindOf(name)
		if slices.ContainsFunc(a.rules, func(p place) bool { return p.holds() && p.pairs }) {
			k = password
		}
		if k != none && !plain(k, value) && !a.refers(value) { // a variable: the value is all that follows
			return []span{{len(name) + 1, a.last(arg)}}
		}
		return a.text(arg, len(name)+1)
	}
	return a.text(arg, 0)
}

// last is where an argument ends: in what may be code or prose, not with a comma.
func (a *arguments) last(arg string) int {
	if a.shell {
		return len(strings.TrimRight(arg, ","))
	}
	return len(arg)
}

// refers reports whether a value is the name of a variable, or a command, whose value a
// shell puts there.
func (a *arguments) refers(value string) bool { return a.shell && reference(value) }

// see looks at an argument without a dash as the name of a program, or as a word of the
// one that runs. It reports whether it stands where a secret does.
func (a *arguments) see(arg string) (isSecret bool) {
	switch arg {
	case "&&", "||", "|", ";", "&": // the arguments of several commands were joined
		*a = arguments{shell: a.shell, depth: a.depth}
		return false
	}
	if len(arg) > maxName {
		arg = arg[len(arg)-maxName:]
	}
	name := path.Base(arg)
	if strings.HasPrefix(name, "vllm") { // a module of it, or an image
		name = "vllm"
	} else if isChange(name) {
		name = "set-password"
	}
	if rules := programsOf[name]; rules != nil {
		a.rules = a.rules[:0:0]
		for _, p := range rules {
			a.rules = append(a.rules, place{program: p, subcommand: p.subcommand})
		}
		return false
	}
	a.config = a.config || configures[arg]
	for i := range a.rules {
		p := &a.rules[i]
		if p.holds() {
			p.words++
			isSecret = isSecret || p.from > 0 && p.words >= p.from && !plain(maybe, arg) && !a.refers(arg)
			continue
		}
		if first, rest, _ := strings.Cut(p.subcommand, " "); first == arg {
			p.subcommand = rest
		}
	}
	return isSecret
}

// flag returns the parts of an argument that begins with a dash that are secrets.
func (a *arguments) flag(arg string) []span {
	name, value, given := strings.Cut(arg[:a.last(arg)], "=")
	if isName(strings.TrimLeft(name, "-+")) && (given || !strings.Contains(name, ":")) {
		switch k := kindOf(name); {
		case k == none:
		case given && (plain(k, value) || a.refers(value)):
			return nil
		case given:
			return []span{{len(name) + 1, a.last(arg)}}
		case !isSwitch(name):
			a.kind, a.many = k, k == key && slices.ContainsFunc(a.rules, func(p place) bool { return p.many })
			return nil
		}
	}
	for i := range a.rules {
		p := &a.rules[i]
		if !p.holds() {
			continue
		}
		if p.pairs && strings.IndexByte(value, '=') > 0 { // --from-literal=NAME=VALUE
			return []span{{len(name) + 2 + strings.IndexByte(value, '='), len(arg)}}
		}
		short := arg
		for len(short) > 2 && short[1] != '-' && strings.IndexByte(p.clusters, short[1]) >= 0 {
			short = "-" + short[2:]
		}
		if given && slices.Contains(strings.Fields(p.separate), name) {
			if !plain(p.value, value) && !a.refers(value) {
				return []span{{len(name) + 1, len(arg)}}
			}
			return nil
		}
		if slices.Contains(strings.Fields(p.separate), short) {
			a.kind, a.rules = p.value, nil // what follows can be another program
			return nil
		}
		if len(short) > 2 && slices.Contains(strings.Fields(p.attached), short[:2]) && !plain(p.value, short[2:]) && !isPort(short[2:]) && !a.refers(short[2:]) {
			return []span{{len(arg) - len(short) + 2, len(arg)}}
		}
	}
	if given && isName(strings.TrimLeft(name, "-+")) {
		return a.text(arg, len(name)+1)
	}
	return a.text(arg, 0)
}

// text returns the parts of an argument that are secrets, as any text has them. From a
// place on, it can be the text of a shell.
func (a *arguments) text(arg string, from int) []span {
	if !several(arg[from:]) {
		return values(arg)
	}
	return shifted(values(arg), from, commands(arg[from:], a.depth+1))
}

// isPort reports whether a value is a port, or one of a container and its own.
func isPort(value string) bool {
	return strings.Contains(value, ":") && strings.Trim(value, "0123456789:.") == ""
}

// looksLikeFlag reports whether an argument is the next flag rather than a value that
// begins with a dash.
func looksLikeFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	name, _, _ := strings.Cut(arg[1:], "=")
	if name[:min(1, len(name))] != "-" {
		return len(name) == 1 && isLetter(name[0])
	}
	name = name[1:]
	if name == "" {
		return arg == "--"
	}
	for i := range len(name) {
		if c := name[i]; !('a' <= c && c <= 'z' || i > 0 && (c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return true
}
