//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/cilium/ebpf"

	"strandline/host/proc/procfs"
)

// ofSelf is the prefix of the names of the program and the map that find our own pid
// namespaces.
const ofSelf = "strand_self"

// firstNamespace is the pid namespace that the kernel's own numbers belong to.
const firstNamespace = "pid:[4026531836]"

// errOtherProc states that there are no process numbers that both sides know.
var errOtherProc = unsupported{errors.New("/proc is of a pid namespace in which strandline is not: in a container, mount its own (mount -t proc proc /proc), or run strandline on the host")}

// namespaces are those in which a process has a number, from the first one down.
type namespaces struct {
	Level, _ uint32
	At       [33]uint64
}

// rewriteNamespace makes the programs name processes by the numbers in /proc, as user space
// does. In a container these differ from the kernel's own. Only the kernel knows how
// deep the namespace of /proc lies, and which one it is; a program that it runs for us
// can ask.
func rewriteNamespace(spec, self *ebpf.CollectionSpec) error {
	st, err := procfs.Self()
	if err != nil || len(st.NamespacePIDs) == 0 {
		return errOtherProc
	}
	if of, _ := os.Readlink("/proc/self/ns/pid"); of == firstNamespace {
		return nil
	}
	maps.DeleteFunc(self.Maps, func(name string, _ *ebpf.MapSpec) bool { return !strings.HasPrefix(name, ofSelf) })
	self.Variables = nil
	c, err := ebpf.NewCollection(self)
	if err != nil {
		return fmt.Errorf("the kernel refuses the BPF programs: %w", plain(err))
	}
	defer c.Close()
	var own namespaces
	if _, err = c.Programs[ofSelf].Run(&ebpf.RunOptions{}); err == nil {
		err = c.Maps[ofSelf+"_namespaces"].Lookup(uint32(0), &own)
	}
	level := int(own.Level) + 1 - len(st.NamespacePIDs) // of /proc, which can belong to an outer one
	if err != nil || level < 0 || level >= len(own.At) {
		return fmt.Errorf("the pid namespace of this container is not known (%w); run strandline on the host", err)
	}
	if level == 0 {
		return nil
	}
	constants := spec.Maps[".rodata"].Contents[0].Value.([]byte)
	order.PutUint32(constants[spec.Variables["strand_level"].Offset:], uint32(level))
	order.PutUint64(constants[spec.Variables["strand_namespace"].Offset:], own.At[level])
	return nil
}
