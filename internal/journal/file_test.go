package journal

import (
	"errors"
	"flag"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

var update = flag.Bool("update", false, "write testdata/v1.db anew; never after version 1 was released")

const version1File = "testdata/v1.db"

var (
	start  = time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	key    = capture.Key{Pool: "blue", Address: netip.MustParseAddr("10.0.0.1"), Domain: "provider:c:placement:g"}
	target = capture.Target{Provider: "aws", ProviderRef: "c", NIC: "eni-a"}
)

func opened(t testing.TB, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func assign(e capture.Epoch) capture.Action {
	return capture.Action{Token: capture.Token{Verb: capture.Assign, Key: key, Epoch: e, Holder: "a"}, Target: target, State: capture.Pending}
}

// fill leaves something of every kind in a journal: a success, a skipped row, one that fails,
// a release that is due.
func fill(t testing.TB, j *Journal) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, now := t.Context(), start
	end := func(a capture.Action, e Ending) {
		t.Helper()
		_, err := j.Apply(ctx, &capture.Plan{Imports: []capture.Action{a}, Admits: []capture.Action{a}}, now)
		must(err)
		begun, _, err := j.Begin(ctx, a.ID(), now, now.Add(time.Minute))
		must(err)
		_, err = j.End(ctx, begun, e, now)
		must(err)
	}
	must(j.Note(ctx, map[capture.Key]capture.Claim{key: {Epoch: 1, Holder: "a"}}))
	end(assign(1), Ending{State: capture.Succeeded, Answered: true})
	must(j.Note(ctx, map[capture.Key]capture.Claim{key: {Epoch: 3, Holder: "a"}}))
	end(assign(3), Ending{State: capture.Skipped, Unasked: true, Reason: "stale"})
	must(j.Note(ctx, map[capture.Key]capture.Claim{key: {Epoch: 400, Holder: "b"}}))
	release := assign(400)
	release.Verb = capture.Unassign
	mark := capture.Mark{Marker: capture.Marker{Token: release.Token, Target: target}, Action: release}
	_, err := j.Apply(ctx, &capture.Plan{Marks: []capture.Mark{mark}}, now)
	must(err)
	end(release, Ending{State: capture.Failed, Code: "Limit", Reason: "full", NotBefore: now.Add(time.Hour), Answered: true})
}

func TestTwoAgentsCannotShareAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link} {
		if _, err := Open(p); err == nil || !strings.Contains(err.Error(), path+" is in use: give every agent a path of its own") {
			t.Errorf("opened twice, as %s: %v", p, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, link)
}

func TestNobodyElseReadsAJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	fill(t, opened(t, filepath.Join(dir, "journal.db")))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 4 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, %v", f.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the directory has mode %s, %v", info.Mode(), err)
	}
}

// copied is a copy of the file that version 1 has written.
func copied(t testing.TB) string {
	t.Helper()
	bytes, err := os.ReadFile(version1File)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What version 1 has written is there in every later version.
func TestAJournalOfVersion1IsRead(t *testing.T) {
	if *update {
		_ = os.Remove(version1File)
		j := opened(t, version1File)
		fill(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(version1File + ".lock")
	}
	fresh := opened(t, filepath.Join(t.TempDir(), "fresh.db"))
	fill(t, fresh)
	want, err := fresh.Load(t.Context())
	if err != nil || len(want.Actions) != 3 || len(want.Markers) != 1 {
		t.Fatalf("a fresh journal has %+v, %v", want, err)
	}
	got, err := opened(t, copied(t)).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(capture.Key{}, capture.Claim{})); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

// The next version takes its steps from there, and this one then refuses the file.
func TestAJournalIsBroughtUpToDate(t *testing.T) {
	path, next := copied(t), kind
	next.Schema = append(next.Schema[:len(next.Schema):len(next.Schema)], `ALTER TABLE actions ADD COLUMN remark TEXT NOT NULL DEFAULT 'none';`)
	f, err := sqlitefile.Open(t.Context(), path, next)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	err = f.Read(t.Context(), func(tx *sqlitefile.Tx) error {
		return tx.Row(`SELECT count(*) FROM actions WHERE remark = 'none'`, nil, &n)
	})
	if err != nil || n != 3 {
		t.Errorf("%d actions have a remark, %v", n, err)
	}
	_ = f.Close()
	if _, err := Open(path); !errors.Is(err, sqlitefile.ErrNewer) {
		t.Errorf("a journal of a newer build: %v", err)
	}
	opened(t, copied(t)) // and its lock was given back
}

// The file was cut off while it was copied, or bits have changed: nobody guesses (c23).
func TestADamagedJournalIsRefused(t *testing.T) {
	for name, harm := range map[string]func(b []byte) []byte{
		"truncated":       func(b []byte) []byte { return b[:len(b)/2] },
		"empty":           func([]byte) []byte { return nil },
		"a lower epoch":   func(b []byte) []byte { return replace(t, b, "placement:g\x01\x90b", "placement:g\x00\x03b") },
		"another address": func(b []byte) []byte { return replace(t, b, "10.0.0.1provider", "10.0.0.2provider") },
		"another state":   func(b []byte) []byte { return replace(t, b, "succeeded", "successed") },
	} {
		t.Run(name, func(t *testing.T) {
			path := copied(t)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, harm(b), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := Open(path)
			if err == nil {
				_ = j.Close()
			}
			if !errors.Is(err, sqlitefile.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "compare its NICs with what it holds") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A row that was made to say something else in all its places still does not fit its name.
func TestAnActionThatIsNotWhatItsNameSaysIsNotRead(t *testing.T) {
	path := copied(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, replace(t, b, "assign-secondary-ip:10.0.0.1:epoch:1", "assign-secondary-ip:10.0.0.1:epoch:2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(t, path).Load(t.Context()); !errors.Is(err, sqlitefile.ErrDamaged) || !strings.Contains(err.Error(), "has what belongs to") {
		t.Errorf("error %v", err)
	}
}

func replace(t *testing.T, b []byte, old, new string) []byte {
	t.Helper()
	s := string(b)
	if !strings.Contains(s, old) {
		t.Fatalf("the file has no %q", old)
	}
	return []byte(strings.ReplaceAll(s, old, new))
}

// Whatever the code does, the schema lets no epoch fall and nothing that is over begin.
func TestTheSchemaRefusesWhatMustNeverBe(t *testing.T) {
	j := opened(t, filepath.Join(t.TempDir(), "journal.db"))
	fill(t, j)
	before, err := j.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const line = `, line = pool || '/' || address || '@' || domain || ' ' || holder || ' ' || epoch - 1`
	for _, statement := range []string{
		`UPDATE known SET epoch = epoch - 1` + line,
		`UPDATE known SET holder = 'z'`,
		`UPDATE known SET epoch = epoch + 1`, // and the line does not say so
		`UPDATE known SET pool = 'red', epoch = epoch + 1`,
		`DELETE FROM known`,
		`INSERT OR REPLACE INTO known SELECT pool, address, domain, 1, holder, pool || '/' || address || '@' || domain || ' ' || holder || ' 1' FROM known`,
		`UPDATE actions SET state = 'pending' WHERE state = 'succeeded'`,
		`UPDATE actions SET state = 'failed' WHERE state = 'succeeded'`,
		`UPDATE actions SET state = 'succeeded', reason = 'x' WHERE state = 'succeeded'`,
		`UPDATE actions SET state = 'approved' WHERE state = 'skipped'`,
		`UPDATE actions SET state = 'rolledBack' WHERE state = 'skipped'`,
		`UPDATE actions SET state = 'succeeded', not_before = '' WHERE state = 'failed'`,
		`UPDATE actions SET state = 'running', not_before = '' WHERE state = 'failed'`, // without a deadline
		`UPDATE actions SET state = 'done' WHERE state = 'failed'`,
		`UPDATE actions SET epoch = 9`,
		`UPDATE actions SET unanswered = attempts + 1 WHERE state = 'failed'`,
		`DELETE FROM actions`,
		`INSERT OR REPLACE INTO actions SELECT * FROM actions WHERE state = 'succeeded'`,
		`INSERT INTO actions SELECT id || 'x', verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, reassign, repair, undoes,
			state, attempts, unanswered, not_before, deadline, reason, code, approver, superseded, created, updated, written + 100 FROM actions`,
		`UPDATE events SET detail = ''`,
		`DELETE FROM events`,
	} {
		err := j.write(t.Context(), func(tx *tx) error {
			_, err := tx.Exec(statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "constraint failed") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	after, err := j.Load(t.Context())
	if diff := cmp.Diff(before, after, cmpopts.EquateComparable(capture.Key{}, capture.Claim{})); diff != "" || err != nil {
		t.Errorf("contents, %v (-before +after):\n%s", err, diff)
	}
	// To take back is the one way on.
	err = j.write(t.Context(), func(tx *tx) error {
		n, err := tx.Exec(`UPDATE actions SET state = 'rolledBack' WHERE state = 'succeeded'`)
		if err == nil && n != 1 {
			t.Errorf("%d rows were taken back", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Unchanged input means no write (I10).
func TestWhatIsKnownIsNotWrittenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	fill(t, j)
	c, err := j.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	for range 3 {
		if err := j.Note(t.Context(), c.Known); err != nil {
			t.Fatal(err)
		}
		plan := capture.Plan{Admits: c.Actions, Resumes: c.Actions}
		for _, m := range c.Markers {
			plan.Marks = append(plan.Marks, capture.Mark{Marker: m, Action: capture.Action{Token: m.Token, Target: m.Target, State: capture.Pending}})
		}
		if r, err := j.Apply(t.Context(), &plan, start); err != nil || len(r.Actions)+len(r.Marked) > 0 {
			t.Fatalf("receipt %+v, %v", r, err)
		}
	}
	if after := size(); after != before {
		t.Errorf("the -wal grows from %d to %d bytes", before, after)
	}
}

// A backup that is put in place under a running agent is not written to.
func TestAJournalThatIsReplacedIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := opened(t, path)
	if err := os.Rename(copied(t), path); err != nil {
		t.Fatal(err)
	}
	if err := j.Note(t.Context(), map[capture.Key]capture.Claim{key: {Epoch: 9, Holder: "a"}}); !errors.Is(err, sqlitefile.ErrReplaced) {
		t.Errorf("error %v", err)
	}
	if _, err := j.Load(t.Context()); !errors.Is(err, sqlitefile.ErrReplaced) {
		t.Errorf("error %v", err)
	}
}
