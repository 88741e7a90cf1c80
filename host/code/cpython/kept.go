package cpython

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"strandline/host/calls/event"
)

// A Kept is a container of a program: a list, dict, set or deque.
type Kept struct {
	Path  string // of names to it, as a person writes it: "CACHE", "meter.values", "seen in main()"
	Kind  string // the name of its type
	Count int64  // how many objects it holds
	// Library is true if only names in Python's or an installed package's modules lead to it.
	Library bool
	// Tensor is the address of a tensor of PyTorch that it leads to; 0 for none.
	Tensor uint64
}

// The bounds of a look at a process that runs on, and may be hostile.
const (
	maxNamed    = 50_000 // objects
	maxLookTime = time.Second
	maxDepth    = 6    // names of a path
	maxFollowed = 24   // members of a container
	maxNames    = 4096 // of a namespace
	minKept     = 64   // members of a container that is returned
	maxTable    = 1 << 22
	maxTensors  = 1000   // that are noted
	heapType    = 1 << 9 // a flag of types: made by Python code
	managedDict = 1 << 4
	inlineDict  = 1 << 2
	newestKept  = 13 // the newest minor version whose objects are known
)

// Kept returns the containers that the names of a program lead to: the globals of its modules
// and, from 3.11 on, the locals of its frames. The program runs meanwhile, so some may be
// missed. It is empty for builds without the global lock, and for versions after 3.13.
func (r *Runtime) Kept(mem Memory) []Kept {
	if r.unread() {
		return nil
	}
	k := &keeping{Runtime: r, words: words{mem: mem}, seen: map[uint64]bool{}, types: map[uint64]*pyType{}, until: time.Now().Add(maxLookTime)}
	frames := k.frames()
	for _, library := range []bool{false, true} { // names of libraries count for what no other name leads to
		k.roots(frames, library)
		for len(k.queue) > 0 && len(k.seen) < maxNamed && time.Now().Before(k.until) {
			o := k.queue[0]
			k.queue = k.queue[1:]
			k.follow(o)
		}
	}
	for i, n := range k.keepers {
		if t := slices.IndexFunc(k.tensors, func(t named) bool { return t.in == n.in && strings.HasPrefix(t.path, n.path+"[") }); t >= 0 {
			k.found[i].Tensor = k.tensors[t].at
		}
	}
	return k.found
}

// unread reports whether the objects of a version or build are not known.
func (r *Runtime) unread() bool { return r.textLength != 16 || r.Minor > newestKept }

// keeping is one look. An object that cannot be read is left out.
type keeping struct {
	*Runtime
	words
	seen  map[uint64]bool
	types map[uint64]*pyType
	queue []named
	found []Kept
	// keepers are what led to what was found, and tensors the tensors of PyTorch.
	keepers, tensors []named
	until            time.Time
}

// A named is an object that names lead to.
type named struct {
	at         uint64
	path       string
	in         string // the function of a local
	depth      int
	library    bool // the names are those of a library
	namespace  bool // its keys are names
	ofInstance bool // the names are attributes of an object at path
}

// A pyType is a type of objects.
type pyType struct {
	name       string
	flags      uint64
	size       uint64
	dictAt     int64
	cachedKeys uint64
}

func (k *keeping) word(addr uint64, offset uint32) uint64 {
	k.err = nil
	return k.at(addr, offset)
}

func (k *keeping) typeOf(o uint64) *pyType {
	at := k.word(o, 8)
	if t := k.types[at]; t != nil || at == 0 {
		return t
	}
	t := &pyType{size: k.word(at, 32), flags: k.word(at, 168), dictAt: int64(k.word(at, 288))}
	b := make([]byte, 64)
	if k.mem.Read(b, k.word(at, 24)) == nil {
		t.name, _, _ = strings.Cut(string(b), "\x00")
	}
	if i := strings.LastIndexByte(t.name, '.'); i >= 0 {
		t.name = t.name[i+1:]
	}
	if t.flags&heapType != 0 {
		t.cachedKeys = k.keysOf(at, t.name)
	}
	k.types[at] = t
	return t
}

// keysOf finds the keys that the instances of a type share, behind its name, slots and
// qualified name.
func (k *keeping) keysOf(at uint64, name string) uint64 {
	const from, to = 400, 960
	for i := uint32(from); i < to; i += 8 {
		if s := k.word(at, i); s > 1<<16 && s&7 == 0 {
			if text, err := k.text(k.mem, s); err == nil && text == name {
				return k.word(at, i+24)
			}
		}
	}
	return 0
}

func (k *keeping) push(n named) {
	if n.at&7 == 0 && n.at > 1<<16 && !k.seen[n.at] && n.depth <= maxDepth {
		k.seen[n.at] = true
		k.queue = append(k.queue, n)
	}
}

// roots are the globals and locals of frames of the program's own modules, or of libraries.
func (k *keeping) roots(frames []uint64, library bool) {
	for _, at := range frames {
		globals := k.globals(at)
		if name, file := k.module(globals); ownFile(file) != library && !strings.HasPrefix(name, recorder) {
			k.frame(at, globals, library)
		}
	}
}

// frames are those of all threads, innermost first.
func (k *keeping) frames() (out []uint64) {
	p := k.Layout()
	state := k.word(k.word(p.Runtime, p.Interpreters), p.Threads)
	for threads := 0; state != 0 && threads < 256; threads++ {
		frame := k.word(state, p.Frame)
		if p.CFrameCurrent != event.Absent {
			frame = k.word(frame, p.CFrameCurrent)
		}
		for n := 0; frame != 0 && n < 128; n++ {
			out = append(out, frame)
			frame = k.word(frame, p.Previous)
		}
		state = k.word(state, p.ThreadNext)
	}
	return out
}

// globals is the dict of the globals of a frame.
func (k *keeping) globals(at uint64) uint64 {
	offset := uint32(48)
	switch {
	case k.Minor >= 12:
		offset = 24
	case k.Minor == 11:
		offset = 8
	}
	return k.word(at, offset)
}

func (k *keeping) frame(at, globals uint64, library bool) {
	const locals = 72
	k.push(named{at: globals, namespace: true, library: library})
	if k.Minor < 11 {
		return
	}
	code := k.word(at, k.frameCode) &^ uint64(k.codeMask)
	names := k.word(code, k.codeFile-16)
	function, err := k.text(k.mem, k.word(code, k.codeName))
	if err != nil || function == "<module>" {
		return
	}
	for i, name := range k.members("tuple", names) {
		if text, err := k.text(k.mem, name); err == nil {
			o := k.word(at, locals+uint32(8*i))
			k.push(named{at: o, path: text, in: strings.ReplaceAll(function, "<locals>.", ""), depth: 1, library: library})
		}
	}
}

// members are the objects in a list or tuple, the first and the last of many.
func (k *keeping) members(kind string, at uint64) []uint64 {
	n := k.word(at, 16)
	items := at + 24
	if kind == "list" {
		items = k.word(at, 24)
	}
	if n == 0 || n > maxTable*64 {
		return nil
	}
	out := k.wordsAt(items, min(n, maxFollowed))
	if n > maxFollowed {
		out = append(out, k.wordsAt(items+8*(n-min(n-maxFollowed, maxFollowed)), min(n-maxFollowed, maxFollowed))...)
	}
	return out
}

func (k *keeping) wordsAt(at, n uint64) (out []uint64) {
	b := make([]byte, 8*n)
	if k.mem.Read(b, at) != nil {
		return nil
	}
	for i := range n {
		out = append(out, binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// follow looks at an object, and queues what it refers to.
func (k *keeping) follow(n named) {
	t := k.typeOf(n.at)
	if t == nil {
		return
	}
	switch t.name {
	case "dict", "OrderedDict", "defaultdict", "Counter":
		count := int64(k.word(n.at, 16))
		if !n.namespace {
			k.add(n, t.name, count)
		}
		k.dict(n, k.word(n.at, 32), k.word(n.at, 40))
	case "list", "tuple":
		if t.name == "list" {
			k.add(n, t.name, int64(k.word(n.at, 16)))
		}
		for _, o := range k.members(t.name, n.at) {
			k.push(named{at: o, path: n.path + "[...]", in: n.in, depth: n.depth + 1, library: n.library})
		}
	case "set":
		k.add(n, t.name, int64(k.word(n.at, 24)))
	case "deque":
		k.add(n, t.name, int64(k.word(n.at, 16)))
	case "module":
		if dict := k.word(n.at, 16); k.own(dict) {
			k.push(named{at: dict, path: n.path, depth: n.depth, namespace: true, ofInstance: true})
		}
	case "cell":
		k.push(named{at: k.word(n.at, 16), path: n.path, in: n.in, depth: n.depth, library: n.library})
	case "function":
		globals, closure := uint32(16), uint32(72)
		if k.Minor < 10 {
			globals, closure = 24, 48
		}
		for _, cell := range k.members("tuple", k.word(n.at, closure)) {
			k.push(named{at: cell, path: n.path + ".__closure__", in: n.in, depth: n.depth + 1, library: n.library})
		}
		if dict := k.word(n.at, globals); k.own(dict) {
			k.push(named{at: dict, path: "", depth: n.depth, namespace: true})
		}
	case "Tensor":
		if len(k.tensors) < maxTensors {
			k.tensors = append(k.tensors, n)
		}
	case "type", "ABCMeta", "EnumMeta", "EnumType", "str", "int", "float", "bytes", "NoneType", "bool", "builtin_function_or_method":
	default:
		k.instance(n, t)
	}
}

// add notes a container of enough members.
func (k *keeping) add(n named, kind string, count int64) {
	if count < minKept || n.path == "" {
		return
	}
	path := n.path
	if n.in != "" {
		path += " in " + n.in + "()"
	}
	k.found = append(k.found, Kept{Path: path, Kind: kind, Count: count, Library: n.library})
	k.keepers = append(k.keepers, n)
}

// recorder begins the names of the modules that strandline itself loads into a process.
const recorder = "strandline."

// own reports whether a namespace is of a module of the program's own.
func (k *keeping) own(dict uint64) bool {
	_, file := k.module(dict)
	return ownFile(file)
}

// module is the name and the file of the module of a namespace.
func (k *keeping) module(dict uint64) (name, file string) {
	k.entries(k.word(dict, 32), k.word(dict, 40), maxNames, func(key, value uint64) bool {
		switch text, _ := k.text(k.mem, key); text {
		case "__name__":
			name, _ = k.text(k.mem, value)
		case "__file__":
			file, _ = k.text(k.mem, value)
		}
		return name == "" || file == ""
	})
	return name, file
}

// ownFile reports whether a module's file is neither Python's nor an installed package's.
func ownFile(file string) bool {
	return file != "" && !strings.HasPrefix(file, "<frozen") && !strings.Contains(file, "/site-packages/") && !strings.Contains(file, "/dist-packages/") && !strings.Contains(file, "/lib/python3")
}

// instance queues the attributes of an object of a class of Python.
func (k *keeping) instance(n named, t *pyType) {
	attributes := named{path: n.path, in: n.in, depth: n.depth, library: n.library, namespace: true, ofInstance: true}
	switch {
	case t.flags&managedDict != 0 && k.Minor == 11:
		if values := k.word(n.at-32, 0); values != 0 {
			k.dict(attributes, t.cachedKeys, values)
		}
		attributes.at = k.word(n.at-24, 0)
	case t.flags&managedDict != 0 && k.Minor == 12:
		if p := k.word(n.at-24, 0); p&1 != 0 {
			k.dict(attributes, t.cachedKeys, p+1)
		} else {
			attributes.at = p
		}
	case t.flags&managedDict != 0 && k.Minor >= 13:
		if attributes.at = k.word(n.at-24, 0); attributes.at == 0 && t.flags&inlineDict != 0 {
			k.dict(attributes, t.cachedKeys, n.at+t.size)
		}
	case t.dictAt > 0 && t.dictAt < 1<<16:
		attributes.at = k.word(n.at, uint32(t.dictAt))
	}
	k.push(attributes)
}

// dict queues the values of a dict, or of an object's attributes.
func (k *keeping) dict(n named, keys, values uint64) {
	limit := maxFollowed
	if n.namespace {
		limit = maxNames
	}
	k.entries(keys, values, limit, func(key, value uint64) bool {
		child := named{at: value, path: n.path + "[...]", in: n.in, depth: n.depth + 1, library: n.library}
		if n.namespace {
			name, err := k.text(k.mem, key)
			if err != nil || strings.HasPrefix(name, "__") {
				return true
			}
			if child.path = name; n.ofInstance {
				child.path = n.path + "." + name
			}
		}
		k.push(child)
		return true
	})
}

// entries calls each with the first keys and values of a dict, until it returns false.
func (k *keeping) entries(keys, values uint64, limit int, each func(key, value uint64) bool) {
	var entries, n, width uint64
	valueAt := uint64(16)
	if k.Minor >= 11 {
		head := k.word(keys, 8)
		if head>>8&0xff > 32 {
			return
		}
		entries, n, width = keys+32+1<<(head>>8&0xff), k.word(keys, 24), 24
		if head>>16&0xff != 0 { // all keys are strings
			width, valueAt = 16, 8
		}
		if values != 0 && k.Minor >= 13 {
			values += 8
		}
	} else {
		size := k.word(keys, 8)
		index := uint64(1)
		switch {
		case size > 0xffffffff:
			return
		case size > 0xffff:
			index = 4
		case size > 0xff:
			index = 2
		}
		entries, n, width = keys+40+size*index, k.word(keys, 32), 24
	}
	if k.err != nil || keys == 0 || n > maxTable {
		return
	}
	n = min(n, uint64(limit))
	table := k.wordsAt(entries, n*width/8)
	var own []uint64
	if values != 0 {
		own = k.wordsAt(values, n)
	}
	for i := range uint64(len(table)) / (width / 8) {
		row := table[i*width/8:]
		key, value := row[(valueAt-8)/8], row[valueAt/8]
		if values != 0 {
			if i >= uint64(len(own)) {
				return
			}
			value = own[i]
		}
		if key != 0 && value != 0 && !each(key, value) {
			return
		}
	}
}
