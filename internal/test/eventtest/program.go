//go:build linux

package eventtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// role is the argument that turns a test's binary into the program.
const role = "be-the-program-of-eventtest"

const (
	page      = 4096
	size      = 77 * page // the Go runtime maps nothing of these sizes
	keptSize  = 91 * page
	anonymous = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
)

// Main becomes the program if this process was started as it. A package's TestMain
// calls it first.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != role {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		switch in.Text() {
		case "all":
			callAll()
			fmt.Println("done")
		case "keep":
			fmt.Println(call(unix.SYS_MMAP, 0, keptSize, 3, anonymous, ^uintptr(0)))
		case "child":
			c := exec.Command("/bin/true")
			if err := c.Run(); err != nil {
				panic(err)
			}
			fmt.Println(c.Process.Pid)
		}
	}
	os.Exit(0)
}

// callAll makes each call that changes mappings.
func callAll() {
	p := call(unix.SYS_MMAP, 0, size, 3, anonymous, ^uintptr(0))
	p = call(unix.SYS_MREMAP, p, size, 2*size, unix.MREMAP_MAYMOVE)
	call(unix.SYS_MPROTECT, p, page, 0)
	call(unix.SYS_MADVISE, p+page, page, unix.MADV_DONTNEED)
	call(unix.SYS_MUNMAP, p, page)
	call(unix.SYS_BRK, call(unix.SYS_BRK, 0)+size)
	f := call(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(unsafe.StringData("x\x00"))), 0)
	call(unix.SYS_FTRUNCATE, f, size)
	m := call(unix.SYS_SHMGET, 0, size, unix.IPC_CREAT|0o600)
	at := call(unix.SYS_SHMAT, m)
	call(unix.SYS_SHMCTL, m, unix.IPC_RMID)
	call(unix.SYS_SHMDT, at)
}

func call(number uintptr, a ...uintptr) uintptr {
	a = append(a, 0, 0, 0, 0, 0, 0)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		panic(errno)
	}
	return r
}

// Launch starts a command by itself, for sources that watch processes that are already
// running.
func Launch(t testing.TB, command []string) *Program {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return &Program{PID: c.Process.Pid, In: in, Out: bufio.NewReader(out)}
}
