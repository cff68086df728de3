// Package sqlitefile opens the SQLite files in which an agent keeps what it must not lose.
//
// It promises: a file is at its path as a whole or not at all; what is committed is durable;
// nobody but its owner reads it; it is brought to the newest schema step by step; and one that
// is damaged, somebody else's or of a newer build is refused, unchanged, with its path and the
// way out. It knows nothing of what is in the file.
package sqlitefile
