package lab

import (
	"io"
	"os"
	"strings"
)

const shownLines = 20

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// lastLines reads the last lines of a log without reading the log; an unreadable log has none.
func lastLines(path string, n int) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const window = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > window {
		_, _ = f.Seek(-window, io.SeekEnd)
	}
	text, err := io.ReadAll(f)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(tail(string(text), n), "\n")
}
