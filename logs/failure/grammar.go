package failure

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"strandline/internal/lazyregexp"
	"strandline/logs/text"
	"strandline/plan/engine"
)

// What an error in unknown wording states is read from its words: a size is what the
// words next to it say, the memory is the host's or a device's, and the program is the one
// that is named nearest.

// sizeIn is a number with a unit, or a plain number of bytes.
var sizeIn = lazyregexp.New(`(?i)\b(\d[\d.,]*) ?((?:[kmgt]i?b|bytes|b)\b|[KMG]\b)|\b(\d{5,18})\b`)

// A role is a figure that a size can be.
type role struct {
	figure         Figure
	before, behind *regexp.Regexp // the word is the first group
}

// roles are the figures that sizes can be, by words before and behind them. Of several,
// the word next to the size decides: "exceeds the maximum: requested 3 GB".
var roles = sync.OnceValue(func() []role {
	return []role{
		{Free, wordBefore(`free|available|avail|remaining|left|remains`), wordBehind(`free|available|left|remaining`)},
		{Limit, wordBefore(`limit|max|maximum|allowed|budget|exceed(?:s|ed|ing)?|quota|cap|threshold`), wordBehind(`limit|allowed|budget|maximum`)},
		{Capacity, wordBefore(`total|capacity`), wordBehind(`total|capacity|physical`)},
		{Active, wordBefore(`already|so far|in use|used|currently|usage|occupied`), wordBehind(`allocated|in use|used|occupied`)},
		{Request, wordBefore(`allocat(?:e|ing|ions?)|\w*[mc]alloc|request\w*|reserv\w+|tried|try|attempt\w*|creat\w+|asked|mmap|map|commit|need\w*|requires?|required`), wordBehind(`required|requested|needed`)},
	}
})

// wordBefore matches a word with at most a few others behind it, to the end of a text.
func wordBefore(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i).*\b(` + words + `)\b[^\d,;]{0,40}$`)
}

// wordBehind matches a word at the beginning of a text, with at most a few small ones
// before it.
func wordBehind(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[ )\]]*(?:(?:of|are|is|was|were|has|been|only|currently|already|[gv]?pu|memory|v?ram|bytes?) +){0,4}(` + words + `)\b`)
}

// bySize is how a size without such a word is introduced as the one that was requested.
var bySize = lazyregexp.New(`(?i)\b(?:size|of|for)\b\W*$`)

// roleOf is what a size is by the text on both sides of it, false if that does not show.
func roleOf(left, right string) (role Figure, ok bool) {
	nearest := len(left) + len(right)
	for _, r := range roles() {
		if m := r.before.FindStringSubmatchIndex(left); m != nil && len(left)-m[3] < nearest {
			nearest, role, ok = len(left)-m[3], r.figure, true
		}
		if m := r.behind.FindStringSubmatchIndex(right); m != nil && m[2] < nearest {
			nearest, role, ok = m[2], r.figure, true
		}
	}
	if !ok && bySize.MatchString(left) {
		return Request, true
	}
	return role, ok
}

// state reads the sizes of a sentence into a failure; plain states that numbers without a
// unit count as bytes.
func (f *Failure) state(sentence string, plain bool) {
	const maxSizes, before, behind = 16, 64, 48
	for _, m := range sizeIn.FindAllStringSubmatchIndex(sentence, maxSizes) {
		number, unit := 2, ""
		if m[number] < 0 {
			if number = 6; !plain {
				continue
			}
		} else {
			unit = sentence[m[4]:m[5]]
		}
		n, ok := amountOf("size", strings.ReplaceAll(sentence[m[number]:m[number+1]]+strings.ToLower(unit), " ", ""))
		const minBytes = 1 << 10 // "a 40B model" has so many parameters
		if !ok || n <= 0 || n < minBytes && strings.EqualFold(unit, "b") {
			continue
		}
		left, right := sentence[max(0, m[0]-before):m[0]], sentence[m[1]:min(len(sentence), m[1]+behind)]
		if strings.HasSuffix(left, "0x") || strings.HasSuffix(strings.TrimRight(left, " ="), "pid") {
			continue
		}
		if role, ok := roleOf(left, right); ok && f.Figures[role] == 0 {
			f.Figures[role] = n
		}
	}
}

// programs are those whose errors can be in unknown wording, the more specific first.
var programs = []struct {
	source Source
	words  *lazyregexp.Regexp
}{
	{SourceTensorRT, lazyregexp.New(`(?i)\[TRT\]|tensorrt|nvinfer|trtexec`)},
	{SourceONNX, lazyregexp.New(`(?i)onnx ?runtime|onnxruntime|\bort[-.][a-z]|\bOrt[A-Z]`)},
	{SourceVLLM, mentioned(engine.VLLM)},
	{SourceSGLang, mentioned(engine.SGLang)},
	{SourceTGI, mentioned(engine.TGI)},
	{SourceOllama, mentioned(engine.Ollama)},
	{SourceLlama, mentioned(engine.LlamaCPP)},
	{SourceMLX, lazyregexp.New(`(?i)\bmlx\b|mlx[/_.]|\[metal::|\bMTL[A-Z]|metal device`)},
	{SourceDirectML, lazyregexp.New(`(?i)directml|\bdml\b`)},
	{SourceXLA, lazyregexp.New(`(?i)\bXLA\b|jaxlib|RESOURCE_EXHAUSTED|\bhbm\b|\bvmem\b|\bsmem\b`)},
	{SourceTensorFlow, lazyregexp.New(`(?i)tensorflow|ResourceExhaustedError|_bfc\b`)},
	{SourceNCCL, lazyregexp.New(`\bNCCL\b|\bRCCL\b|\bnccl[A-Z]`)},
	{SourceRay, lazyregexp.New(`\braylet\b|ray\.exceptions`)},
	{SourceDriver, lazyregexp.New(`(?i)\bcuda|cudart|\bcu(?:blas|dnn|sparse|fft|solver|mem|rand)|\bhip|\bcupy|\bnumba|rapids|\brmm\b|opencl|video memory|nvenc|\bcl[A-Z]|level.zero|vulkan|\bgpu|\bdevice\b|vram|\boptix\b|paddle|mxnet|mindspore|candle|\bwgpu\b`)},
	{SourcePyTorch, lazyregexp.New(`(?i)\btorch[.\d]|pytorch|\bc10\b|\bat::`)},
}

// mentioned matches an engine's name in an error.
func mentioned(name string) *lazyregexp.Regexp {
	return lazyregexp.Of("(?i)" + engine.Named(name).Mention)
}

// The words of an error by which the memory is a device's or the host's.
var (
	ofDevice = lazyregexp.New(`(?i)gpu|video memory|nvenc|cuda|\bdevice|vram|\bhip|\bxpu|\bnpu|\bmlu|\bhpu|\btpu|\bhbm\b|\bvmem\b|metal|vulkan|opencl|directml|nccl|\bcu(?:blas|dnn|fft|sparse)|tensorrt|\[TRT\]`)
	ofHost   = lazyregexp.New(`(?i)\bcpu\b|\bhost\b|(?:^|[^v])ram\b|system memory|main memory|physical memory|virtual memory|pinned|\bheap\b|\b(?:mkl_)?malloc\b|\bmmap\b|\bfork\b|\bstd::|\bswap\b|\bnumpy\b|\bpandas\b|\bjvm\b|java\b|node\.js|\berrno\b|\bENOMEM\b|posix_memalign|\bcommit_memory|/dev/shm|RangeError|array ?buffer`)
	byCPU    = lazyregexp.New(`(?i)numpy|pandas|mkl_malloc|\btorch|\bc10\b|pyarrow|posix_memalign|DefaultCPUAllocator`)
)

// statement is the last line with the statement among those that a text in quotes has
// ("\\n"), and what follows it there.
func statement(line string) []string {
	lines := strings.Split(line, `\n`)
	for i := len(lines) - 1; i > 0; i-- {
		if about.MatchString(lines[i]) && loud.MatchString(lines[i]) {
			return lines[i:]
		}
	}
	return lines
}

// totalIn is the size of a device in a line before an error.
var totalIn = lazyregexp.New(`(?i)\btotal[=: ]+(\d[\d.]* ?[kmgt]i?b)\b`)

var hosts = lazyregexp.Of(`(?m)^` + text.SyslogPrefix)

// interpret reads an error in unknown wording: its line, those that follow, and all that is
// around it. What follows may state the figures that the line does not.
func (f *Failure) interpret(lines []string, around []byte) {
	lines = append(statement(text.LogPrefix.ReplaceAllString(lines[0], "")), lines[1:]...)
	around = hosts.ReplaceAll(around, nil) // the name of a machine says nothing of its memory
	line := translated(lines[0])
	f.state(line, true)
	if all := sizeIn.FindAllString(line, 2); len(f.Figures) == 0 && len(all) == 1 { // the only size in a refusal
		if n, ok := amountOf("size", strings.ToLower(strings.ReplaceAll(all[0], " ", ""))); ok && n >= 1<<20 {
			f.Figures[Request] = n
		}
	}
	for _, next := range lines[1:] {
		if len(f.Figures) == 0 && about.MatchString(next) && !advised.MatchString(next) {
			f.state(next, true)
		}
	}
	if m := totalIn.FindAllSubmatch(around, -1); len(m) > 0 && f.Figures[Request] > 0 && f.Figures[Capacity] == 0 && ofDevice.MatchString(line) {
		f.Words["total"] = string(m[len(m)-1][1])
		f.Figures[Capacity], _ = amountOf("size", strings.ToLower(strings.ReplaceAll(string(m[len(m)-1][1]), " ", "")))
	}
	f.Host = ofHost.MatchString(line) && !(ofDevice.MatchString(line) && !strings.Contains(strings.ToLower(line), "pinned"))
	if line != lines[0] && !ofDevice.MatchString(line) { // the word is that of the host's memory
		f.Host = true
	}
	if !f.Host && !ofDevice.MatchString(line) {
		f.Host = ofHost.Match(around) && !ofDevice.Match(around)
	}
	f.Source = SourceProcess
	for _, content := range []string{line, string(around)} {
		content = withoutFolders(content)
		for _, p := range programs {
			switch {
			case !p.words.MatchString(content):
				continue
			case f.Host && (p.source == SourceDriver || p.source == SourcePyTorch || p.source == SourceXLA):
				continue
			}
			f.Source = p.source
			break
		}
		if f.Source != SourceProcess {
			break
		}
	}
	if f.Host && f.Source == SourceProcess && byCPU.MatchString(line) {
		f.Source = SourceCPU
	}
	if !f.Host && f.Source == SourceProcess && !ofDevice.Match(around) {
		f.Words["unclear"] = "it" // of which memory it is
	}
	if f.Host {
		if free, ok := f.Figures[Free]; ok { // of the host
			f.Figures[Available] = free
			delete(f.Figures, Free)
		}
		delete(f.Figures, Active)
	}
	if hipWord.MatchString(line) || bytes.Contains(around, []byte("rocm")) {
		f.Words["maker"] = MakerAMD
	} else if ascendWord.Match(around) {
		f.Words["maker"] = MakerHuawei
	}
}
