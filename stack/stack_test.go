package stack

import (
	"math/rand"
	"testing"
)

func TestOrigin(t *testing.T) {
	for _, c := range []struct {
		file string
		want Origin
	}{
		{"/home/ml/serving/engine.py", Own},
		{"train.py", Own},
		{"/root/project/train.py", Own},
		{"/usr/lib/python3/dist-packages/imgserve/transforms.py", Own},
		{"/opt/conda/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", Own},
		{"/home/u/.venv/lib/python3.12/site-packages/sglang/srt/scheduler.py", Own},
		{"/tmp/ipykernel_4242/1234567.py", Own},
		{"<ipython-input-3-0123abcd>", Own},
		{"<stdin>", Own},
		{`C:\work\train.py`, Own},
		{"/home/ml/torch/train.py", Own},
		{"/opt/lib/trainer/loop.py", Own},
		{"/usr/lib/python3/dist-packages/torch/nn/modules/module.py", Torch},
		{"/home/u/pytorch/torch/nn/functional.py", Torch},
		{"torch/_ops.py", Torch},
		{`C:\Python311\Lib\site-packages\torch\utils\_contextlib.py`, Torch},
		{"/opt/conda/lib/python3.11/site-packages/torchvision/transforms/functional.py", Own},
		{"/usr/lib/python3.13/copy.py", Library},
		{"/opt/conda/lib/python3.11/contextlib.py", Library},
		{"/root/.pyenv/versions/3.11.7/lib/python3.11/threading.py", Library},
		{`C:\Users\x\AppData\Local\Programs\Python\Python311\Lib\copy.py`, Library},
		{"<frozen runpy>", Generated},
		{"<string>", Generated},
		{"<eval_with_key>.12", Generated},
		{"/tmp/torchinductor_root/ab/cabc.py", Generated},
		{"/lib/x86_64-linux-gnu/libtorch_cpu.so.2.6", Native},
		{"??", Native},
		{"", Native},
		{"/build/aten/src/ATen/native/TensorFactories.cpp", Native},
	} {
		table := NewTable() // gives paths their slashes
		if got := OriginOf(table.At(table.Frame(Frame{File: c.file}, nil))); got != c.want {
			t.Errorf("%s: origin %d, want %d", c.file, got, c.want)
		}
	}
}

func TestSite(t *testing.T) {
	table := NewTable()
	frame := func(file string, line int64, name string) FrameID {
		return table.Frame(Frame{file, line, name}, nil)
	}
	id := table.Intern([]FrameID{
		frame("/x/libtorch.so", 7, "at::empty"),
		frame("/usr/lib/python3/dist-packages/torch/_tensor.py", 10, "clone"),
		frame("/usr/lib/python3.13/copy.py", 20, "deepcopy"),
		frame("/root/project/train.py", 38, "main"),
		frame("/root/project/run.py", 1, "<module>"),
	})
	if got, want := table.Site(id), (Site{"/root/project/train.py", 38, "main"}); got != want {
		t.Errorf("site %v, want %v", got, want)
	}
	for _, id := range []ID{None, Empty, table.Intern([]FrameID{frame("/x/libtorch.so", 7, "at::empty")})} {
		if got := table.Site(id); got != (Site{}) {
			t.Errorf("site of a stack without own frames: %v", got)
		}
	}
}

// TestSiteBehindWrappers looks past packages that only pass tensors on, and for
// them where nothing else is there.
func TestSiteBehindWrappers(t *testing.T) {
	const packages = "/home/u/.venv/lib/python3.12/site-packages/"
	model := Frame{"/home/u/model.py", 39, "forward"}
	hook := Frame{packages + "accelerate/hooks.py", 170, "new_forward"}
	einsum := Frame{packages + "einops/_backends.py", 291, "einsum"}
	for _, c := range []struct {
		name   string
		frames []Frame
		want   Site
	}{
		{"einops", []Frame{einsum, {packages + "einops/einops.py", 939, "einsum"}, model}, model},
		{"a checker around the caller", []Frame{model, {packages + "jaxtyping/_decorator.py", 559, "wrapped_fn"}, {"/home/u/train.py", 1, "main"}}, model},
		{"a checker inside", []Frame{{packages + "jaxtyping/_decorator.py", 559, "wrapped_fn"}, model}, model},
		{"nothing else", []Frame{einsum, {packages + "einops/einops.py", 939, "einsum"}}, einsum},
		{"a hook around a layer", []Frame{{packages + "torch/nn/modules/linear.py", 116, "forward"}, hook, model}, model},
		{"the same package where it is the cause", []Frame{{packages + "accelerate/hooks.py", 160, "pre_forward"}, hook, model}, Site{packages + "accelerate/hooks.py", 160, "pre_forward"}},
		{"an engine", []Frame{{packages + "vllm/worker.py", 5, "load"}, model}, Site{packages + "vllm/worker.py", 5, "load"}},
		{"the program's own folder of that name", []Frame{{"/home/u/einops/einops.py", 7, "einsum"}, model}, Site{"/home/u/einops/einops.py", 7, "einsum"}},
		{"Windows", []Frame{{`D:\Dev\.venv\Lib\site-packages\einops\_backends.py`, 291, "einsum"}, {`D:\Dev\model.py`, 39, "forward"}}, Site{"D:/Dev/model.py", 39, "forward"}},
	} {
		table := NewTable()
		var ids []FrameID
		for _, f := range c.frames {
			ids = append(ids, table.Frame(f, nil))
		}
		if got := table.Site(table.Intern(ids)); got != c.want {
			t.Errorf("%s: site %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWindowsPaths gives Windows paths slashes, keeps what was recorded, and leaves
// other backslashes alone.
func TestWindowsPaths(t *testing.T) {
	for file, want := range map[string]string{
		`C:\work\train.py`:    "C:/work/train.py",
		`C:\work/train.py`:    "C:/work/train.py",
		`\\server\a\train.py`: "//server/a/train.py",
		`src\train.py`:        "src/train.py",
		`/home/u/a\b.py`:      `/home/u/a\b.py`,
		"train.py":            "train.py",
	} {
		table := NewTable()
		id := table.Frame(Frame{File: file}, nil)
		if got := table.At(id).File; got != want {
			t.Errorf("%s is read as %s, want %s", file, got, want)
		}
		if got := table.Recorded(id).File; got != file {
			t.Errorf("%s was recorded, not %s", file, got)
		}
		if again := table.Frame(Frame{File: file}, nil); again != id {
			t.Errorf("%s has two ids", file)
		}
	}
}

// TestIntern holds the table against a map of contents.
func TestIntern(t *testing.T) {
	table, rng := NewTable(), rand.New(rand.NewSource(1))
	var frames []FrameID
	for i := range 50 {
		frames = append(frames, table.Frame(Frame{"f.py", int64(i), "f"}, nil))
	}
	if again := table.Frame(Frame{"f.py", 3, "f"}, nil); again != frames[3] {
		t.Errorf("the same frame has two ids, %d and %d", frames[3], again)
	}
	known := map[string]ID{}
	for range 20_000 {
		s := make([]FrameID, rng.Intn(4))
		key := ""
		for i := range s {
			s[i] = frames[rng.Intn(len(frames))]
			key += string(rune(s[i])) + ","
		}
		id := table.Intern(s)
		if want, ok := known[key]; ok && want != id {
			t.Fatalf("stack %v has two ids, %d and %d", s, want, id)
		}
		known[key] = id
		got := table.Frames(id)
		if len(got) != len(s) {
			t.Fatalf("stack %v comes back as %v", s, got)
		}
		for i := range s {
			if got[i] != s[i] {
				t.Fatalf("stack %v comes back as %v", s, got)
			}
		}
	}
	distinct := map[ID]bool{}
	for _, id := range known {
		distinct[id] = true
	}
	if len(distinct) != len(known) {
		t.Errorf("%d stacks have %d ids", len(known), len(distinct))
	}
}

func TestOptimizerPhases(t *testing.T) {
	const optim = "/usr/lib/python3/dist-packages/torch/optim/"
	for _, c := range []struct {
		frames                  []Frame
		update, foreach, single bool
	}{
		{[]Frame{{optim + "adamw.py", 1, "_multi_tensor_adamw"}, {optim + "optimizer.py", 2, "wrapper"}, {"train.py", 3, "main"}}, true, true, false},
		{[]Frame{{optim + "sgd.py", 1, "_single_tensor_sgd"}, {optim + "optimizer.py", 2, "wrapper"}}, true, false, true},
		{[]Frame{{"adam.py", 1, "step"}, {optim + "optimizer.py", 2, "profile_hook_step"}, {"train.py", 3, "main"}}, true, false, false},
		{[]Frame{{optim + "optimizer.py", 1, "zero_grad"}, {"train.py", 3, "main"}}, false, false, false},
		{[]Frame{{"/home/u/optim/adam.py", 1, "_multi_tensor_adam"}, {"train.py", 3, "main"}}, false, false, false},
	} {
		if u, f, s := InUpdate(c.frames), InForeach(c.frames), InSingle(c.frames); u != c.update || f != c.foreach || s != c.single {
			t.Errorf("%v: in an update %v, foreach %v, single %v", c.frames, u, f, s)
		}
	}
}

func TestReadable(t *testing.T) {
	noise := []Frame{{"libtorch.so", 1, "torch::unwind::unwind()"}, {"libc10.so", 2, "??"}, {"python3", 3, "_PyEval_EvalFrameDefault"}}
	own := Frame{"train.py", 5, "main"}
	if got := Readable(append(append([]Frame{}, noise...), own)); len(got) != 1 || got[0] != own {
		t.Errorf("readable frames: %v", got)
	}
	if got := Readable(noise); len(got) != len(noise) {
		t.Errorf("a stack of noise alone is shown whole, not as %v", got)
	}
}

func BenchmarkIntern(b *testing.B) {
	table := NewTable()
	stacks := make([][]FrameID, 200)
	for i := range stacks {
		for j := range 20 {
			stacks[i] = append(stacks[i], table.Frame(Frame{"f.py", int64(i * j % 300), "f"}, nil))
		}
	}
	i := 0
	for b.Loop() {
		table.Intern(stacks[i%len(stacks)])
		i++
	}
}
