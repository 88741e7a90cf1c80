package snapshots

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/timeline"
)

func TestHoldersOf(t *testing.T) {
	five := int64(5000)
	h := &compare.Held{
		Sampled: []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9},
		Holders: []compare.Holder{
			{Path: "net[0].weight", File: "/a/train.py", Line: 3, Blocks: []uint64{9}},
			{Path: "CACHE[...]", File: "/a/train.py", Line: 7, Blocks: []uint64{1, 2, 3}},
			{Path: "self.last", Blocks: []uint64{4}},
		},
		Graphs: []compare.Holder{{Path: "meter.total", File: "/a/train.py", Line: 17, Nodes: 20007, ChainLength: 20000, Node: "AddBackward0", Grew: &five}},
	}
	blocks := map[uint64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 100: true}
	var got []string
	for _, x := range holdersOf(h, blocks) {
		got = append(got, x.Kind+": "+heldWords(&x))
	}
	want := []string{
		"python: they are kept by CACHE[...] (train.py:7)",
		"autograd: meter.total (train.py:17) ends a chain of 20,000 AddBackward0; it grew by 5,000 since the snapshot before",
		"python: they are kept by self.last",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	h.Graphs = nil
	if out := holdersOf(h, blocks); len(out) != 3 || out[1].Kind != byNative || out[1].Share != 2.0/6 {
		t.Errorf("without graphs: %+v", out)
	}
	h.Bound = "time" // the rest was not looked for to the end
	if out := holdersOf(h, blocks); len(out) != 2 || out[1].Kind != byPython {
		t.Errorf("of a search that ended early: %+v", out)
	}
	h.Graphs = []compare.Holder{{Path: "l in train()", Nodes: 93, ChainLength: 93, Node: "SumBackward0"}}
	for _, grew := range []*int64{nil, new(int64(0))} {
		if h.Graphs[0].Grew = grew; len(holdersOf(h, blocks)) != 2 {
			t.Errorf("of a search that ended early, with the graph of one step: %+v", holdersOf(h, blocks))
		}
	}
	h.Graphs[0].Nodes, h.Graphs[0].Grew = 2, &five
	if out := holdersOf(h, blocks); len(out) != 3 || out[1].Kind != byAutograd {
		t.Errorf("of a search that ended early, with a graph that may keep them: %+v", out)
	}
	for a := uint64(10); a < 40; a++ { // as many tensors as the graph of one step does not keep
		h.Sampled, blocks[a] = append(h.Sampled, a), true
	}
	for _, x := range holdersOf(h, blocks) {
		if x.Kind == byAutograd {
			t.Errorf("kept by the graph of one step: %+v", x)
		}
	}
	if out := holdersOf(h, map[uint64]bool{100: true}); out != nil {
		t.Errorf("of blocks that were not sampled: %+v", out)
	}
}

// TestHeldByAtExit believes the search before the exit, when most tensors were there.
func TestHeldByAtExit(t *testing.T) {
	exit, before := &digest.File{}, &digest.File{}
	for _, f := range []*digest.File{before, exit} {
		live := []digest.Live{}
		for a := range uint64(40) {
			live = append(live, digest.Live{Addr: a, Stack: 1})
		}
		f.Devices = []digest.Device{{Allocations: digest.Allocations{Live: live}}}
	}
	graph := compare.Holder{Path: "total in main()", Nodes: 90, ChainLength: 40, Node: "AddBackward0"}
	workspace := &compare.Held{Sampled: []uint64{39}}
	for _, c := range []struct {
		name string
		held map[*digest.File]*compare.Held
		want string
	}{
		{"both", map[*digest.File]*compare.Held{before: {Sampled: []uint64{1, 2, 39}, Graphs: []compare.Holder{graph}}, exit: workspace}, byAutograd},
		{"the exit alone", map[*digest.File]*compare.Held{exit: workspace}, byNative},
	} {
		p := &compare.Process{Files: []*digest.File{before, exit}, About: &compare.About{Held: c.held}}
		g := &growth{process: p}
		if out := g.heldBy([]*place{{stacks: []stack.ID{1}}}); len(out) != 1 || out[0].Kind != c.want {
			t.Errorf("%s: %+v, want %s", c.name, out, c.want)
		}
	}
}

// A list of results of which each ends a graph keeps what the graphs saved: the graph comes
// first, unless the list itself keeps most.
func TestListOfGraphs(t *testing.T) {
	for listed, want := range map[int]string{1: byAutograd, 4: byPython} {
		h := &compare.Held{Sampled: []uint64{1, 2, 3, 4}, Bound: "time", Graphs: []compare.Holder{{Path: "values[...]", Nodes: 90, ChainLength: 8, Node: "AddmmBackward0"}}}
		h.Holders = []compare.Holder{{Path: "values[...]", Blocks: h.Sampled[:listed]}}
		out := holdersOf(h, map[uint64]bool{1: true, 2: true, 3: true, 4: true})
		if len(out) != 2 || out[0].Kind != want || out[0].Path != out[1].Path {
			t.Errorf("%d of 4: %+v", listed, out)
		}
	}
}

// TestHolderOfSeveralLines takes the line that the tensors' stacks pass, and both if both do.
func TestHolderOfSeveralLines(t *testing.T) {
	for _, c := range []struct {
		name   string
		passes []int64 // by allocation
		want   string
	}{
		{"one", []int64{30, 30}, "they are kept by CACHE[...] (train.py:30)"},
		{"both", []int64{30, 17}, "they are kept by CACHE[...] (train.py:17 or 30)"},
		{"neither", []int64{5, 6}, "they are kept by CACHE[...] (train.py:17 or 30)"},
	} {
		book := digest.NewBook()
		of, places := &digest.File{}, []*place{{}}
		live := []digest.Live{}
		for i, line := range c.passes {
			id := book.Stacks.Intern([]stack.FrameID{book.Stacks.Frame(stack.Frame{File: "/torch/nn.py", Line: 3}, nil), book.Stacks.Frame(stack.Frame{File: "/a/train.py", Line: line}, nil)})
			live = append(live, digest.Live{Addr: uint64(i + 1), Stack: id})
			places[0].stacks = append(places[0].stacks, id)
		}
		of.Devices = []digest.Device{{Allocations: digest.Allocations{Live: live}}}
		held := &compare.Held{Sampled: []uint64{1, 2}, Holders: []compare.Holder{{Path: "CACHE[...]", File: "/a/train.py", Lines: []int64{17, 30}, Blocks: []uint64{1, 2}}}}
		g := &growth{process: &compare.Process{Files: []*digest.File{of}, About: &compare.About{Held: map[*digest.File]*compare.Held{of: held}}}, book: book}
		if out := g.heldBy(places); len(out) != 1 || heldWords(&out[0]) != c.want {
			t.Errorf("%s: %+v, want %s", c.name, out, c.want)
		}
	}
}

// TestAddHolders replaces the advice to find the holder.
func TestAddHolders(t *testing.T) {
	line := int64(17)
	for _, c := range []struct {
		held []finding.HeldBy
		want string
	}{
		{nil, "find what"},
		{[]finding.HeldBy{{Kind: byNative, Path: "no Python object", Share: 1}}, "find what"},
		{[]finding.HeldBy{{Kind: byPython, Path: "CACHE[...]", File: "/a/train.py", Line: &line, Share: 1}}, "remove tensors from CACHE[...] at /a/train.py:17"},
		{[]finding.HeldBy{{Kind: byPython, Path: "CACHE[...]", File: "/a/train.py", Lines: []int64{17, 30}, Share: 1}}, "remove tensors from CACHE[...] at /a/train.py:17 or 30"},
	} {
		f := finding.Finding{Remedies: []finding.Remedy{finding.CodeChange("find what still refers"), finding.CodeChange("x.cpu()")}}
		addHolders(&f, c.held)
		if len(f.Detail) != len(c.held) || len(f.Remedies) != 2 || !strings.HasPrefix(f.Remedies[0].Text, c.want) {
			t.Errorf("%v: %+v", c.held, f)
		}
	}
}

// TestGrowingGraphs finds a chain that grows from file to file though no memory of the
// device does.
func TestGrowingGraphs(t *testing.T) {
	for _, c := range []struct {
		lengths []int64
		want    bool
	}{
		{[]int64{10, 20, 30, 40}, true},
		{[]int64{10, 20, 30}, true},
		{[]int64{10, 15, 30}, false},
		{[]int64{10, 20}, false},
		{[]int64{10, 20, 20, 40}, false},
		{[]int64{1000, 1001, 1002, 1003}, false},
		{[]int64{1, 2, 3, 4}, false},
	} {
		p := &compare.Process{Name: "pid7", About: &compare.About{Held: map[*digest.File]*compare.Held{}, Steps: map[*digest.File]int{}}}
		for i, n := range c.lengths {
			f := &digest.File{}
			p.Files = append(p.Files, f)
			p.About.Steps[f] = 5 * i
			p.About.Held[f] = &compare.Held{Graphs: []compare.Holder{
				{Path: "loss in main()", Nodes: 7, ChainLength: 7, Node: "MulBackward0"},
				{Path: "meter.total", File: "/a/train.py", Line: 17, Nodes: n, ChainLength: n, Node: "AddBackward0"},
				{Path: "mean in main()", Nodes: 1, ChainLength: n, Node: "AddBackward0"}, // computed from meter.total
			}}
		}
		s := &subject{process: p, book: digest.NewBook()}
		out := growingGraphs(s)
		if (len(out) == 1) != c.want {
			t.Errorf("%v: %+v", c.lengths, out)
			continue
		}
		if !c.want {
			continue
		}
		if f := out[0]; f.Kind != finding.AutogradGraph || f.Severity != finding.Problem || !strings.Contains(f.Remedies[0].Text, "/a/train.py:17") {
			t.Errorf("%+v", f)
		}
		s.leaks = []finding.Finding{{Severity: finding.Problem, Evidence: &finding.LeakEvidence{HeldBy: []finding.HeldBy{{Kind: byAutograd, Path: "meter.total"}}}}}
		if out := growingGraphs(s); len(out) > 0 {
			t.Errorf("named twice: %+v", out)
		}
		s.leaks[0].Severity = finding.Warning // of its few bytes on the device
		if out := growingGraphs(s); len(out) != 1 || out[0].Severity != finding.Problem {
			t.Errorf("beside a warning: %+v", out)
		}
	}
}

// TestGrowingOnHostOfTwo names both of two lists that have one name and are filled by one line.
func TestGrowingOnHostOfTwo(t *testing.T) {
	p := &compare.Process{Name: "pid7", About: &compare.About{Held: map[*digest.File]*compare.Held{}, Host: map[*digest.File]int64{}, Steps: map[*digest.File]int{}}}
	for i := range int64(4) {
		f := &digest.File{Devices: []digest.Device{{}}}
		p.Files = append(p.Files, f)
		p.About.Steps[f] = int(9 * i)
		held := compare.Holder{File: "/a/serve.py", Line: 5, Count: 100 * (i + 1), Bytes: (i + 1) << 20}
		other := held
		held.Path, other.Path = "encoder.seen[...]", "decoder.seen[...]"
		p.About.Held[f] = &compare.Held{Host: []compare.Holder{held, other}}
	}
	if a := Files(digest.NewBook(), []*compare.Process{p}, Options{}); len(a.Findings) != 2 || a.Findings[0].Title == a.Findings[1].Title {
		t.Errorf("%+v", a.Findings)
	}
}

// TestGrowingGraphsOfOneStep does not take the graph of one forward pass for a leak.
func TestGrowingGraphsOfOneStep(t *testing.T) {
	ends := func(from string, n int) []digest.Device {
		return []digest.Device{{History: digest.History{Steps: timeline.Steps{From: from, Ends: make([]int, n)}}}}
	}
	for _, c := range []struct {
		name    string
		counted []int // steps, by file; nil where they are not counted
		devices []digest.Device
		want    finding.Severity
	}{
		{"steps ended", []int{1, 4, 9}, nil, finding.Problem},
		{"one step", []int{1, 1, 2}, nil, finding.Warning},
		{"no step is seen", nil, nil, finding.Warning},
		{"lines that repeat", nil, ends(timeline.Loops, 9), finding.Warning},
		{"passes in the history", nil, ends(timeline.Passes, 9), finding.Problem},
		{"one pass in the history", nil, ends(timeline.Passes, 1), finding.Warning},
	} {
		p := &compare.Process{Name: "pid7", About: &compare.About{Held: map[*digest.File]*compare.Held{}, Steps: map[*digest.File]int{}}}
		for i := range 3 {
			f := &digest.File{Devices: c.devices}
			p.Files = append(p.Files, f)
			p.About.Held[f] = &compare.Held{Graphs: []compare.Holder{{Path: "y", Nodes: int64(100 << i), ChainLength: int64(100 << i), Node: "AddBackward0"}}}
			if c.counted != nil {
				p.About.Steps[f] = c.counted[i]
			}
		}
		if out := growingGraphs(&subject{process: p, book: digest.NewBook()}); len(out) != 1 || out[0].Severity != c.want {
			t.Errorf("%s: %+v, want one of severity %v", c.name, out, c.want)
		}
	}
}

// TestGrowingOnHost judges a process without a device by what keeps its tensors.
func TestGrowingOnHost(t *testing.T) {
	for _, c := range []struct {
		name      string
		counts    []int64
		bound     string // of each search
		estimated bool
		graphs    bool // of each tensor, or of a chain if it is estimated
		want      finding.Kind
		path      string // "%d" is the number of the look
	}{
		{"a list", []int64{100, 200, 300, 400}, "", false, false, finding.Leak, "SEEN[...]"},
		{"a list in three looks", []int64{100, 200, 300}, "", false, false, "", "SEEN[...]"},
		{"a constant list", []int64{100, 100, 100, 100}, "", false, false, "", "SEEN[...]"},
		{"parts of a list", []int64{100, 200, 300, 400}, "time", false, false, finding.Leak, "SEEN[...]"},
		{"parts that vary", []int64{100, 120, 180, 210}, "time", false, false, "", "SEEN[...]"},
		{"losses", []int64{100, 200, 300}, "", false, true, finding.AutogradGraph, "SEEN[...]"},
		{"losses from the second step on", []int64{3, 4, 7, 15, 31, 63}, "", false, true, finding.AutogradGraph, "SEEN[...]"},
		{"a chain that is cut", []int64{5000, 9000, 12000}, "time", true, true, finding.AutogradGraph, "SEEN[...]"},
		{"a list by another path each time", []int64{100, 200, 300, 400}, "", false, false, finding.Leak, "trainer.loop%d.SEEN[...] in Loop.run()"},
		{"losses by another path each time", []int64{100, 200, 300}, "", false, true, finding.AutogradGraph, "trainer.loop%d.SEEN[...] in Loop.run()"},
		{"others by another path each time", []int64{100, 200, 300, 400}, "", false, false, "", "trainer.seen%d[...]"},
	} {
		p := &compare.Process{Name: "pid7", About: &compare.About{Held: map[*digest.File]*compare.Held{}, Host: map[*digest.File]int64{}, Steps: map[*digest.File]int{}}}
		for i, n := range c.counts {
			f := &digest.File{Devices: []digest.Device{{}}}
			p.Files = append(p.Files, f)
			p.About.Steps[f], p.About.Host[f] = 9*i, n<<16
			x := compare.Holder{Path: strings.Replace(c.path, "%d", fmt.Sprint(i), 1), File: "/a/serve.py", Line: 5, Nodes: 8 * n, ChainLength: 8, Tensors: n, Node: "MulBackward0", Count: n, Bytes: n << 14}
			if c.estimated {
				x.ChainLength, x.Tensors, x.Estimated = n, 1, true
			}
			h := &compare.Held{Bound: c.bound}
			if h.Host = []compare.Holder{x}; c.graphs {
				h.Graphs, h.Host = h.Host, nil
			}
			p.About.Held[f] = h
		}
		late, exit := &digest.File{Devices: []digest.Device{{}}}, &digest.File{Devices: []digest.Device{{}}}
		p.Files, p.About.Exit = append(p.Files, late, exit), exit
		p.About.Steps[late], p.About.Host[late], p.About.Held[late] = 98, 1<<40, &compare.Held{Bound: "time"} // it came to nothing
		p.About.Steps[exit], p.About.Host[exit], p.About.Held[exit] = 99, 1<<40, &compare.Held{}              // functions have returned
		a := Files(digest.NewBook(), []*compare.Process{p}, Options{})
		if c.want == "" && len(a.Findings) == 0 {
			continue
		}
		if len(a.Findings) != 1 || a.Findings[0].Kind != c.want || a.Findings[0].Severity != finding.Problem || a.Findings[0].Site.Line != 5 || !strings.Contains(a.Findings[0].Title, "SEEN[...]") {
			t.Errorf("%s: %+v, want %q", c.name, a.Findings, c.want)
		}
		if c.estimated { // the graph of one large step is estimated, too
			for _, f := range p.Files {
				p.About.Host[f] = 1 << 20
			}
			if a = Files(digest.NewBook(), []*compare.Process{p}, Options{}); len(a.Findings) > 0 {
				t.Errorf("%s in constant memory: %+v", c.name, a.Findings)
			}
		}
		clear(p.About.Steps) // a table that is filled once looks the same: neither a leak nor OK
		if a = Files(digest.NewBook(), []*compare.Process{p}, Options{}); c.name == "a list" && a.Verdict != finding.Unknown {
			t.Errorf("without steps: %s, %+v", a.Verdict, a.Findings)
		}
	}
}

// TestUndumped states what of a device is in no snapshot that was given.
func TestUndumped(t *testing.T) {
	for _, c := range []struct {
		beside compare.Beside
		want   string
	}{
		{compare.Beside{}, ""},
		{compare.Beside{Used: 41 << 30, Dumped: 40 << 30}, ""}, // a context, and NCCL
		{compare.Beside{Used: 60 << 30, Dumped: 40 << 30}, "others hold 20 GiB of device 0"},
		{compare.Beside{Dumped: 1 << 30, Others: []compare.Holding{{Process: "pid9 (engine)", Bytes: 3 << 30}}}, "others hold 3 GiB of device 0"},
	} {
		s := &subject{process: &compare.Process{Name: "pid7", About: &compare.About{Beside: map[int]compare.Beside{0: c.beside}}}}
		var text string
		for _, f := range undumped(s) {
			text = f.Title
		}
		if (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %q, want %q", c.beside, text, c.want)
		}
	}
}

// TestGrowingWith names the container that grew as a leak did, of a process that was recorded
// from outside.
func TestGrowingWith(t *testing.T) {
	h := &compare.Held{Growing: []compare.Holder{{Path: "log", Count: 90_000}, {Path: "meter.values in main()", Count: 228}}}
	for blocks, want := range map[int64]string{282: "meter.values in main()", 120: "meter.values in main()", 5000: "", 100_000: "log"} {
		got := ""
		if x := growingWith(h, blocks); x != nil {
			got = x.Path
		}
		if got != want {
			t.Errorf("%d blocks: %q, want %q", blocks, got, want)
		}
	}
	h.Growing[1].Graphs = true // of which each keeps several
	if x := growingWith(h, 900); x == nil || x.Kind != byAutograd || x.Path != "meter.values in main()" {
		t.Errorf("graphs: %+v", x)
	}
	if x := growingWith(h, 20_000); x != nil {
		t.Errorf("more than graphs of so few keep: %+v", x)
	}
}
