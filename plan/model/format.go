package model

import (
	"fmt"
	"strings"
)

// Format is how the numbers of a tensor are stored. The metadata that a
// quantization adds (scales, zero points, indices) counts as part of the tensor.
type Format struct {
	Name string
	Bits float64 // of one number, without metadata
	// groupOut and groupIn are the rows and columns that share a scale; 0 means all of
	// them.
	groupOut, groupIn int64
	scaleBytes        float64 // of one group
	zeroBits          float64 // of one group
	perTensor         int64   // further bytes of a tensor
	perIn             int64   // further bytes of an input column, as GPTQ's g_idx
	parts             int64   // tensors in a file that one weight becomes; 0 means 1
}

// The formats that are not quantized.
var (
	bf16 = Format{Name: "bf16", Bits: 16}
	fp32 = Format{Name: "fp32", Bits: 32}
	i64  = Format{Name: "int64", Bits: 64}
)

// Bytes returns what a matrix of out rows and in columns takes.
func (f Format) Bytes(out, in int64) int64 {
	n := int64(float64(out) * float64(in) * f.Bits / 8)
	if f.scaleBytes > 0 || f.zeroBits > 0 {
		groups := ceil(out, orAll(f.groupOut, out)) * ceil(in, orAll(f.groupIn, in))
		n += int64(float64(groups) * (f.scaleBytes + f.zeroBits/8))
	}
	return n + f.perTensor + f.perIn*in
}

// Group is how many rows and columns share a scale, 1 where each has its own; 0 means all of
// them, or that the format has no scales.
func (f Format) Group() (rows, columns int64) { return f.groupOut, f.groupIn }

func orAll(group, all int64) int64 {
	if group == 0 {
		return max(all, 1)
	}
	return group
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// Named formats. Sources: the layouts that GPTQ, AWQ, bitsandbytes,
// compressed-tensors, the OCP microscaling formats and NVIDIA ModelOpt write.
func blockFP8(out, in int64) Format {
	return Format{Name: "fp8-block", Bits: 8, groupOut: out, groupIn: in, scaleBytes: 4, parts: 2}
}

// tensorFP8 has a scale in fp32 for all of a tensor; that of its inputs, where it is
// static, is one more.
func tensorFP8() Format { return Format{Name: "fp8", Bits: 8, perTensor: 4, parts: 2} }

func channel8(name string) Format {
	return Format{Name: name, Bits: 8, groupOut: 1, scaleBytes: 4, parts: 2}
}

func gptq(bits float64, group int64, index bool) Format {
	f := Format{Name: fmt.Sprintf("gptq-int%g", bits), Bits: bits, groupOut: 1, groupIn: group, scaleBytes: 2, zeroBits: bits, parts: 3}
	if index {
		f.perIn, f.parts = 4, 4
	}
	return f
}

func awq(bits float64, group int64) Format {
	f := gptq(bits, group, false)
	f.Name = fmt.Sprintf("awq-int%g", bits)
	return f
}

// packed is compressed-tensors' pack-quantized form: symmetric, 16-bit scales and
// the shape as two int64.
func packed(bits float64, group int64) Format {
	return Format{Name: fmt.Sprintf("int%g", bits), Bits: bits, groupOut: 1, groupIn: group, scaleBytes: 2, perTensor: 16, parts: 3}
}

// nf4 is bitsandbytes' 4-bit form with blocks of 64: a fp32 scale for each, or with
// double quantization one byte, and one fp32 for 256 of those; a table of the 16 values,
// with double quantization one of 256 more, and some words of JSON.
func nf4(double bool) Format {
	const table, nested, state = 16 * 4, 256 * 4, 90
	f := Format{Name: "nf4", Bits: 4 + 32.0/64, perTensor: table + state, parts: 4}
	if double {
		f.Bits, f.perTensor, f.parts = 4+8.0/64+32.0/(64*256), table+nested+state, 6
	}
	return f
}

func mxfp4() Format {
	return Format{Name: "mxfp4", Bits: 4, groupOut: 1, groupIn: 32, scaleBytes: 1, parts: 2}
}

func mxfp8() Format {
	return Format{Name: "mxfp8", Bits: 8, groupOut: 1, groupIn: 32, scaleBytes: 1, parts: 2}
}

// nvfp4 has a scale in fp8 for 16 weights, and two in fp32: of the tensor and of its
// inputs.
func nvfp4() Format {
	return Format{Name: "nvfp4", Bits: 4, groupOut: 1, groupIn: 16, scaleBytes: 1, perTensor: 8, parts: 4}
}

// affine has a scale and an offset in 16 bits for each group: MLX, HQQ and torchao.
func affine(maker string, bits float64, group int64) Format {
	return Format{Name: fmt.Sprintf("%s-int%g", maker, bits), Bits: bits, groupOut: 1, groupIn: group, scaleBytes: 4, parts: 3}
}

// ggufBits are the bits a weight of llama.cpp's formats, by name, metadata
// included. Source: the block layouts of ggml-common.h.
var ggufBits = map[string]float64{
	"F32": 32, "F16": 16, "BF16": 16, "Q8_0": 8.5, "Q6_K": 6.5625, "Q5_K": 5.5, "Q5_0": 5.5, "Q5_1": 6, "Q4_K": 4.5,
	"Q4_0": 4.5, "Q4_1": 5, "IQ4_XS": 4.25, "IQ4_NL": 4.5, "Q3_K": 3.4375, "IQ3_S": 3.4375, "IQ3_XXS": 3.0625, "Q2_K": 2.625,
	"IQ2_S": 2.5625, "IQ2_XS": 2.3125, "IQ2_XXS": 2.0625, "IQ1_M": 1.75, "IQ1_S": 1.5625, "MXFP4": 4.25,
	"TQ1_0": 1.6875, "TQ2_0": 2.0625, "NVFP4": 4.5,
}

// ggufMixtures are the bits a weight of whole files, by the name of their mixture.
// Source: llama.cpp, tools/quantize/README.md, the table of Llama-3.1-8B.
var ggufMixtures = map[string]float64{
	"iq1_s": 2.0, "iq1_m": 2.15, "iq2_xxs": 2.38, "iq2_xs": 2.59, "iq2_s": 2.74, "iq2_m": 2.93, "iq3_xxs": 3.25, "iq3_xs": 3.5, "iq3_s": 3.66, "iq3_m": 3.76,
	"iq4_xs": 4.46, "iq4_nl": 4.68, "q2_k_s": 2.97, "q2_k": 3.16, "q3_k_s": 3.64, "q3_k_m": 4.0, "q3_k_l": 4.3, "q4_0": 4.66, "q4_1": 5.13, "q4_k_s": 4.67, "q4_k_m": 4.89,
	"q5_0": 5.57, "q5_1": 6.04, "q5_k_s": 5.57, "q5_k_m": 5.7, "q6_k": 6.56, "q8_0": 8.5, "tq1_0": 2.0, "tq2_0": 2.35,
	// Unsloth's, which keep some tensors wider.
	"q2_k_xl": 3.3, "q3_k_xl": 4.15, "q4_k_xl": 4.97, "q5_k_xl": 5.72, "q6_k_xl": 7.3, "q8_k_xl": 10.1,
}

// mixtureBits are the bits a weight of a GGUF file by the name of its mixture, which "ud-" of
// Unsloth may precede; 0 if it is not known.
func mixtureBits(name string) float64 {
	return ggufMixtures[strings.TrimPrefix(strings.ToLower(name), "ud-")]
}
