package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	failedRule = regexp.MustCompile(`^"\w+": (.+) evaluating rule: (.+)$`)
	inDays     = regexp.MustCompile(`^([0-9]{1,5})\s?(d|days?|w|weeks?)$`)
)

// worded is what the API server says of a value, which is nil for what is not there: with the value where it
// shows the type instead, as a rule that fails makes it, and with the hours of one in days.
func worded(said string, value any) string {
	said = strings.TrimPrefix(said, "Invalid value: ")
	if m := failedRule.FindStringSubmatch(said); m != nil && value != nil {
		said = fmt.Sprintf("%q: %s: %s", fmt.Sprint(value), m[1], m[2])
	}
	if m := inDays.FindStringSubmatch(text(value)); m != nil && strings.HasPrefix(said, strconv.Quote(text(value))) {
		n, _ := strconv.Atoi(m[1])
		hours := 24 * n
		if m[2][0] == 'w' {
			hours *= 7
		}
		said += fmt.Sprintf("; no unit is longer than the hour: %s is %dh", m[0], hours)
	}
	return said
}

// valueAt is what a path of an object leads to, nil if nothing is there.
func valueAt(object any, path string) any {
	for _, step := range pathStep.FindAllString(path, -1) {
		step = strings.Trim(step, "[]")
		switch of := object.(type) {
		case map[string]any:
			object = of[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(of) {
				return nil
			}
			object = of[i]
		default:
			return nil
		}
	}
	return object
}

// noObject says of a value what it is instead of a Kubernetes object.
func noObject(value any) string {
	what := fmt.Sprintf("the value %v", value)
	switch of := value.(type) {
	case []any:
		what = fmt.Sprintf("a list of %d", len(of))
	case string:
		what = fmt.Sprintf("the text %.40q", of)
	}
	return fmt.Sprintf("this is not a Kubernetes object, but %s: it has neither apiVersion nor kind: leave the file out", what)
}
