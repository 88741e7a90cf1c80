// Package shell writes commands for people to paste into a shell.
package shell

import "strings"

// Line is a command as it is typed.
func Line(command ...string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = Word(word)
	}
	return strings.Join(words, " ")
}

// Word is a word as it is typed: quoted, where the shell would change it.
func Word(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\r\n'\"$&|;<>()*?`\\#[]{}~!") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// File is the name of a file as it is typed: a [Word] that no program takes for a flag, and
// strandline for no standard input either.
func File(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return Word(name)
}
