package agent

import (
	"fmt"
	"strings"
)

// suggestWord says what to write instead of a word that is unknown.
func suggestWord(word string, known configWords) string {
	for _, k := range known {
		if nearWord(foldWord.Replace(strings.ToLower(word)), strings.ToLower(k)) {
			return fmt.Sprintf("did you mean %s?", k)
		}
	}
	if len(known) == 1 {
		return "write " + known[0]
	}
	return fmt.Sprintf("write one of %s", known)
}

var foldWord = strings.NewReplacer("_", "", "-", "")

// nearWord reports words of which one turns into the other by at most two letters changed, added
// or taken away, and fewer than half of them.
func nearWord(a, b string) bool {
	b = foldWord.Replace(b)
	most := min(2, (len(b)-1)/2)
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return false
	}
	// row[j] is the distance between the letters of a so far and the first j of b.
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)] <= most
}
