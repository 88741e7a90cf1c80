//go:build !unix

package record

import "os"

var passed = []os.Signal{os.Interrupt}

var ignored []os.Signal // not known here

func sentToAll(os.Signal) bool { return true }

// SignalNamed returns the signal of that name, or nil: here there are none to send.
func SignalNamed(string) os.Signal { return nil }
