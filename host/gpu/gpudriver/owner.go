package gpudriver

import (
	"path/filepath"
	"strandline/host/code/symbolize"
	"strandline/internal/lazyregexp"
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
	function *lazyregexp.Regexp
	owner    string
}{
	{lazyregexp.New(`Caching(Host|Device)?Allocator|c10::cuda::|ExpandableSegment|c10::CachingDeviceAllocator`), OwnerPyTorch},
	{lazyregexp.New(`^p?nccl[A-Z]`), "NCCL"},
	{lazyregexp.New(`^cu(da)?Graph(Instantiate|Upload|Launch|ExecUpdate)`), OwnerGraphs},
}

// byLibrary lists owners that are recognized by the file name of a library.
var byLibrary = []struct {
	file  *lazyregexp.Regexp
	owner string
}{
	{lazyregexp.New(`^libc10_cuda`), OwnerPyTorch},
	{lazyregexp.New(`^libtorch(_cuda|_cpu|_python)?[.-]`), OwnerTorch},
	{lazyregexp.New(`^libnccl`), "NCCL"},
	{lazyregexp.New(`^libnvshmem`), "NVSHMEM"},
	{lazyregexp.New(`^libcublas(Lt)?\b`), "cuBLAS"},
	{lazyregexp.New(`^libcudnn`), "cuDNN"},
	{lazyregexp.New(`^libcufft`), "cuFFT"},
	{lazyregexp.New(`^libcusolver`), "cuSOLVER"},
	{lazyregexp.New(`^libcusparse`), "cuSPARSE"},
	{lazyregexp.New(`^libcurand`), "cuRAND"},
	{lazyregexp.New(`^libnvinfer`), "TensorRT"},
	{lazyregexp.New(`^libonnxruntime`), "ONNX Runtime"},
	{lazyregexp.New(`^libtriton`), "Triton"},
	{lazyregexp.New(`^lib(uct|ucp|ucs|ucm)\b`), "UCX"},
	{lazyregexp.New(`^libfaiss`), "Faiss"},
	{lazyregexp.New(`^librmm`), "RMM"},
	{lazyregexp.New(`^libtensorflow|^_pywrap_tensorflow`), "TensorFlow"},
	{lazyregexp.New(`^xla_extension|^xla_cuda_plugin|^pjrt_c_api`), "XLA"},
}

// intermediaries matches the libraries between a caller and the driver: CUDA's runtime, and
// those through which Python calls C.
var intermediaries = lazyregexp.New(`^(libcuda[.-]|libcudart|libffi|_ctypes|libpython|python3?)|^$`)

// OfCUDA reports whether a file is the driver's library or CUDA's runtime.
func OfCUDA(object string) bool { return ofCUDA.MatchString(filepath.Base(object)) }

var ofCUDA = lazyregexp.New(`^(libcuda[.-]|libcudart)`)

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
		if f.Object == "" || intermediaries.MatchString(object) || systemLibrary.MatchString(object) {
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

var systemLibrary = lazyregexp.New(`^(libc[.-]|libpthread|ld-linux|libstdc\+\+|libgcc_s|libm[.-]|libdl[.-])`)
