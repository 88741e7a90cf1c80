//go:build !race

package live

// Raced reports that the race detector is at work.
const Raced = false
