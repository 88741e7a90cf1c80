// Package soakserver is a small server that speaks the API of OpenAI, for tests: how its
// memory behaves is known, and so is how it fails. It runs as a process of its own,
// which is the test's program once more.
package soakserver
