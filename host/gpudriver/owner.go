package gpudriver

import (
	"path/filepath"
	"regexp"
	"strandline/host/symbolize"
	"strings"
)

// The owners of driver memory that have a name.
const (
	OwnerPyTorch = "PyTorch's allocator"
	OwnerTorch   = "PyTorch" // of which what pins host memory is an allocator, too
	OwnerGraphs  = "CUDA graphs"
	OwnerUnknown = "unknown"
)

// byFunction are owners that are recognised by a function on the way to the driver,
// whatever library it is in: NCCL can be part of another.
var byFunction = []struct {
	function *regexp.Regexp
	owner    string
}{
	{regexp.MustCompile(`Caching(Host|Device)?Allocator|c10::cuda::|ExpandableSegment|c10::CachingDeviceAllocator`), OwnerPyTorch},
	{regexp.MustCompile(`^p?nccl[A-Z]`), "NCCL"},
	{regexp.MustCompile(`^cu(da)?Graph(Instantiate|Upload|Launch|ExecUpdate)`), OwnerGraphs},
}

// byLibrary are owners that are recognised by the file of a library.
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

// between are the libraries that stand between a caller and the driver: CUDA's
// runtime, and what Python calls C by.
var between = regexp.MustCompile(`^(libcuda[.-]|libcudart|libffi|_ctypes|libpython|python3?)|^$`)

// OfCUDA reports whether a file is the driver's library or CUDA's runtime.
func OfCUDA(object string) bool { return ofCUDA.MatchString(filepath.Base(object)) }

var ofCUDA = regexp.MustCompile(`^(libcuda[.-]|libcudart)`)

// ownerOf is whose code asked the driver: of the frames the innermost that is
// neither the driver nor CUDA's runtime nor the C library.
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
	return OwnerUnknown
}

var systemLibrary = regexp.MustCompile(`^(libc[.-]|libpthread|ld-linux|libstdc\+\+|libgcc_s|libm[.-]|libdl[.-])`)
