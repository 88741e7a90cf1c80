//go:build !linux || !(amd64 || arm64)

package pausable

var library []byte
