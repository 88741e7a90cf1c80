package gpudriver

import (
	"path/filepath"
	"regexp"
	"strandline/host/symbolize"
	"strings"
)

// The owners of driver memory that have names.
const (
	OwnerPyTorch = "PyTorch's allocator"
	OwnerTorch   = "PyTorch" // its allocations of pinned host memory come from an allocator, too
	OwnerGraphs  = "CUDA graphs"
	ownerUnknown = "unknown"
)

// byFunction lists owners that are recognized by a function on the way to the driver,
// whatever library it is in: NCCL can be part of another library.
var byFunction = []struct {
	function *regexp.Regexp
	owner    string
}{
	{regexp.MustCompile(`Caching(Host|Device)?Allocator|c10::cuda::|ExpandableSegment|c10::CachingDeviceAllocator`), OwnerPyTorch},
	{regexp.MustCompile(`^p?nccl[A-Z]`), "NCCL"},
	{regexp.MustCompile(`^cu(da)?Graph(Instantiate|Upload|Launch|ExecUpdate)`), OwnerGraphs},
}

// byLibrary lists owners that are recognized by the file name of a library.
var byLibrary = []struct {
	file  *regexp.Regexp
	owner string
}{
	{regexp.MustCompile(`^libc10_cuda`), OwnerPyTorch},
	{regexp.MustCompile(`^libtorch(_cuda|_cpu|_python)?[.-]`), OwnerTorch},
	{regexp.MustCompile(`^libnccl`), "NCCL"},
	{regexp.MustCompile(`^libnvshmem`), "NVSHMEM"},
	{regexp.MustCompile(`^libcublas(Lt)?\b`), "cuBLAS"},
	{regexp.MustCompile(`^libcudnn`), "cuDNN"},
	{regexp.MustCompile(`^libcufft`), "cuFFT"},
	{regexp.MustCompile(`^libcusolver`), "cuSOLVER"},
	{regexp.MustCompile(`^libcusparse`), "cuSPARSE"},
	{regexp.MustCompile(`^libcurand`), "cuRAND"},
	{regexp.MustCompile(`^libnvinfer`), "TensorRT"},
	{regexp.MustCompile(`^libonnxruntime`), "ONNX Runtime"},
	{regexp.MustCompile(`^libtriton`), "Triton"},
	{regexp.MustCompile(`^lib(uct|ucp|ucs|ucm)\b`), "UCX"},
	{regexp.MustCompile(`^libfaiss`), "Faiss"},
	{regexp.MustCompile(`^librmm`), "RMM"},
	{regexp.MustCompile(`^libtensorflow|^_pywrap_tensorflow`), "TensorFlow"},
	{regexp.MustCompile(`^xla_extension|^xla_cuda_plugin|^pjrt_c_api`), "XLA"},
}

// between matches the libraries between a caller and the driver: CUDA's runtime, and
// those through which Python calls C.
var between = regexp.MustCompile(`^(libcuda[.-]|libcudart|libffi|_ctypes|libpython|python3?)|^$`)

// OfCUDA reports whether a file is the driver's library or CUDA's runtime.
func OfCUDA(object string) bool { return ofCUDA.MatchString(filepath.Base(object)) }

var ofCUDA = regexp.MustCompile(`^(libcuda[.-]|libcudart)`)

// ownerOf returns whose code called the driver, according to the innermost frame that
// is not in the driver, CUDA's runtime or the C library.
func ownerOf(frames []symbolize.Frame) string {
	for _, f := range frames {
		if f.Object == "" && f.File != "" {
			return "Python (" + filepath.Base(f.File) + ")"
		}
		for _, o := range byFunction {
			if o.function.MatchString(f.Function) {
				return o.owner
			}
		}
		object := filepath.Base(f.Object)
		if f.Object == "" || between.MatchString(object) || systemLibrary.MatchString(object) {
			continue
		}
		for _, o := range byLibrary {
			if o.file.MatchString(object) {
				return o.owner
			}
		}
		return strings.TrimSuffix(object, " (deleted)")
	}
	return ownerUnknown
}

var systemLibrary = regexp.MustCompile(`^(libc[.-]|libpthread|ld-linux|libstdc\+\+|libgcc_s|libm[.-]|libdl[.-])`)
