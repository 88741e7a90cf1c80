// Package text reads the lines of a log, whoever wrote and copied it. In goes any text: in
// one, two or four bytes a character, with the escapes of terminals and pages, as one string,
// list or records of JSON, behind the prefixes of launchers, wrapped at a width. Out come
// plain lines with their numbers and the words in them, at some hundred megabytes a second:
// [Each] is the only loop over lines, and has several readers read a text in one pass.
package text
