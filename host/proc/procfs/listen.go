package procfs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listeners returns the processes that have the TCP socket which takes connections to an
// address of this machine, lowest id first, as far as their descriptors may be read. Of
// several sockets that could take them it is the one that the kernel prefers: bound to
// that address, otherwise to all addresses of its family, otherwise to those of both. Only sockets
// of the caller's network namespace are found.
func Listeners(to netip.AddrPort) []Process {
	return holders(taking(sockets(), to))
}

// A Peer is a process that listens, and where.
type Peer struct {
	Process Process
	Address netip.AddrPort
}

// Peers returns the processes outside of a group that listen on this machine and that a
// process of the group has a connection to which it opened itself, as one that forwards
// requests does.
func Peers(group []Process) (out []Peer) {
	all := sockets()
	own := map[string]bool{}
	for _, p := range group {
		for _, inode := range descriptorsOf(int(p)) {
			own[inode] = true
		}
	}
	served := map[uint16]bool{}
	for i := range all {
		if s := &all[i]; s.listens && own[s.inode] {
			served[s.local.Port()] = true
		}
	}
	seen := map[netip.AddrPort]bool{}
	for i := range all {
		s := &all[i]
		if !s.established || !own[s.inode] || served[s.local.Port()] || seen[s.remote] {
			continue
		}
		seen[s.remote] = true
		to := taking(all, s.remote)
		if common(own, to) {
			continue
		}
		if p := holders(to); len(p) > 0 {
			out = append(out, Peer{p[0], s.remote})
		}
	}
	return out
}

// common reports whether one of some sockets is among others.
func common(others, some map[string]bool) bool {
	for inode := range some {
		if others[inode] {
			return true
		}
	}
	return false
}

// A socket is a row of a table of the kernel. IPv4 addresses in a table of IPv6 are
// written as those of IPv4.
type socket struct {
	local, remote        netip.AddrPort
	listens, established bool
	inode                string
}

// sockets are the TCP sockets of the caller's network namespace.
func sockets() (out []socket) {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if text, err := os.ReadFile(name); err == nil {
			out = append(out, parseSockets(text)...)
		}
	}
	return out
}

// parseSockets reads a table (Linux Documentation/networking/proc_net_tcp.rst), and leaves
// out what is none.
func parseSockets(table []byte) (out []socket) {
	const established, listen = "01", "0A"
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) <= 9 || f[3] != listen && f[3] != established {
			continue
		}
		local, ok := parseAddress(f[1])
		remote, okRemote := parseAddress(f[2])
		if ok && okRemote {
			out = append(out, socket{local, remote, f[3] == listen, f[3] == established, f[9]})
		}
	}
	return out
}

// parseAddress reads an address such as 0100007F:1F40: words of the processor's byte
// order, and a port.
func parseAddress(text string) (a netip.AddrPort, ok bool) {
	address, number, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(number, 16, 16)
	raw, err2 := hex.DecodeString(address)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return a, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), ok
}

// taking returns the inodes of the sockets that take connections to an address.
func taking(all []socket, to netip.AddrPort) map[string]bool {
	ip := to.Addr().Unmap().WithZone("")
	bound := []netip.Addr{ip, netip.IPv6Unspecified()}
	if ip.Is4() {
		bound = []netip.Addr{ip, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	for _, address := range bound {
		inodes := map[string]bool{}
		for i := range all {
			if s := &all[i]; s.listens && s.local == netip.AddrPortFrom(address, to.Port()) {
				inodes[s.inode] = true
			}
		}
		if len(inodes) > 0 {
			return inodes
		}
	}
	return nil
}

// holders returns the processes that have one of some sockets open.
func holders(inodes map[string]bool) (out []Process) {
	if len(inodes) == 0 {
		return nil
	}
	for _, p := range Processes() {
		if slices.ContainsFunc(descriptorsOf(int(p)), func(inode string) bool { return inodes[inode] }) {
			out = append(out, p)
		}
	}
	return out
}

// descriptorsOf are the inodes of the sockets that a process has open.
func descriptorsOf(pid int) (inodes []string) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(folder, e.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}
