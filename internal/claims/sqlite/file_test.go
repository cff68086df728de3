package sqlite

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

var update = flag.Bool("update", false, "write testdata/v1.db anew; never after version 1 was released")

const version1File = "testdata/v1.db"

var key = capture.Key{Pool: "blue", Address: netip.MustParseAddr("10.0.0.1"), Domain: "provider:c:placement:g"}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func moves(t testing.TB, s *Store, from, to capture.Claim) {
	t.Helper()
	done, err := s.Bump(t.Context(), []capture.Bump{{Key: key, From: from, To: to, Why: capture.CauseHolder}})
	if must(t, err); !done[0] {
		t.Fatalf("the bump from %s to %s was not done", from, to)
	}
}

// fill leaves something of every kind in a store.
func fill(t testing.TB, s *Store) {
	t.Helper()
	moves(t, s, capture.Claim{}, capture.Claim{Epoch: 1, Holder: "a"})
	moves(t, s, capture.Claim{Epoch: 1, Holder: "a"}, capture.Claim{Epoch: 400, Holder: "b"})
	_, err := s.Own(t.Context(), capture.Home{Pool: "blue", Addr: key.Address}, capture.Location{Node: "n1", Site: "tokyo"})
	must(t, err)
	must(t, s.Drain(t.Context(), "c", true))
	_, err = s.Renew(t.Context(), "a", time.Minute)
	must(t, err)
}

var filled = claims.Changes{
	Reset: true, Claims: map[capture.Key]capture.Claim{key: {Epoch: 400, Holder: "b"}},
	Leases:  []claims.AddressLease{{Home: capture.Home{Pool: "blue", Addr: key.Address}, Owner: capture.Location{Node: "n1", Site: "tokyo"}, Epoch: 1}},
	Drained: []string{"c"}, Alive: []string{"a"},
}

func everything(t testing.TB, s *Store) claims.Changes {
	t.Helper()
	c, err := s.Changes(t.Context(), claims.Revision{})
	must(t, err)
	return c
}

// says compares everything that is in a store with what should be.
func says(t testing.TB, s *Store, want claims.Changes) {
	t.Helper()
	got := everything(t, s)
	got.Revision = claims.Revision{}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(capture.Key{}, capture.Claim{}, claims.AddressLease{})); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// copied is a copy of the file that version 1 has written.
func copied(t testing.TB) string {
	t.Helper()
	bytes, err := os.ReadFile(version1File)
	must(t, err)
	path := filepath.Join(t.TempDir(), "claims.db")
	must(t, os.WriteFile(path, bytes, 0o600))
	return path
}

// What version 1 has written is there in every later version.
func TestAStoreOfVersion1IsRead(t *testing.T) {
	if *update {
		_ = os.Remove(version1File)
		s := opened(t, version1File, newClock())
		fill(t, s)
		must(t, s.Close())
	}
	says(t, opened(t, copied(t), newClock()), filled)
}

// The next version takes its steps from there, and this one then refuses the file.
func TestAStoreIsBroughtUpToDate(t *testing.T) {
	path, next := copied(t), kind
	next.Schema = append(slices.Clone(next.Schema), `ALTER TABLE drains ADD COLUMN who TEXT NOT NULL DEFAULT 'nobody';`)
	f, err := sqlitefile.Open(t.Context(), path, next)
	must(t, err)
	var who string
	must(t, f.Read(t.Context(), func(tx *sqlitefile.Tx) error { return tx.Row(`SELECT who FROM drains`, nil, &who) }))
	if who != "nobody" {
		t.Errorf("drained by %q", who)
	}
	must(t, f.Close())
	if _, err := Open(path); !errors.Is(err, sqlitefile.ErrNewer) {
		t.Errorf("a store of a newer build: %v", err)
	}
}

// Nobody guesses an epoch from a file that is not whole; the journals know how to go on.
func TestADamagedStoreIsRefused(t *testing.T) {
	for name, harm := range map[string]func(string) string{
		"truncated":     func(s string) string { return s[:len(s)/2] },
		"empty":         func(string) string { return "" },
		"a lower epoch": func(s string) string { return strings.ReplaceAll(s, "placement:g\x01\x90b", "placement:g\x00\x03b") },
		"another site":  func(s string) string { return strings.ReplaceAll(s, "n1tokyo", "n1osaka") },
		"a journal":     func(s string) string { return strings.Replace(s, "tskC", "tskJ", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			path := copied(t)
			b, err := os.ReadFile(path)
			must(t, err)
			harmed := harm(string(b))
			if harmed == string(b) {
				t.Fatal("nothing was harmed")
			}
			must(t, os.WriteFile(path, []byte(harmed), 0o600))
			want, way := sqlitefile.ErrDamaged, "they take every epoch up above what their journals know"
			if name == "a journal" {
				want, way = sqlitefile.ErrForeign, "give the agent another path"
			}
			if _, err := Open(path); !errors.Is(err, want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), way) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Whatever the code does, the schema lets no epoch fall or go.
func TestTheSchemaRefusesALowerEpoch(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "claims.db"), newClock())
	fill(t, s)
	const epochLine = `, line = pool || '/' || address || '@' || domain || ' ' || holder || ' ' || `
	const homeLine = `, line = pool || '/' || address || ' ' || node || '@' || site || ' ' || `
	for _, statement := range []string{
		`UPDATE epochs SET epoch = epoch - 1` + epochLine + `(epoch - 1)`,
		`UPDATE epochs SET epoch = epoch` + epochLine + `epoch`,
		`UPDATE epochs SET epoch = epoch + 1`, // and the line does not say so
		`UPDATE epochs SET pool = 'red', epoch = epoch + 1`,
		`DELETE FROM epochs`,
		`INSERT OR REPLACE INTO epochs SELECT pool, address, domain, 1, holder, rev, pool || '/' || address || '@' || domain || ' ' || holder || ' 1' FROM epochs`,
		`INSERT INTO epochs VALUES ('p', '', 'd', 0, 'a', 1, 'p/@d a 0')`,
		`UPDATE homes SET epoch = epoch - 1` + homeLine + `(epoch - 1)`,
		`UPDATE homes SET site = 'osaka'`,
		`UPDATE homes SET pool = 'red', epoch = epoch + 1`,
		`DELETE FROM homes`,
		`INSERT OR REPLACE INTO homes SELECT * FROM homes`,
		`INSERT INTO meta VALUES (2, 'x', 0)`,
	} {
		err := s.write(t.Context(), func(tx *sqlitefile.Tx, _ int64) error {
			_, err := tx.Exec(statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "constraint failed") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	says(t, s, filled)
}

// Somebody restores a backup while the agents run: everything is told anew, and a revision
// from before means nothing any more, although the store has the same name.
func TestABackupInPlaceOfTheStoreIsToldAnew(t *testing.T) {
	dir := t.TempDir()
	path, backup := filepath.Join(dir, "claims.db"), filepath.Join(dir, "backup.db")
	clock := newClock()
	s := opened(t, path, clock)
	fill(t, s)
	must(t, s.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(backup, b, 0o600))

	s = opened(t, path, clock)
	moves(t, s, capture.Claim{Epoch: 400, Holder: "b"}, capture.Claim{Epoch: 401, Holder: "a"})
	before := everything(t, s).Revision
	must(t, os.Rename(backup, path))
	if _, err := s.Claim(t.Context(), key); err == nil || !strings.Contains(err.Error(), "-wal still belongs to the old one: stop the agents") {
		t.Errorf("with the -wal of the old file: %v", err)
	}
	must(t, os.Remove(path+"-wal"))
	must(t, os.Remove(path+"-shm"))
	must(t, s.Wait(t.Context(), before))
	got, err := s.Changes(t.Context(), before)
	if must(t, err); !got.Reset || got.Claims[key].Epoch != 400 {
		t.Errorf("changes: %+v", got)
	}
	moves(t, s, capture.Claim{Epoch: 400, Holder: "b"}, capture.Claim{Epoch: 402, Holder: "a"})
	if again, err := s.Changes(t.Context(), before); err != nil || !again.Reset {
		t.Errorf("changes since before the backup, after as many transactions: %+v, %v", again, err)
	}
	if next, err := s.Changes(t.Context(), got.Revision); err != nil || next.Reset || len(next.Claims) != 1 {
		t.Errorf("changes since then: %+v, %v", next, err)
	}
	// And once more: it has the same name again.
	must(t, os.WriteFile(backup, b, 0o600))
	for _, suffix := range []string{"-wal", "-shm"} {
		must(t, os.Remove(path+suffix))
	}
	must(t, os.Rename(backup, path))
	if again, err := s.Changes(t.Context(), got.Revision); err != nil || !again.Reset {
		t.Errorf("changes since the first backup: %+v, %v", again, err)
	}
	must(t, os.Remove(path))
	if _, err := s.Claim(t.Context(), key); err == nil || !strings.Contains(err.Error(), "put it back with its -wal") {
		t.Errorf("the file is gone: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new one was made in its place")
	}
}

// A process that has just started does not know when a node last renewed: it lets the whole
// TTL go by before it takes it for dead.
func TestAProcessThatHasJustStartedGivesEveryLeaseItsTTL(t *testing.T) {
	path, clock := filepath.Join(t.TempDir(), "claims.db"), newClock()
	old := opened(t, path, clock)
	_, err := old.Renew(t.Context(), "a", 10*time.Second)
	must(t, err)
	if got := everything(t, old).Alive; len(got) != 1 {
		t.Fatalf("alive: %v", got)
	}
	clock.pass(9 * time.Second)
	late := opened(t, path, clock)
	for _, c := range []struct {
		store *Store
		pass  time.Duration
		alive int
	}{
		{late, 0, 1}, {old, 0, 1}, // after 9 s
		{old, time.Second, 0}, {late, 0, 1}, // after 10 s
		{late, 9*time.Second - 1, 1}, {late, 1, 0}, // after 19 s
	} {
		clock.pass(c.pass)
		if got := everything(t, c.store).Alive; len(got) != c.alive {
			t.Errorf("alive after another %s: %v", c.pass, got)
		}
	}
}

// The clock of the host is set back by an hour: leases are judged by another one (c16).
func TestLeasesAreJudgedByTheMonotonicClock(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "claims.db"))
	must(t, err)
	defer func() { _ = s.Close() }()
	end, err := s.Renew(t.Context(), "a", time.Minute)
	if must(t, err); end.Round(0) == end {
		t.Errorf("the end of the lease, %v, is of the wall clock", end)
	}
	_ = everything(t, s)
	if seen := s.pulse.seen["a"].since; seen.Round(0) == seen {
		t.Errorf("the beat was seen at %v, by the wall clock", seen)
	}
}

// A lease counts from before the store was asked, so that nobody ends it earlier than its holder.
func TestALeaseCountsFromBeforeTheStoreWasAsked(t *testing.T) {
	clock := newClock()
	s := opened(t, filepath.Join(t.TempDir(), "claims.db"), clock)
	begun := s.now()
	s.now = func() time.Time { clock.pass(time.Second); return clock.time() }
	until, err := s.Renew(t.Context(), "a", 10*time.Second)
	if must(t, err); until.Sub(begun) != 11*time.Second {
		t.Errorf("it lasts for %s from before the first look at the clock, want 11s", until.Sub(begun))
	}
}

// Whoever waits is woken by a write, and by a death, and by nothing else.
func TestWhoWaitsIsWokenByAWriteAndByADeath(t *testing.T) {
	clock := newClock()
	s := opened(t, filepath.Join(t.TempDir(), "claims.db"), clock)
	woken := func() bool {
		t.Helper()
		changed, err := s.changed(t.Context(), everything(t, s).Revision)
		must(t, err)
		return changed
	}
	if woken() {
		t.Error("by nothing")
	}
	since := everything(t, s).Revision
	must(t, s.Drain(t.Context(), "a", true))
	if changed, err := s.changed(t.Context(), since); err != nil || !changed {
		t.Errorf("not by a write: %v", err)
	}
	_, err := s.Renew(t.Context(), "a", time.Second)
	must(t, err)
	since = everything(t, s).Revision
	clock.pass(time.Second)
	if changed, err := s.changed(t.Context(), since); err != nil || !changed {
		t.Errorf("not by a death: %v", err)
	}
}
