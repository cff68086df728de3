package archtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// skeleton is what a translation has in common with its original: headings, commands without
// their comments, the first cells of tables as far as they are code, and links.
func skeleton(text string) (lines []string) {
	code := regexp.MustCompile("`[^`]+`")
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		case strings.HasPrefix(line, "    "):
			command, _, _ := strings.Cut(line, " # ")
			lines = append(lines, strings.TrimRight(command, " "))
		case strings.HasPrefix(line, "|"):
			first, _, _ := strings.Cut(line[1:], " |")
			if found := code.FindAllString(first, -1); found != nil {
				lines = append(lines, "| "+strings.Join(found, " "))
			} else {
				lines = append(lines, "|")
			}
		}
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			if m[1] != "README.md" && m[1] != "README.ja.md" {
				lines = append(lines, "-> "+m[1])
			}
		}
	}
	return lines
}

// The Japanese README says what the English one says, heading by heading and command by command.
func TestTheTranslationKeepsStep(t *testing.T) {
	if diff := cmp.Diff(skeleton(contents(t, "../../README.md")), skeleton(contents(t, "../../README.ja.md"))); diff != "" {
		t.Errorf("README.ja.md has to follow README.md (-English +Japanese):\n%s", diff)
	}
}
