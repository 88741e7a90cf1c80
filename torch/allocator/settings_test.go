package allocator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// parsed is what PyTorch records of its settings in a snapshot, and what it printed
// when they were set.
type parsed struct {
	text           string
	split          int64 // max_split_size, 0 for -1
	gc             float64
	expandable     bool
	lock, register bool
	threads        int64  // 0 for 1
	divisions      string // runs of equal ones, "" if there are none
}

// torch26 are the answers of PyTorch 2.6.0 to torch.cuda.memory.
// _set_allocator_settings, after which it was asked for its settings: of a text
// that it refuses, what comes before the error is in force.
var torch26 = map[string]parsed{
	"":                                                                {},
	"max_split_size_mb:128":                                           {split: 134217728},
	"max_split_size_mb:20":                                            {text: "CachingAllocator option max_split_size_mb too small, must be > 20"},
	"max_split_size_mb:21":                                            {split: 22020096},
	"max_split_size_mb:-1":                                            {split: -1048576},
	"max_split_size_mb:-2147483648":                                   {split: -1048576},
	"max_split_size_mb:2147483647":                                    {split: 2251799812636672},
	"max_split_size_mb:2147483648":                                    {text: "stoi"},
	"max_split_size_mb:128MB":                                         {split: 134217728},
	"max_split_size_mb:abc":                                           {text: "stoi"},
	"max_split_size_mb:":                                              {text: "Error, expecting max_split_size_mb value"},
	"max_split_size_mb":                                               {text: "Error parsing CachingAllocator settings, expected :"},
	"max_split_size_mb=128":                                           {text: "Unrecognized CachingAllocator option: max_split_size_mb=128"},
	"max_split_size_mb,128":                                           {text: "Error parsing CachingAllocator settings, expected :"},
	"max_split_size_mb: 1 2 8 ":                                       {split: 134217728},
	"max split size mb:128":                                           {text: "Unrecognized CachingAllocator option: maxsplitsizemb"},
	"\tmax_split_size_mb:128":                                         {text: "Unrecognized CachingAllocator option: \tmax_split_size_mb"},
	"max_split_size_mb:\t128":                                         {split: 134217728},
	"max_split_size_mb:+64":                                           {split: 67108864},
	"max_split_size_mb:0x80":                                          {text: "CachingAllocator option max_split_size_mb too small, must be > 20"},
	"max_split_size_mb:128.5":                                         {split: 134217728},
	"max_split_size_mb:1e3":                                           {text: "CachingAllocator option max_split_size_mb too small, must be > 20"},
	"max_split_size_mb:99999999999999999999":                          {text: "stoi"},
	"max_split_size_mb:128,":                                          {split: 134217728},
	"max_split_size_mb:128,,":                                         {text: "Unrecognized CachingAllocator option: ,", split: 134217728},
	",max_split_size_mb:128":                                          {text: "Unrecognized CachingAllocator option: ,"},
	"max_split_size_mb:128,max_split_size_mb:256":                     {split: 268435456},
	"max_split_size_mb:128:":                                          {text: "Error parsing CachingAllocator settings, expected ,", split: 134217728},
	"max_split_size_mb:128]":                                          {text: "Error parsing CachingAllocator settings, expected ,", split: 134217728},
	"max_split_size_mb:128 expandable_segments:True":                  {text: "Error parsing CachingAllocator settings, expected ,", split: 134217728},
	"max_split_size_mb::":                                             {text: "stoi"},
	"Max_Split_Size_MB:128":                                           {text: "Unrecognized CachingAllocator option: Max_Split_Size_MB"},
	"bogus:1":                                                         {text: "Unrecognized CachingAllocator option: bogus"},
	"bogus":                                                           {text: "Unrecognized CachingAllocator option: bogus"},
	"large_segment_size_mb:30":                                        {text: "Unrecognized CachingAllocator option: large_segment_size_mb"},
	"per_process_memory_fraction:0.5":                                 {text: "Unrecognized CachingAllocator option: per_process_memory_fraction"},
	"graph_capture_record_stream_reuse:True":                          {text: "Unrecognized CachingAllocator option: graph_capture_record_stream_reuse"},
	"throw_on_cudamalloc_oom:True":                                    {text: "Unrecognized CachingAllocator option: throw_on_cudamalloc_oom"},
	"max_non_split_rounding_mb:20":                                    {text: "CachingAllocator option max_non_split_rounding_mb too small, must be > 20"},
	"max_non_split_rounding_mb:40":                                    {},
	"max_non_split_rounding_mb:":                                      {text: "Error, expecting max_non_split_rounding_mb value"},
	"max_non_split_rounding_mb":                                       {text: "Error parsing CachingAllocator settings, expected :"},
	"garbage_collection_threshold:0.8":                                {gc: 0.8},
	"garbage_collection_threshold:0":                                  {text: "garbage_collect_threshold too small, set it 0.0~1.0"},
	"garbage_collection_threshold:1":                                  {text: "garbage_collect_threshold too big, set it 0.0~1.0"},
	"garbage_collection_threshold:1.0":                                {text: "garbage_collect_threshold too big, set it 0.0~1.0"},
	"garbage_collection_threshold:-0.5":                               {text: "garbage_collect_threshold too small, set it 0.0~1.0"},
	"garbage_collection_threshold:nan":                                {text: "garbage_collect_threshold too small, set it 0.0~1.0"},
	"garbage_collection_threshold:inf":                                {text: "garbage_collect_threshold too big, set it 0.0~1.0"},
	"garbage_collection_threshold:0.5abc":                             {gc: 0.5},
	"garbage_collection_threshold:.5":                                 {gc: 0.5},
	"garbage_collection_threshold:5.e-1":                              {gc: 0.5},
	"garbage_collection_threshold:1e-400":                             {text: "stod"},
	"garbage_collection_threshold:1e400":                              {text: "stod"},
	"garbage_collection_threshold:0x1p-1":                             {gc: 0.5},
	"garbage_collection_threshold:0x.8":                               {gc: 0.5},
	"garbage_collection_threshold:abc":                                {text: "stod"},
	"garbage_collection_threshold:":                                   {text: "Error, expecting garbage_collection_threshold value"},
	"garbage_collection_threshold:80%":                                {text: "garbage_collect_threshold too big, set it 0.0~1.0"},
	"garbage_collection_threshold:1e-310":                             {text: "stod"},
	"garbage_collection_threshold:0.5e":                               {gc: 0.5},
	"garbage_collection_threshold:infx":                               {text: "garbage_collect_threshold too big, set it 0.0~1.0"},
	"garbage_collection_threshold:0x":                                 {text: "garbage_collect_threshold too small, set it 0.0~1.0"},
	"garbage_collection_threshold:0.8,garbage_collection_threshold:2": {text: "garbage_collect_threshold too big, set it 0.0~1.0", gc: 0.8},
	"roundup_power2_divisions:4":                                      {divisions: "4x16"},
	"roundup_power2_divisions:1":                                      {divisions: "1x16"},
	"roundup_power2_divisions:0":                                      {text: "For roundups, the divisons has to be power of 2 "},
	"roundup_power2_divisions:3":                                      {text: "For roundups, the divisons has to be power of 2 "},
	"roundup_power2_divisions:-4":                                     {text: "For roundups, the divisons has to be power of 2 "},
	"roundup_power2_divisions:-2147483648":                            {text: "For roundups, the divisons has to be power of 2 "},
	"roundup_power2_divisions:":                                       {text: "Error, expecting roundup_power2_divisions value"},
	"roundup_power2_divisions":                                        {text: "Error parsing CachingAllocator settings, expected :"},
	"roundup_power2_divisions:[]":                                     {},
	"roundup_power2_divisions:[":                                      {},
	"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]":               {divisions: "1x9 2 8x6"},
	"roundup_power2_divisions:[256:1,>:4,512:2]":                      {divisions: "1x8 4 2 4x6"},
	"roundup_power2_divisions:[>:4]":                                  {divisions: "4x16"},
	"roundup_power2_divisions:[64:8,256:4,1024:4,>:1]":                {divisions: "8x7 0 4 0 1x6"},
	"roundup_power2_divisions:[256:0,512:2]":                          {divisions: "0x9 2 0x6"},
	"roundup_power2_divisions:[256:3]":                                {text: "For roundups, the divisons has to be power of 2 or 0 to disable roundup "},
	"roundup_power2_divisions:[3:4]":                                  {text: "For roundups, the intervals have to be power of 2 "},
	"roundup_power2_divisions:[0:4]":                                  {text: "For roundups, the intervals have to be power of 2 "},
	"roundup_power2_divisions:[65536:4]":                              {divisions: "4x16"},
	"roundup_power2_divisions:[32768:4]":                              {divisions: "4x16"},
	"roundup_power2_divisions:[512:2,256:1]":                          {divisions: "2x8 1 2 0x6"},
	"roundup_power2_divisions:[256:1,512:2,]":                         {divisions: "1x9 2 0x6"},
	"roundup_power2_divisions:[256:1 512:2]":                          {text: "For roundups, the divisons has to be power of 2 or 0 to disable roundup "},
	"roundup_power2_divisions:[256:1;512:2]":                          {text: "Error parsing CachingAllocator settings, expected ,", divisions: "1x9 0x7"},
	"roundup_power2_divisions:[256]":                                  {text: "Error parsing CachingAllocator settings, expected :"},
	"roundup_power2_divisions:[256:]":                                 {text: "stoi"},
	"roundup_power2_divisions:[256:":                                  {text: "Error parsing roundup_power2_divisions value"},
	"roundup_power2_divisions:[x:1]":                                  {text: "stoul"},
	"roundup_power2_divisions:[>:]":                                   {text: "stoi"},
	"roundup_power2_divisions:[256:1,":                                {divisions: "1x9 0x7"},
	"roundup_power2_divisions:[,]":                                    {text: "Error parsing CachingAllocator settings, expected :"},
	"roundup_power2_divisions:[[256:1]]":                              {text: "Error parsing CachingAllocator settings, expected :"},
	"roundup_power2_divisions:[256:1]]":                               {text: "Error parsing CachingAllocator settings, expected ,", divisions: "1x9 0x7"},
	"roundup_power2_divisions:[256:1],expandable_segments:True":       {expandable: true, divisions: "1x9 0x7"},
	"roundup_power2_divisions:[-1:2]":                                 {text: "For roundups, the intervals have to be power of 2 "},
	"roundup_power2_divisions:[1:2,>:4]":                              {divisions: "4x16"},
	"roundup_power2_divisions:[256:1]4":                               {text: "Error parsing CachingAllocator settings, expected ,", divisions: "1x9 0x7"},
	"roundup_power2_divisions:[18446744073709551616:4]":               {text: "stoul"},
	"roundup_power2_divisions:[9223372036854775808:4]":                {divisions: "4x16"},
	"roundup_power2_divisions:[-9223372036854775808:4]":               {divisions: "4x16"},
	"roundup_power2_divisions:]":                                      {text: "stoi"},
	"roundup_power2_divisions:1073741824":                             {divisions: "1073741824x16"},
	"backend:native":                                                  {},
	"backend:foo":                                                     {text: "Unknown allocator backend, options are native and cudaMallocAsync"},
	"backend:":                                                        {text: "Error parsing backend value"},
	"backend":                                                         {text: "Error parsing CachingAllocator settings, expected :"},
	"backend:hipMallocAsync":                                          {text: "Unknown allocator backend, options are native and cudaMallocAsync"},
	"expandable_segments:True":                                        {expandable: true},
	"expandable_segments:true":                                        {text: "Expected a single True/False argument for expandable_segments"},
	"expandable_segments:1":                                           {text: "Expected a single True/False argument for expandable_segments"},
	"expandable_segments:False":                                       {},
	"expandable_segments:":                                            {text: "Expected a single True/False argument for expandable_segments"},
	"expandable_segments":                                             {text: "Error parsing CachingAllocator settings, expected :"},
	"expandable_segments=True":                                        {text: "Unrecognized CachingAllocator option: expandable_segments=True"},
	"expandable_segments:True,bogus:1":                                {text: "Unrecognized CachingAllocator option: bogus", expandable: true},
	"bogus:1,expandable_segments:True":                                {text: "Unrecognized CachingAllocator option: bogus"},
	"expandable_segments:True:1":                                      {text: "Error parsing CachingAllocator settings, expected ,", expandable: true},
	"release_lock_on_cudamalloc:True":                                 {lock: true},
	"release_lock_on_hipmalloc:True":                                  {lock: true},
	"release_lock_on_cudamalloc:yes":                                  {text: "Expected a single True/False argument for release_lock_on_cudamalloc"},
	"release_lock_on_cudamalloc":                                      {text: "Error parsing CachingAllocator settings, expected :"},
	"pinned_use_cuda_host_register:True":                              {register: true},
	"pinned_use_hip_host_register:True":                               {register: true},
	"pinned_use_cuda_host_register:1":                                 {text: "Expected a single True/False argument for pinned_use_cuda_host_register"},
	"pinned_use_cuda_host_register:":                                  {text: "Error, expecting pinned_use_cuda_host_register value"},
	"pinned_num_register_threads:8":                                   {threads: 8},
	"pinned_num_register_threads:3":                                   {text: "Number of register threads has to be power of 2 "},
	"pinned_num_register_threads:256":                                 {text: "Number of register threads should be less than or equal to 128"},
	"pinned_num_register_threads:0":                                   {text: "Number of register threads has to be power of 2 "},
	"pinned_num_register_threads:":                                    {text: "Error, expecting pinned_num_register_threads value"},
	"pinned_num_register_threads:-1":                                  {text: "Number of register threads has to be power of 2 "},
	"pinned_num_register_threads:128":                                 {threads: 128},
	"pinned_use_background_threads:True":                              {},
	"pinned_use_background_threads:no":                                {text: "Expected a single True/False argument for pinned_use_background_threads"},
	"pinned_use_background_threads:":                                  {text: "Error, expecting pinned_use_background_threads value"},
	"[":                                                               {text: "Unrecognized CachingAllocator option: ["},
	"]":                                                               {text: "Unrecognized CachingAllocator option: ]"},
	":":                                                               {text: "Unrecognized CachingAllocator option: :"},
	",":                                                               {text: "Unrecognized CachingAllocator option: ,"},
	"[]":                                                              {text: "Unrecognized CachingAllocator option: ["},
	" ":                                                               {},
	"max_split_size_mb:512,garbage_collection_threshold:0.6,roundup_power2_divisions:8,expandable_segments:True,max_non_split_rounding_mb:64": {split: 536870912, gc: 0.6, expandable: true, divisions: "8x16"},
}

func shown(s Settings, err error) parsed {
	t := parsed{
		split: s.MaxSplitSize, gc: s.GCThreshold, expandable: s.Expandable,
		lock: s.ReleaseLock, register: s.Host.UseHostRegister, threads: s.Host.RegisterThreads,
	}
	if t.split == Unlimited {
		t.split = 0
	}
	if t.threads == 1 {
		t.threads = 0
	}
	if e := (*SettingError)(nil); errors.As(err, &e) {
		t.text = e.Text
	}
	t.divisions = runs(s.RoundupDivisions)
	return t
}

// runs are "8x7 0 4x8" for seven times 8, a 0 and eight times 4.
func runs(d [sizeClasses]int64) string {
	var out []string
	for i := 0; i < len(d); {
		n := 1
		for i+n < len(d) && d[i+n] == d[i] {
			n++
		}
		if n == 1 {
			out = append(out, fmt.Sprint(d[i]))
		} else {
			out = append(out, fmt.Sprintf("%dx%d", d[i], n))
		}
		i += n
	}
	if d == ([sizeClasses]int64{}) {
		return ""
	}
	return strings.Join(out, " ")
}

func TestParseSettingsAsTorch26(t *testing.T) {
	for conf, want := range torch26 {
		if want.split < 0 { // -1 MiB is 2^64 - 1 MiB
			want.split = 0
		}
		if got := shown(parse(conf, 206)); got != want {
			t.Errorf("%q:\n got %+v\nwant %+v", conf, got, want)
		}
		if _, err := ParseSettings(conf, 206); (err != nil) != (want.text != "") {
			t.Errorf("%q: ParseSettings says %v", conf, err)
		}
	}
}

// The rules of other releases are from their sources.
//
// It is long because it is one table of settings by release.
//
// long: one row a setting
func TestParseSettingsByVersion(t *testing.T) {
	const outside = "Index out of bounds in ConfigTokenizer"
	for _, c := range []struct {
		v    Version
		conf string
		want string // the settings that differ from the default, or !what PyTorch says
	}{
		{200, "expandable_segments:True", "!Unrecognized CachingAllocator option: expandable_segments"},
		{201, "expandable_segments:True", "expandable_segments:True"},
		{200, "roundup_power2_divisions:1", "!Only 2 or more divisions are supported"},
		{200, "roundup_power2_divisions:[256:1]", "!Only 2 or more divisions are supported"},
		{201, "roundup_power2_divisions:1", "roundup_power2_divisions:1"},
		{201, "roundup_power2_divisions:[256:0,512:2]", "!For roundups, the divisons has to be power of 2 "},
		{203, "roundup_power2_divisions:[256:0,512:2]", "roundup_power2_divisions:[256:0,512:2]"},
		{202, "release_lock_on_hipmalloc:True", "!Unrecognized CachingAllocator option: release_lock_on_hipmalloc"},
		{203, "release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc:True"},
		{204, "max_non_split_rounding_mb:30", "!Unrecognized CachingAllocator option: max_non_split_rounding_mb"},
		{205, "max_non_split_rounding_mb:30", "max_non_split_rounding_mb:30"},
		{205, "pinned_use_background_threads:True", "!Unrecognized CachingAllocator option: pinned_use_background_threads"},
		{209, "max_split_size_mb:20", "!CachingAllocator option max_split_size_mb too small, must be > 20"},
		{209, "roundup_power2_divisions:[64:2,>:8]", "roundup_power2_divisions:[32:2,64:8,>:8]"},
		{209, "roundup_power2_divisions:3", "!For roundups, the divisions has to be power of 2 "},
		{209, "\nexpandable_segments:True", "!Unrecognized CachingAllocator option: \nexpandable_segments"},
		{208, "graph_capture_record_stream_reuse:True", "!Unrecognized CachingAllocator option: graph_capture_record_stream_reuse"},

		{210, "max_split_size_mb:20", "max_split_size_mb:20"},
		{210, "max_split_size_mb:19", "!CachingAllocator option max_split_size_mb too small, must be >= 20"},
		{210, "max_split_size_mb:3000000000", "max_split_size_mb:3000000000"},
		{210, "max_split_size_mb:-1", ""},
		{210, "max_split_size_mb:x", "!stoull"},
		{210, "max_split_size_mb", "!" + outside},
		{210, "max_split_size_mb:", "!" + outside},
		{210, "\n max_split_size_mb\t: 64 \r\n", "max_split_size_mb:64"},
		{210, "max_split_size_mb,64:expandable_segments,True", "expandable_segments:True,max_split_size_mb:64"},
		{210, "roundup_power2_divisions:[64:2,>:8]", "roundup_power2_divisions:[64:2,128:8,>:8]"},
		{210, "roundup_power2_divisions:[>:8]", "roundup_power2_divisions:[1:0,2:8,>:8]"},
		{210, "roundup_power2_divisions:[32768:2,>:8]", "roundup_power2_divisions:2"},
		{210, "roundup_power2_divisions:[x:8]", "!stoull"},
		{210, "roundup_power2_divisions:[3:8]", "!For roundups, the intervals have to be power of 2 "},
		{210, "roundup_power2_divisions:[4:3]", "!For roundups, the divisions has to be power of 2 or 0 to disable roundup "},
		{210, "roundup_power2_divisions:[4:8", "!" + outside},
		{210, "roundup_power2_divisions:[4:8,", "!Expected closing bracket ']' in ConfigTokenizer but reached end of config"},
		{210, "roundup_power2_divisions:9223372036854775808", "roundup_power2_divisions:4611686018427387904"},
		{210, "garbage_collection_threshold:1", "!garbage_collect_threshold is invalid, set it in (0.0, 1.0)"},
		{210, "garbage_collection_threshold:nan", "!garbage_collect_threshold is invalid, set it in (0.0, 1.0)"},
		{210, "expandable_segments:true", "!Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'"},
		{210, "bogus:1", "!Unrecognized key 'bogus' in Accelerator allocator config."},
		{210, "large_segment_size_mb:64", "!Unrecognized key 'large_segment_size_mb' in Accelerator allocator config."},
		// Common options come first, whatever the order of the text.
		{210, "backend:bogus,max_split_size_mb:1", "!CachingAllocator option max_split_size_mb too small, must be >= 20"},
		{210, "backend:bogus,max_split_size_mb:64", "!Unknown allocator backend, options are native and cudaMallocAsync"},
		{210, "backend:[native", "!Expected closing bracket ']' in ConfigTokenizer but reached end of config"},
		{210, "backend:cudaMallocAsync", "backend:cudaMallocAsync"},
		{210, "pinned_num_register_threads:3", "!Number of register threads has to be power of 2, got 3"},
		{210, "pinned_num_register_threads:256", "!Number of register threads should be less than or equal to 128, got 256"},
		{210, "pinned_reserve_segment_size_mb:0", "!Pinned reserve segment size has to be greater than 0"},
		{210, "pinned_reserve_segment_size_mb:8", "pinned_reserve_segment_size_mb:8"},
		{210, "per_process_memory_fraction:0.5", "per_process_memory_fraction:0.5"},
		{210, "per_process_memory_fraction:1.5", "!per_process_memory_fraction is invalid, set it in [0.0, 1.0]"},
		{210, "per_process_memory_fraction:nan", "!per_process_memory_fraction is invalid, set it in [0.0, 1.0]"},
		{210, "max_non_split_rounding_mb:20", ""},

		{211, "max_split_size_mb:64,large_segment_size_mb:128", "!CachingAllocator option max_split_size_mb too small, must be >= 128"},
		{211, "max_split_size_mb:128,large_segment_size_mb:128", "large_segment_size_mb:128,max_split_size_mb:128"},
		{211, "max_split_size_mb:12,large_segment_size_mb:11", "large_segment_size_mb:11,max_split_size_mb:12"},
		{211, "max_non_split_rounding_mb:40,large_segment_size_mb:32", "large_segment_size_mb:32,max_non_split_rounding_mb:40"},
		{211, "large_segment_size_mb:10", "!CachingAllocator option large_segment_size_mb must be > 10 MB"},
		{211, "large_segment_size_mb:-1", "large_segment_size_mb:8796093022207"},
		{211, "throw_on_cudamalloc_oom:True", "!Unrecognized key 'throw_on_cudamalloc_oom' in Accelerator allocator config."},
		{212, "throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom:True"},
		{213, "pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:2,pinned_free_catch_all:True",
			"pinned_free_catch_all:True,pinned_max_cached_size_mb:2,pinned_max_round_threshold_mb:1"},
		{215, "expandable_segments_reserve:40G", "expandable_segments_reserve:40G"},
		{215, "expandable_segments_reserve:inf", ""},
		{215, "expandable_segments_reserve:0", ""},
		{215, "expandable_segments_reserve_by_class:[work:1e1g,capture:.25,bad:x]", "expandable_segments_reserve_by_class:[capture:.25,work:1e1g]"},
		{215, "expandable_segments_reserve_by_class:[a:0.5],expandable_segments_reserve_by_class:[]", ""},
		{215, "expandable_segments_reserve_by_class:0.5", "!" + outside},

		{0, "graph_capture_record_stream_reuse:True,large_segment_size_mb:32", "graph_capture_record_stream_reuse:True,large_segment_size_mb:32"},
		{300, "throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom:True"},
		{113, "max_split_size_mb:64", "max_split_size_mb:64"},
	} {
		s, err := ParseSettings(c.conf, c.v)
		got := s.Changed()
		if err != nil {
			got = "!" + err.(*SettingError).Text
		} else if s.Conf != c.conf {
			t.Errorf("%s %q: Conf is %q", c.v, c.conf, s.Conf)
		}
		if err != nil && s != (Settings{}) {
			t.Errorf("%s %q: settings with an error: %+v", c.v, c.conf, s)
		}
		if got != c.want {
			t.Errorf("%s %q:\n got %q\nwant %q", c.v, c.conf, got, c.want)
		}
	}
}

func TestSettingError(t *testing.T) {
	for _, c := range []struct {
		v    Version
		conf string
		want string
	}{
		{206, "expandable_segments:True, max_split_size_mb:10", `allocator settings, byte 44 ("10"): PyTorch says "CachingAllocator option max_split_size_mb too small, must be > 20"; ` +
			`write a number of MiB above 20 and not below large_segment_size_mb, such as max_split_size_mb:256`},
		{200, "expandable_segments:True", `allocator settings, byte 0 ("expandable_segments"): PyTorch says "Unrecognized CachingAllocator option: expandable_segments"; ` +
			`PyTorch has expandable_segments since 2.1`},
		{206, "expandable_segments=True", `allocator settings, byte 0 ("expandable_segments=True"): PyTorch says "Unrecognized CachingAllocator option: expandable_segments=True"; ` +
			`write expandable_segments:True`},
		{200, "max_split:1", `allocator settings, byte 0 ("max_split"): PyTorch says "Unrecognized CachingAllocator option: max_split"; ` +
			`the options of PyTorch 2.0 are backend, garbage_collection_threshold, max_split_size_mb, roundup_power2_divisions`},
		{206, "max_split_size_mb:64,,", `allocator settings, byte 21 (","): PyTorch says "Unrecognized CachingAllocator option: ,"; ` +
			`write option:value, with a comma between options`},
		{206, "max_split_size_mb:64 expandable_segments:True", `allocator settings, byte 40 (":"): PyTorch says "Error parsing CachingAllocator settings, expected ,"; ` +
			`write option:value, with a comma between options`},
		{210, "expandable_segments: ", `allocator settings, byte 21 (the end): PyTorch says "Index out of bounds in ConfigTokenizer"; ` +
			`write expandable_segments:True or expandable_segments:False`},
		{206, "roundup_power2_divisions:[ 3:4]", `allocator settings, byte 27 ("3"): PyTorch says "For roundups, the intervals have to be power of 2"; ` +
			`write a power of two, such as roundup_power2_divisions:8, or a list by MiB, such as roundup_power2_divisions:[256:1,512:2,>:4]`},
	} {
		_, err := ParseSettings(c.conf, c.v)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s %q:\n got %v\nwant %v", c.v, c.conf, err, c.want)
		}
	}
	_, err := ParseSettings(strings.Repeat("x", 1<<20), 206)
	if n := len(err.Error()); n > 1000 {
		t.Errorf("an error of %d bytes", n)
	}
}

func TestFromSnapshot(t *testing.T) {
	var divisions []snapshot.Field
	for i, name := range classNames {
		n := int64(0)
		if i >= 8 {
			n = 4
		}
		divisions = append(divisions, snapshot.Field{Key: name, Value: n})
	}
	for _, c := range []struct {
		file *snapshot.Settings
		v    Version
		want string
	}{
		{nil, 206, ""},
		{&snapshot.Settings{MaxSplitSize: -1}, 206, ""},
		{&snapshot.Settings{Conf: "max_split_size_mb:64"}, 206, "max_split_size_mb:64"}, // a file that was cut
		// What is in force wins over the last text, in both directions.
		{&snapshot.Settings{Conf: "max_split_size_mb:64,garbage_collection_threshold:0.5,expandable_segments:True,roundup_power2_divisions:2",
			MaxSplitSize: -1, Roundup: make([]snapshot.Field, 1)}, 206, ""},
		{&snapshot.Settings{Conf: "pinned_num_register_threads:4", MaxSplitSize: 256 << 20, GCThreshold: 0.75, ExpandableSegments: true, Roundup: divisions}, 206,
			"expandable_segments:True,garbage_collection_threshold:0.75,max_split_size_mb:256,pinned_num_register_threads:4,roundup_power2_divisions:[128:0,256:4,>:4]"},
		// What the file does not state comes from the text.
		{&snapshot.Settings{Conf: "large_segment_size_mb:64,max_non_split_rounding_mb:80,per_process_memory_fraction:0.5,roundup_power2_divisions:2", MaxSplitSize: -1}, 211,
			"large_segment_size_mb:64,max_non_split_rounding_mb:80,per_process_memory_fraction:0.5,roundup_power2_divisions:2"},
		// Also of a text that PyTorch refused half-way.
		{&snapshot.Settings{Conf: "max_non_split_rounding_mb:80,bogus:1,pinned_num_register_threads:4", MaxSplitSize: -1}, 206, "max_non_split_rounding_mb:80"},
		// Values that no PyTorch release accepts are ignored.
		{&snapshot.Settings{MaxSplitSize: -1 << 20, GCThreshold: 7, Roundup: []snapshot.Field{{Key: "1", Value: int64(-4)}, {Key: "2", Value: int64(3)}, {Key: 4, Value: int64(4)}, {Key: "8", Value: "8"}}}, 206, ""},
	} {
		s := FromSnapshot(c.file, c.v)
		if got := s.Changed(); got != c.want {
			t.Errorf("%+v:\n got %q\nwant %q", c.file, got, c.want)
		}
		if c.file != nil && s.Conf != c.file.Conf {
			t.Errorf("%+v: Conf is %q", c.file, s.Conf)
		}
	}
}

func TestOptionsAreSorted(t *testing.T) {
	if !slices.IsSortedFunc(options, func(a, b option) int { return strings.Compare(a.name, b.name) }) {
		t.Error("options are looked up by halving: keep them sorted by name")
	}
}

func TestVersion(t *testing.T) {
	for v, want := range map[Version]string{0: "unknown", -1: "unknown", 113: "1.13", 200: "2.0", 206: "2.6", 210: "2.10"} {
		if got := v.String(); got != want {
			t.Errorf("Version(%d) is %q, want %q", int(v), got, want)
		}
	}
}

// Whatever is parsed can be written and parsed again, by the same release and,
// where that has all options, by the newest.
func FuzzParseSettings(f *testing.F) {
	for conf := range torch26 {
		f.Add(conf, 206)
		f.Add(conf, 210)
		f.Add(conf, 0)
	}
	f.Add("expandable_segments_reserve_by_class:[,:0.5,[::1G],large_segment_size_mb:11", 214)
	f.Fuzz(func(t *testing.T, conf string, version int) {
		v := Version(version)
		s, err := ParseSettings(conf, v)
		if err != nil {
			if e := err.(*SettingError); e.At < 0 || e.At > len(conf) || e.Error() == "" {
				t.Fatalf("%q: %+v", conf, e)
			}
			return
		}
		text := s.Changed()
		for _, as := range []Version{v, 0} {
			again, err := ParseSettings(text, as)
			if err != nil {
				t.Fatalf("%s %q is %q, which %s refuses: %v", v, conf, text, as, err)
			}
			again.Conf = s.Conf
			if again != s {
				t.Fatalf("%s %q is %q:\n got %+v\nwant %+v", v, conf, text, again, s)
			}
		}
	})
}
