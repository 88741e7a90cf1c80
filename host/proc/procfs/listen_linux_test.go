package procfs

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
)

func TestListeners(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::]:0", "0.0.0.0:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		to := c.RemoteAddr().(*net.TCPAddr).AddrPort()
		c.Close()
		if got := Listeners(to); !slices.Contains(got, Process(os.Getpid())) {
			t.Errorf("%s: %v, want %d", to, got, os.Getpid())
		}
		l.Close()
	}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	if got := Listeners(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)); slices.Contains(got, Process(os.Getpid())) {
		t.Errorf("%v listens on port %d of another address", got, port)
	}
}

// The kernel gives a connection to the socket that is bound to its address most closely.
func TestTaking(t *testing.T) {
	const v4, v6 = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0000000000000000 20 4 30 10 -1
   2: 0200007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1 0000000000000000 100 0 0 10 0
   3: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1 0000000000000000 100 0 0 10 0
`, `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 6 1 0000000000000000 100 0 0 10 0
   2: 0000000000000000FFFF00000100007F:1F41 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0000000000000000 100 0 0 10 0
   3: 00000000000000000000000000000000:1F42 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1 0000000000000000 100 0 0 10 0
`
	all := append(parseSockets([]byte(v4)), parseSockets([]byte(v6))...)
	for to, want := range map[string]string{
		"127.0.0.1:8000": "1", "127.0.0.2:8000": "3", "127.0.0.3:8000": "4", "[::ffff:127.0.0.1]:8000": "1",
		"[::1]:8000": "6", "[::2]:8000": "5", "[fe80::1%eth0]:8000": "5",
		"127.0.0.1:8001": "7", "127.0.0.1:8002": "8", "[::1]:8002": "8", "127.0.0.1:8003": "", "[::1]:8001": "",
	} {
		got := taking(all, netip.MustParseAddrPort(to))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !got[want]) {
			t.Errorf("%s: %v, want %q", to, got, want)
		}
	}
	if got := parseSockets([]byte("\xff\n\n0A\n 0: zz:1 00000000:0000 0A 0 0 0 0 0 1 2\n 0: 01:1 00000000:0000 0A 0 0 0 0 0 1 2\n")); got != nil {
		t.Errorf("of what is not a table: %v", got)
	}
}

func TestPeers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := Peers([]Process{Process(os.Getpid())}); got != nil {
		t.Errorf("a connection within the group: %v", got)
	}
}
