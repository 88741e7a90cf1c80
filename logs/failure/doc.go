// Package failure finds who states in a text that memory ran out, or that a process was
// killed. In go the lines of logs/text; out come the last statement of each family of programs
// with its kind and figures ([Failure], by a [Finder]), the messages of PyTorch's allocators
// ([OOM], by an [OOMReader]), and hints at the programs that wrote the text.
//
// families.go lists the families: each is a table of wordings in a file family_*.go.
package failure
