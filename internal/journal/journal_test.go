package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/journal/journaltest"
)

func opened(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Subject {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := opened(t, path)
		return journaltest.Subject{Journal: j, Again: func(t *testing.T) journaltest.Journal {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return opened(t, path)
		}}
	})
}
