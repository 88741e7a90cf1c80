package api

import "strandline/host/proc/hooks"

// HookScan is the document of `strandline hooks`.
type HookScan struct {
	Schema      string       `json:"schema"`
	PID         int          `json:"pid"`
	Hooks       []Hook       `json:"hooks"`
	Breakpoints []Breakpoint `json:"breakpoints"`
	Interposed  []Interposed `json:"interposed"`
	Libraries   []Library    `json:"libraries"`
	Slots       int          `json:"slots"`
	CodePages   int          `json:"code_pages"`
	Unread      []string     `json:"unread"`
}

// Hook is one function that was redirected.
type Hook struct {
	Symbol      string          `json:"symbol"`
	Mechanism   hooks.Mechanism `json:"mechanism"`
	Object      string          `json:"object"`
	Owner       *string         `json:"owner"`
	OwnerSymbol *string         `json:"owner_symbol"`
	Effect      string          `json:"effect"`
	Library     string          `json:"library,omitempty"`
}

// Breakpoint is a trap in the code.
type Breakpoint struct {
	Function *string `json:"function"`
	Object   string  `json:"object"`
	Address  uint64  `json:"address"`
}

// Interposed is a library whose memory functions are called instead of libc's.
type Interposed struct {
	Object  string   `json:"object"`
	Symbols []string `json:"symbols"`
}

// Library is a loaded library that is known to hook or to replace functions.
type Library struct {
	Name     string   `json:"name"`
	Version  *string  `json:"version"`
	Object   string   `json:"object"`
	Detail   string   `json:"told"`
	Hooks    int      `json:"owned"`
	Leaks    *string  `json:"leaks"`
	Remedies []string `json:"remedies,omitempty"`
}
