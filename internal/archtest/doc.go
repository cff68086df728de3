// Package archtest keeps the shape of the house: which package may import which, what a
// pure core may not touch, and that every package says what it promises.
//
//	commands -> shells -> cores and adapters
//	adapters -> cores
//	cores    -> the standard library, without its clock, files, network and loggers
//
// Every directory with Go files is listed in layout.go; one that is not is a violation, so
// a new package starts with the question where it belongs. Test files are free to import
// what they need. Nested modules are other houses.
package archtest
