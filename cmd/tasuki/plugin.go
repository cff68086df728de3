package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// called is what people call this program; main sets it before anything else.
var called = "tasuki"

// calledBy tells it from the name of the file: kubectl finds its plugins by theirs.
func calledBy(path string) string {
	if name := strings.TrimSuffix(filepath.Base(path), ".exe"); name == "kubectl-tasuki" {
		return "kubectl tasuki"
	}
	return "tasuki"
}

var commandLine = regexp.MustCompile(`\b(kubectl )?tasuki ([a-z]+)\b`)

// asCalled writes the command lines in a text so that they can be typed.
func asCalled(root *cobra.Command, text string) string {
	return commandLine.ReplaceAllStringFunc(text, func(line string) string {
		verb := line[strings.LastIndex(line, " ")+1:]
		if c, _, err := root.Find([]string{verb}); err != nil || c == root {
			return line
		}
		return called + " " + verb
	})
}

// speak does so in the help of a command and of those below it.
func speak(root, cmd *cobra.Command) {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = asCalled(root, *text)
	}
	for _, c := range cmd.Commands() {
		speak(root, c)
	}
}
