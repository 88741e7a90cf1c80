package cli

import (
	"strings"
	"testing"
)

// TestTunnel checks that the tunnel goes to where the user's ssh got.
func TestTunnel(t *testing.T) {
	for connection, want := range map[string]string{
		"203.0.113.9 51234 198.51.100.7 22":   "198.51.100.7",
		"203.0.113.9 51234 198.51.100.7 2222": "ssh -N -p 2222 -L 8080:127.0.0.1:8080 ",
		"2001:db8::1 51234 2001:db8::7 22":    "@2001:db8::7",
		"":                                    "ssh -N -L 8080:127.0.0.1:8080 ",
		"1 2 $(reboot) 22":                    "ssh -N -L 8080:127.0.0.1:8080 ",
		"203.0.113.9 51234 198.51.100.7 -o":   "ssh -N -L 8080:127.0.0.1:8080 ",
	} {
		got := tunnel(8080, func(string) string { return connection })
		if !strings.Contains(got, want) || strings.Contains(got, "reboot") || strings.Contains(got, "-o") {
			t.Errorf("%q: %s, want %s", connection, got, want)
		}
	}
}
