package bpf

import (
	"os"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestLoopsAreClosedByJumps walks the programs of both machines as the verifier does
// before it simulates them. It takes a loop only if a jump leads back: clang sometimes
// lays out a loop so that its end falls through to its head, which stands in the middle
// and is entered by a jump. Kernels such as 6.1 then refuse the program.
func TestLoopsAreClosedByJumps(t *testing.T) {
	for _, name := range []string{"object/mappings.o.gz", "object/mappings_arm64.o.gz"} {
		packed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := load(packed)
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.Programs) == 0 {
			t.Errorf("%s has no programs", name)
		}
		for of, program := range spec.Programs {
			if from, to := fallsBack(program.Instructions); from >= 0 {
				t.Errorf("%s: %s: instruction %d falls through to %d, which leads to it", name, of, from, to)
			}
		}
	}
}

// fallsBack returns an instruction that is not a jump and is followed by one that it was
// reached from; -1 if there is none.
func fallsBack(program asm.Instructions) (from, to int) {
	at := map[asm.RawInstructionOffset]int{}
	starts := make([]asm.RawInstructionOffset, len(program))
	for it := program.Iterate(); it.Next(); {
		at[it.Offset], starts[it.Index] = it.Index, it.Offset
	}
	from, to = -1, -1
	entered, left := make([]bool, len(program)), make([]bool, len(program))
	var enter func(i int)
	lead := func(i, next int, jump bool) {
		switch {
		case !entered[next]:
			enter(next)
		case !left[next] && !jump:
			from, to = i, next
		}
	}
	enter = func(i int) {
		entered[i] = true
		op := program[i].OpCode
		jump := op.Class().IsJump() && op.JumpOp() != asm.Call && op.JumpOp() != asm.Exit
		if op.JumpOp() != asm.Exit && op.JumpOp() != asm.Ja {
			lead(i, i+1, jump)
		}
		if jump {
			lead(i, at[starts[i]+asm.RawInstructionOffset(program[i].Offset+1)], true)
		}
		left[i] = true
	}
	enter(0)
	return from, to
}
