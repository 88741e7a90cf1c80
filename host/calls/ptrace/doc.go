// Package ptrace sees the system calls of a command that it starts if BPF is not
// available: a seccomp filter stops the command at the calls that change its mappings,
// and at no others. Each such call costs tens of microseconds. The command and its
// children end when the tracer does, and programs that would run as another user do
// not.
package ptrace
