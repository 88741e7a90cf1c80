package live

import (
	"net"
	"testing"
)

// Answer binds a name of Linux's abstract namespace, such as "strandline/4242", and answers each
// connection, which it closes then.
func Answer(t *testing.T, name string, answer func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return l
}
