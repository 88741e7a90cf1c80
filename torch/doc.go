// Package torch has no code of its own. The packages below it read what PyTorch recorded:
//
//   - source: pickle decodes the file, without executing it
//   - model: snapshot holds its events, segments and blocks in columns
//   - analysis: timeline (each allocation from birth to death), purpose (what it was for),
//     allocator (the caching allocator, simulated) and replay (the history sent through it),
//     digest (what is known about one file), compare (several files), tile (what the page draws)
//
// judge/snapshots judges them.
package torch
