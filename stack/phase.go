package stack

import (
	"slices"
	"strings"
)

// In reports whether a stack is inside a module's call or one of PyTorch's functions
// for them, such as a loss.
func InForward(frames []Frame) bool {
	for _, f := range frames {
		if f.Function == "forward" && OriginOf(f) != Torch {
			return true
		}
		if (f.Function == "_call_impl" || strings.HasSuffix(f.File, "nn/functional.py")) && OriginOf(f) == Torch {
			return true
		}
	}
	return false
}

// In reports whether a stack is inside one of PyTorch's loss functions.
func InLoss(frames []Frame) bool {
	for _, f := range frames {
		if strings.HasSuffix(f.File, "nn/functional.py") && OriginOf(f) == Torch &&
			(strings.HasSuffix(f.Function, "_loss") || strings.HasSuffix(f.Function, "cross_entropy") || f.Function == "kl_div") {
			return true
		}
	}
	return false
}

// InUpdate reports whether an optimizer's step made a stack.
func InUpdate(frames []Frame) bool {
	return slices.ContainsFunc(frames, func(f Frame) bool { return inOptim(f) && f.Function != "zero_grad" })
}

// InForeach reports whether one of PyTorch's optimizers made a stack while it updates
// all tensors at once.
func InForeach(frames []Frame) bool { return inOptimFunction(frames, "_multi_tensor_") }

// InSingle reports whether one made it while it updates one tensor after the other.
func InSingle(frames []Frame) bool { return inOptimFunction(frames, "_single_tensor_") }

func inOptimFunction(frames []Frame, prefix string) bool {
	return slices.ContainsFunc(frames, func(f Frame) bool { return inOptim(f) && strings.HasPrefix(f.Function, prefix) })
}

func inOptim(f Frame) bool { return strings.Contains(f.File, "/optim/") && OriginOf(f) == Torch }

// In reports whether a stack is of the autograd engine, recomputation of checkpoints
// included.
func InBackward(frames []Frame) bool {
	for _, f := range frames {
		switch {
		case strings.Contains(f.Function, "torch::autograd::Engine"), f.Function == "_engine_run_backward",
			f.Function == "unpack_hook" && strings.HasSuffix(f.File, "checkpoint.py"):
			return true
		}
	}
	return false
}

// WithoutGradients reports whether a stack is below @torch.no_grad() or inference_mode(). An
// optimizer's step is such a function too, but a closure that it calls, in which
// some trainers run the forward pass, switches gradients on again.
func WithoutGradients(frames []Frame) bool {
	without := false
	for _, f := range frames {
		if inOptim(f) {
			return false
		}
		without = without || f.Function == "decorate_context" && strings.HasSuffix(f.File, "_contextlib.py")
	}
	return without
}

// UpdateCaller is the frame that calls an optimizer's step, the innermost outside of
// PyTorch's optimizers; zero if the stack is in none.
func UpdateCaller(frames []Frame) Frame {
	caller, within := Frame{}, false
	for _, f := range frames {
		switch optimizer := inOptim(f) && !strings.Contains(f.File, "lr_scheduler") && !strings.Contains(f.File, "swa_utils"); {
		case optimizer && f.Function == "zero_grad":
			return Frame{}
		case optimizer:
			caller, within = f, true
		case within && OriginOf(f) == Own:
			return f
		}
	}
	return caller
}
