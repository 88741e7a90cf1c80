package soakserver

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// The moods, which are how memory behaves.
const (
	Clean       = "clean"
	Caching     = "caching"     // keeps Bytes of each new prompt, up to Capacity
	Leaking     = "leaking"     // keeps Bytes of each request, and TokenBytes of each token
	Compiling   = "compiling"   // is leaking, and keeps executable memory, a tenth of Bytes of each request
	Fragmenting = "fragmenting" // maps several times of what it uses; Capacity requests is how long the oldest pieces live
)

// The faults, which some or all requests meet.
const (
	Slow      = "slow"      // a pause before each token
	Hanging   = "hanging"   // no answer
	Refusing  = "refusing"  // status 503
	Limiting  = "limiting"  // status 429 with Retry-After
	Garbage   = "garbage"   // what is not an answer
	Empty     = "empty"     // a stream of nothing but its end
	Cut       = "cut"       // the connection ends in the middle
	Unended   = "unended"   // a stream without its end
	Plain     = "plain"     // answers in one piece whatever is asked for, and no list of models
	Rejecting = "rejecting" // status 400 to what the API of OpenAI does not have
)

// Options state how a server behaves.
type Options struct {
	Mood       string
	Bytes      int
	TokenBytes int
	Capacity   int
	Seed       uint64
	Fault      string
	Share      float64 // of the requests that meet the fault; 0 for all
	After      int     // requests that are answered before any meets the fault
	Helper     int     // requests after which a child is replaced by another; 0 for no child
	Ends       int     // the request at which the process ends; 0 for never
	Restarts   bool    // it is then started again
	Address    string  // to listen on; "" for a free port of this machine
	Forward    string  // the URL of the server that answers in its place
	Count      int     // what /metrics counts for each request; 0 for no count
	Mute       bool    // /metrics never answers
}

const (
	// variable holds the options of the process that is a server.
	variable = "STRANDLINE_TESTSERVER"
	// freeing holds the URL of a server whose memory this process is to have freed.
	freeing = "STRANDLINE_TESTSERVER_FREE"
)

// FreeCommand is a command of a shell that has a server give back what it keeps.
func FreeCommand(url string) string {
	program, _ := os.Executable() // it runs
	return fmt.Sprintf("%s='%s' '%s'", freeing, url, program)
}

// Main runs the server and does not return, if this process is to be one. It is called
// first in TestMain.
func Main() {
	if url, ok := os.LookupEnv(freeing); ok {
		if _, err := http.Post(url+"/free", "", nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var o Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil && o.Restarts {
		err = supervise(o)
	} else if err == nil {
		err = serve(o)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Start starts a server, waits until it listens, and returns the URL of its API and its
// process. It ends with the test.
func Start(t testing.TB, o Options) (url string, pid int) {
	t.Helper()
	live.Waits(t)
	c := command(o)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	if _, err := fmt.Fscan(out, &url); err != nil { // the server states that it listens
		t.Fatal("the server did not start: ", err)
	}
	return url, c.Process.Pid
}

// command is this program as a server, which ends with its parent.
func command(o Options) *exec.Cmd {
	text, _ := json.Marshal(o) // has nothing that fails
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), variable+"="+string(text))
	c.Stderr = os.Stderr
	return c
}

// supervise runs a server, and again at the same address when it has ended.
func supervise(o Options) error {
	runtime.LockOSThread() // a child ends with the thread that started it
	o.Restarts = false
	for {
		c := command(o)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		var url string
		if _, err := fmt.Fscan(out, &url); err == nil {
			fmt.Println(url)
			o.Address, _, _ = strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		}
		c.Wait()
		o.Ends = 0 // was for the first one
	}
}

// help replaces the child of the server after some requests.
func (s *server) help() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.helped++; s.helped%s.o.Helper != 1 {
		return
	}
	if s.child != nil {
		s.child.Process.Kill()
	}
	up := make(chan *exec.Cmd)
	go func() {
		runtime.LockOSThread()  // a child ends with the thread that started it
		c := command(Options{}) // that it is a server, too, does not matter
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		var url string
		if err == nil {
			_, err = fmt.Fscan(out, &url)
		}
		if err != nil {
			panic(err)
		}
		up <- c
		c.Wait()
	}()
	s.child = <-up
}

// A server answers requests.
type server struct {
	o        Options
	child    *exec.Cmd
	helped   int // requests
	memory   *memory
	requests atomic.Int64
	mu       sync.Mutex
	rand     *rand.Rand
}

func serve(o Options) error {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return err
	}
	s := &server{o: o, memory: newMemory(o), rand: rand.New(rand.NewPCG(o.Seed, 2))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		if o.Fault == Plain {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"test-model"}]}`)
	})
	mux.HandleFunc("POST /v1/free", func(http.ResponseWriter, *http.Request) { s.memory.free() })
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /v1/completions", s.complete)
	fmt.Printf("http://%s/v1\n", l.Addr())
	if o.Forward != "" {
		to, err := url.Parse(o.Forward)
		if err != nil {
			return err
		}
		return http.Serve(l, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host}))
	}
	return http.Serve(l, mux)
}

// metrics are those of vLLM that matter here.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	if s.o.Mute {
		select {} // the client gives up, and this process ends with the test
	}
	if n := s.requests.Load(); s.o.Count > 0 {
		fmt.Fprintf(w, `vllm:request_success_total{finished_reason="length"} %d`+"\n", n*int64(s.o.Count))
	}
	fmt.Fprintf(w, `# HELP vllm:kv_cache_usage_perc KV-cache usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="test-model"} 0.25
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="test-model"} 0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="test-model"} 0
`)
}

// A request is what is read of one.
type request struct {
	Messages  json.RawMessage
	Prompt    json.RawMessage
	MaxTokens int `json:"max_tokens"`
	Stream    bool
	Options   *struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	IgnoreEOS bool `json:"ignore_eos"`
}

func (s *server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q request
	if err != nil || json.Unmarshal(body, &q) != nil {
		http.Error(w, `{"error":{"message":"not a request"}}`, http.StatusBadRequest)
		return
	}
	if n := s.requests.Add(1); s.o.Ends > 0 && n >= int64(s.o.Ends) {
		os.Exit(3)
	}
	if s.o.Helper > 0 {
		s.help()
	}
	if s.fault(w, &q) {
		return
	}
	prompt := []byte(q.Messages)
	if q.Prompt != nil {
		prompt = q.Prompt
	}
	s.memory.request(prompt, q.MaxTokens)
	words := 1 + strings.Count(string(prompt), " ")
	if !q.Stream || s.o.Fault == Plain {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"text":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
			strings.Repeat("well ", q.MaxTokens), "well", words, q.MaxTokens)
		return
	}
	s.stream(w, r, &q, words)
}

// stream writes a token at a time.
func (s *server) stream(w http.ResponseWriter, r *http.Request, q *request, words int) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher).Flush
	hit := s.hit()
	for i := range q.MaxTokens {
		if r.Context().Err() != nil {
			return
		}
		switch {
		case s.o.Fault == Slow && hit:
			time.Sleep(20 * time.Millisecond)
		case s.o.Fault == Cut && hit && i == 1:
			panic(http.ErrAbortHandler)
		}
		if q.Messages != nil {
			io.WriteString(w, `data: {"choices":[{"delta":{"content":"well "}}]}`+"\n\n")
		} else {
			io.WriteString(w, `data: {"choices":[{"text":"well "}]}`+"\n\n")
		}
		if i == 0 || s.o.Fault != "" || i%16 == 0 {
			flush()
		}
	}
	if q.Options != nil && q.Options.Usage {
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\n", words, q.MaxTokens)
	}
	if s.o.Fault == Unended && hit {
		return
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// hit draws whether a request meets the fault.
func (s *server) hit() bool {
	if s.o.Share == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Float64() < s.o.Share
}

// fault answers instead of the server, if the request meets a fault that has no answer.
func (s *server) fault(w http.ResponseWriter, q *request) bool {
	switch s.o.Fault {
	case Hanging, Refusing, Limiting, Garbage, Rejecting, Empty:
		if !s.hit() || s.requests.Load() <= int64(s.o.After) {
			return false
		}
	}
	switch s.o.Fault {
	case Hanging:
		select {} // the client gives up first, and this process ends with the test
	case Refusing:
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
	case Limiting:
		w.Header().Set("Retry-After", "0.01")
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	case Empty:
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: [DONE]\n\n")
	case Garbage:
		io.WriteString(w, "<html>data: it works!</html>\n\n")
	case Rejecting:
		if !q.IgnoreEOS {
			return false
		}
		http.Error(w, `{"error":{"message":"unknown field ignore_eos"}}`, http.StatusBadRequest)
	default:
		return false
	}
	return true
}
