// Package engine reads what inference engines and trainers log about memory when they start
// and while they run. In go the lines of logs/text; out comes a [Log]: the engine and its
// version, its settings, and for each rank the sizes and the tokens that it states, with their
// lines and rounding errors. forms.go has the lines, and what to do to add one.
package engine
