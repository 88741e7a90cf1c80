package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/sorts"
)

// maxHeader is the longest header of a safetensors file, as the format's own
// reader has it.
const maxHeader = 100 << 20

// ReadSafetensors reads the header of a safetensors file: the tensors in the
// order in which they are in the file. The numbers themselves are not read.
func ReadSafetensors(r io.Reader) ([]Stored, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("the safetensors header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader {
		return nil, fmt.Errorf("the safetensors header has %d bytes; more than %d are not allowed", n, maxHeader)
	}
	// A header that is not there is found before memory for it is taken.
	var header bytes.Buffer
	if got, err := io.CopyN(&header, r, int64(n)); err != nil {
		return nil, fmt.Errorf("the safetensors header ends after %d of %d bytes", got, n)
	}
	return safetensorsHeader(header.Bytes())
}

func safetensorsHeader(data []byte) ([]Stored, error) {
	if err := budget.Of(int64(len(data)), budget.Packed).Spend(budget.JSON(data), "tensors"); err != nil {
		return nil, fmt.Errorf("the safetensors header: %w", err)
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("the safetensors header is not a JSON object: %w", err)
	}
	type placed struct {
		Stored
		at int64
	}
	var list []placed
	for name, raw := range entries {
		if name == "__metadata__" {
			continue
		}
		var e struct {
			Type    string  `json:"dtype"`
			Shape   []int64 `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", shown(name), err)
		}
		if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
			return nil, fmt.Errorf("tensor %s: data_offsets %s are not a range", shown(name), shown(e.Offsets))
		}
		if err := sensible(e.Shape); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", shown(name), err)
		}
		size := e.Offsets[1] - e.Offsets[0]
		if bits := typeBits[e.Type]; bits > 0 && product(e.Shape)*bits != size*8 {
			return nil, fmt.Errorf("tensor %s: shape %s of %s is not the %d bytes that data_offsets say", shown(name), shown(e.Shape), e.Type, size)
		}
		list = append(list, placed{Stored{name, e.Type, e.Shape, size}, e.Offsets[0]})
	}
	sorts.By(list, func(a, b placed) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := make([]Stored, len(list))
	for i := range list {
		out[i] = list[i].Stored
	}
	return out, nil
}

// typeBits are the bits of a number by safetensors' names.
var typeBits = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64,
}

// sensible refuses shapes whose product no model has.
func sensible(shape []int64) error {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxParameters/d {
			return fmt.Errorf("shape %s is not a size that a tensor can have", shown(shape))
		}
		n *= d
	}
	return nil
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
