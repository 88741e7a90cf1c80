package live

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// A Thread is a thread at one moment.
type Thread struct {
	Registers syscall.PtraceRegs
	Stack     []byte // from the stack pointer up
}

// Catch stops a thread for a moment and copies its registers and the top of its
// stack, size bytes or as much as there is. It skips the test where that is not
// allowed.
func Catch(t testing.TB, pid, tid, size int) *Thread {
	t.Helper()
	Waits(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	Need(t, "ptrace", syscall.PtraceAttach(tid))
	defer syscall.PtraceDetach(tid)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tid, &status, 0x40000000 /* __WALL */, nil); err != nil {
		t.Fatal(err)
	}
	out := &Thread{}
	if err := syscall.PtraceGetRegs(tid, &out.Registers); err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	const page = 4096
	for at := int64(out.Registers.Rsp); len(out.Stack) < size; {
		b := make([]byte, page-at%page)
		if n, err := mem.ReadAt(b, at); err != nil || n < len(b) {
			break
		}
		out.Stack = append(out.Stack, b...)
		at += int64(len(b))
	}
	return out
}
