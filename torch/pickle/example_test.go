package pickle_test

import (
	"bytes"
	"fmt"
	"os"

	"strandline/torch/pickle"
)

// A printer is a handler that prints what it gets and keeps the texts alone.
type printer struct{ texts []string }

func (p *printer) String(b []byte) (uint64, error) {
	p.texts = append(p.texts, string(b))
	return uint64(len(p.texts) - 1), nil
}

func (p *printer) SetItems(_ uint64, pairs []pickle.Value) error {
	for i := 0; i < len(pairs); i += 2 {
		n, _ := pairs[i+1].Int64()
		fmt.Printf("%s: %d\n", p.texts[pairs[i].N], n)
	}
	return nil
}

func (p *printer) Bytes([]byte) (uint64, error)         { return 0, nil }
func (p *printer) BigInt([]byte) (uint64, error)        { return 0, nil }
func (p *printer) List() (uint64, error)                { return 0, nil }
func (p *printer) Dict() (uint64, error)                { return 0, nil }
func (p *printer) Tuple([]pickle.Value) (uint64, error) { return 0, nil }
func (p *printer) Append(uint64, []pickle.Value) error  { return nil }
func (p *printer) Salvage([]pickle.Value)               {}

func ExampleDecode() {
	var file bytes.Buffer
	e := pickle.NewEncoder(&file)
	e.Dict(1)
	e.String("total_size")
	e.Int64(2097152)
	if err := e.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	root, err := pickle.Decode(&file, &printer{})
	fmt.Println(root.Kind, err)
	// Output:
	// total_size: 2097152
	// dict <nil>
}

// A pickle that would run code is refused, not run.
func ExampleDecode_unsafe() {
	_, err := pickle.Decode(bytes.NewReader([]byte("cos\nsystem\n.")), &printer{})
	fmt.Println(err)
	// Output: at byte 0: opcode GLOBAL names or calls code; plain data never does, so nothing from there on is read
}
