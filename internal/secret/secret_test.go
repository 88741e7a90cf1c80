package secret

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArgs reads cases that the Python module's test reads too.
func TestArgs(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c struct {
			Name string
			Args []string
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name := c.Name
		args, want := unmark(c.Args)
		before := slices.Clone(args)
		got := Args(args)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
		if !slices.Equal(args, before) {
			t.Errorf("%s: the arguments themselves were changed", name)
		}
		if again := Args(got); !slices.Equal(again, got) {
			t.Errorf("%s: masked again: %q", name, again)
		}
	}
}

// marked is a secret in a case.
var marked = regexp.MustCompile(`«([^»]*)»`)

// unmark separates arguments and what becomes of them.
func unmark(cases []string) (args, want []string) {
	for _, arg := range cases {
		args, want = append(args, marked.ReplaceAllString(arg, "$1")), append(want, marked.ReplaceAllString(arg, Mask))
	}
	return args, want
}

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"INFO args: Namespace(api_key='abc', model='m', hf_token=None, tokenizer='t')", "INFO args: Namespace(api_key='***', model='m', hf_token=None, tokenizer='t')"},
		{"non-default args: {'api_key': ['k1', 'k2'], 'port': 80}", "non-default args: {'api_key': [***], 'port': 80}"},
		{`{"api_key":"abc","max_tokens":5}`, `{"api_key":"***","max_tokens":5}`},
		{`"{\"token\": \"abc\"}"`, `"{\"token\": \"***\"}"`},
		{"unexpected token: foo at 5", "unexpected token: foo at 5"},
		{"password: hunter", "password: ***"},
		{"hf_token: abc", "hf_token: ***"},
		{"token==5 and max_tokens=4096, total tokens: 7", "token==5 and max_tokens=4096, total tokens: 7"},
		{"GET http://h/v1?access_token=abc#x 200", "GET http://h/v1?access_token=*** 200"},
		{"Incorrect API key provided: sk-proj-Ab12Cd34Ef56Gh78Ij90.", "Incorrect API key provided: ***."},
		{"curl -H 'Authorization: Bearer a b' x", "curl -H 'Authorization: Bearer ***' x"},
		{"authorization: Bearer abc\nhost: h", "authorization: Bearer ***\nhost: h"},
		{"Proxy-Authorization: Basic abc==", "Proxy-Authorization: Basic ***"},
		{"sent Bearer abcdefgh1 to h", "sent Bearer *** to h"},
		{"the bearer of bad1", "the bearer of bad1"},
		{"torch/x.py:12@forward host:80@x", "torch/x.py:12@forward host:80@x"},
		{"mailto:a@b.c", "mailto:a@b.c"},
		{"http://user:p/w@h/", "http://user:***@h/"},
		{"http://h:80/a:b@c", "http://h:80/a:***@c"},
		{"Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB", "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB"},
		{"", ""},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		in   string
		size int
		want string
	}{
		{"vllm\x00serve\x00--api-key\x00abc\x00\x00", 100, "vllm serve --api-key ***"},
		{"a\x00\xffb\x00", 100, "a ?b"},
		{"", 100, ""},
		{"x\x00sk-" + strings.Repeat("a1", 50) + "\x00", 8, "x ***"},
		{"python é", 8, "python"},
	} {
		if got := strings.TrimSpace(Command(c.in, c.size)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestEnviron(t *testing.T) {
	got := Environ([]string{"PATH=/bin", "OPENAI_API_KEY=abc", "HTTPS_PROXY=http://u:p@h", "PWD=/", "HF_TOKEN="})
	if want := []string{"PATH=/bin", "PWD=/", "HF_TOKEN="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzText checks what holds for every text: it ends, does not panic, and a masked text
// is not changed again.
func FuzzText(f *testing.F) {
	for _, s := range []string{"--api-key abc", `{"token": ["a"]}`, "http://u:p@h?sig=1", "Authorization: Bearer x", "password='a\\'b'", "x\x00--token\x00y\x00", "a=b=c:d@e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if again := Text(once); again != once {
			t.Errorf("%q: %q becomes %q", text, once, again)
		}
		line := Line(text)
		if again := Line(line); again != line {
			t.Errorf("%q: %q becomes %q", text, line, again)
		}
		args := Args(Split(text))
		if again := Args(args); !slices.Equal(again, args) {
			t.Errorf("%q: %q becomes %q", text, args, again)
		}
		if len(args) != len(Split(text)) {
			t.Errorf("%q: %d arguments", text, len(args))
		}
		Command(text, 64)
	})
}

// FuzzSecret checks that a secret is gone in each form in which it can be given.
func FuzzSecret(f *testing.F) {
	f.Add("api-key", "abcXYZ123", uint8(0))
	f.Add("db_password", "p$x-/+", uint8(3))
	f.Fuzz(func(t *testing.T, name, value string, form uint8) {
		names := []string{"api-key", "api_key", "apiKey", "API_KEY", "hf-token", "HF_TOKEN", "password", "client.secret", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "x-api-key"}
		name = names[len(name)%len(names)]
		value = strings.Map(func(r rune) rune {
			if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+/~-", r) {
				return r
			}
			return -1
		}, value)
		value = "Zq" + value + "7Z"
		var out string
		switch form % 9 {
		case 0:
			out = strings.Join(Args([]string{"python", "x.py", "--" + name, value, "--port", "80"}), " ")
		case 1:
			out = strings.Join(Args([]string{"python", "x.py", "--" + name + "=" + value}), " ")
		case 2:
			out = strings.Join(Args([]string{"env", name + "=" + value, "python"}), " ")
		case 3:
			out = Text("x --" + name + " " + value + " y")
		case 4:
			out = Text("x --" + name + "='" + value + "' y")
		case 5:
			out = Text(`{"` + name + `": "` + value + `"}`)
		case 6:
			out = Text("{'" + name + "': ['" + value + "', 'b']}")
		case 7:
			out = Text("see postgres://user:" + strings.ReplaceAll(value, "/", "") + "@host/db")
			value = strings.ReplaceAll(value, "/", "")
		case 8:
			out = Text("https://h/p?a=1&" + name + "=" + value + "&b=2")
		}
		if strings.Contains(out, value) {
			t.Errorf("%q contains the secret %q", out, value)
		}
	})
}

var command = strings.Split("/opt/venv/bin/python3 -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-70B-Instruct --served-model-name llama --tensor-parallel-size 8 --max-model-len 131072 --max-num-batched-tokens 8192 --gpu-memory-utilization 0.92 --kv-cache-dtype fp8 --enable-prefix-caching --tokenizer meta-llama/Llama-3.1-70B-Instruct --host 0.0.0.0 --port 8000 --disable-log-requests", " ")

// BenchmarkArgs is of one command line of a server, as a watch reads it once a minute for
// each process.
func BenchmarkArgs(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Args(command)
	}
}

func BenchmarkText(b *testing.B) {
	line := "(EngineCore pid=1234) INFO 10-02 12:00:00 [gpu_worker.py:123] Available KV cache memory: 12.34 GiB, torch.compile takes 5.2 s in total --max-model-len 8192"
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		Text(line)
	}
}
