package procfs

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestListeners(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		if got := Listeners(port); !slices.Contains(got, Process(os.Getpid())) {
			t.Errorf("%s: %v, want %d", l.Addr(), got, os.Getpid())
		}
		l.Close()
	}
	if got := Listeners(1); slices.Contains(got, Process(os.Getpid())) {
		t.Errorf("%v listens on port 1", got)
	}
}

func TestListening(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 123456 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 123457 1 0000000000000000 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 100 0 0 10 0
`
	if got := listening([]byte(table), 8000); !slices.Equal(got, []string{"123456"}) {
		t.Errorf("%v", got)
	}
	if got := listening([]byte("\xff\n\n0A"), 8000); got != nil {
		t.Errorf("of what is not a table: %v", got)
	}
}
