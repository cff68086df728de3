package vrrp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fake is a host with one keepalived, whose FIFO is a real one that the test writes to.
type fake struct {
	mu     sync.Mutex
	clock  time.Duration
	live   time.Time // from when the clock goes by itself, if it does
	keeper vitals
	gone   error           // why the keeper is not found
	says   map[string]line // what it answers when it is asked, nil is nothing
	asked  int
	mute   error // why it cannot be asked
}

func (f *fake) now() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.live.IsZero() {
		return f.clock + time.Since(f.live)
	}
	return f.clock
}

func (f *fake) writer(string, fileID) (process, error) { return f.keeper.process, f.gone }

func (f *fake) vitals(pid int) (vitals, error) {
	if pid != f.keeper.pid {
		return vitals{}, os.ErrNotExist
	}
	return f.keeper, nil
}

func (f *fake) ask(process, string) (func() map[string]line, error) {
	f.asked++
	return func() map[string]line { return f.says }, f.mute
}

// rise is how long a MASTER takes to be proven.
const rise = yield + tick

// bench is a Watch of two instances, looked at by hand.
type bench struct {
	*testing.T
	w    *Watch
	host *fake
	path string
	end  int // the one of the writer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, path: filepath.Join(t.TempDir(), "fifo"), host: &fake{clock: time.Hour, keeper: vitals{process: process{pid: 4711, start: 1}, state: 'S'}}}
	w, err := New(b.path, time.Second, nil, "VI_1", "VI_2")
	if err != nil {
		t.Fatal(err)
	}
	w.host, b.w = b.host, w
	b.create()
	t.Cleanup(func() {
		unix.Close(b.end)
		b.w.drop("")
	})
	return b
}

// create makes the FIFO and opens it as keepalived does.
func (b *bench) create() {
	b.Helper()
	if err := unix.Mkfifo(b.path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		b.Fatal(err)
	}
	end, err := unix.Open(b.path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.end = end
}

func (b *bench) write(text string) {
	b.Helper()
	if _, err := unix.Write(b.end, []byte(text)); err != nil {
		b.Fatal(err)
	}
}

// after lets keepalived run for a while, with a look at every tick.
func (b *bench) after(d time.Duration) {
	for ; d > 0; d -= tick {
		b.host.clock += min(d, tick)
		b.host.keeper.switches++
		b.w.look()
	}
}

func (b *bench) want(instance string, word Word, proven bool, reason string) State {
	b.Helper()
	s := b.w.State(instance)
	if s.Word != word || s.Proven != proven || proven != (s.Reason == "") || !strings.Contains(s.Reason, reason) {
		b.Fatalf("it is %+v; want the word %q, proven %v, for %q", s, word, proven, reason)
	}
	return s
}

// master is a bench on which VI_1 is proven to be MASTER, and VI_2 is BACKUP.
func master(t *testing.T) *bench {
	b := newBench(t)
	b.write("INSTANCE \"VI_1\" MASTER 100\nINSTANCE \"VI_2\" BACKUP 90\n")
	b.after(rise)
	b.want("VI_1", Master, true, "")
	b.want("VI_2", Backup, false, "BACKUP")
	return b
}

func TestNothingIsProvenBeforeAWord(t *testing.T) {
	b := newBench(t)
	b.want("VI_1", Unknown, false, "not been read")
	b.want("VI_3", Unknown, false, "nobody watches")
	b.after(tick)
	b.want("VI_1", Unknown, false, "")
	b.write("INSTANCE \"VI_2\" MASTER 100\n")
	b.after(rise)
	b.want("VI_1", Unknown, false, "")
	b.want("VI_2", Master, true, "")
}

func TestANewMasterLeavesTimeToTheOneBefore(t *testing.T) {
	b := newBench(t)
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	b.after(tick)
	b.want("VI_1", Master, false, "just become MASTER")
	b.after(yield)
	b.want("VI_1", Master, true, "")
}

func TestC20TheLastWordWins(t *testing.T) {
	b := master(t)
	before := b.w.State("VI_1").Sequence
	b.write("INSTANCE \"VI_1\" BACKUP 100\nINSTANCE \"VI_1\" MASTER 101\n")
	b.after(rise)
	if s := b.want("VI_1", Master, true, ""); s.Sequence <= before || s.Priority != 101 {
		t.Errorf("it is %+v after the sequence %d: a rival was MASTER, and nobody would know", s, before)
	}
	b.write("INSTANCE \"VI_1\" MASTER 100\nINSTANCE \"VI_1\" BACKUP 100\n")
	b.after(tick)
	b.want("VI_1", Backup, false, "BACKUP")
}

func TestEveryWordButMasterFailsClosed(t *testing.T) {
	for _, word := range []Word{Backup, Fault, Stop, Deleted, backupPriority, "NONSENSE"} {
		b := master(t)
		b.write(fmt.Sprintf("INSTANCE \"VI_1\" %s 100\n", word))
		b.after(tick)
		if s := b.w.State("VI_1"); s.Proven {
			t.Errorf("after %s it is %+v", word, s)
		}
	}
}

func TestALineMayArriveInPieces(t *testing.T) {
	b := master(t)
	for _, part := range []string{"INSTANCE \"VI", "_1\" BACK"} {
		b.write(part)
		b.after(tick)
		b.want("VI_1", Master, true, "")
	}
	b.write("UP 100\nINSTANCE")
	b.after(tick)
	b.want("VI_1", Backup, false, "BACKUP")
}

func TestALineThatCannotBeReadTakesEveryWordBack(t *testing.T) {
	b := master(t)
	b.write("INSTANCE \"VI_1\" MASTER 100\nrubbish\nINSTANCE \"VI_2\" MASTER 90\n")
	b.after(rise)
	b.want("VI_1", Unknown, false, "rubbish")
	b.want("VI_2", Master, true, "")

	b = master(t)
	b.write(strings.Repeat("x", maxLine+1))
	b.after(tick)
	b.want("VI_1", Unknown, false, "does not write")
}

func TestAGroupIsNoInstance(t *testing.T) {
	b := newBench(t)
	b.write("GROUP \"VI_1\" MASTER 0\n")
	b.after(tick)
	b.want("VI_1", Unknown, false, "")
}

func TestC21ARivalOfLowerPriorityIsNews(t *testing.T) {
	b := master(t)
	before := b.w.State("VI_1").Sequence
	b.write("INSTANCE \"VI_1\" MASTER_RX_LOWER_PRI 100\n")
	b.after(tick)
	if s := b.want("VI_1", Master, true, ""); s.Sequence != before+1 {
		t.Errorf("the sequence went from %d to %d, want one more", before, s.Sequence)
	}
	b.after(time.Second)
	if s := b.w.State("VI_1"); s.Sequence != before+1 {
		t.Errorf("the sequence went on to %d without news", s.Sequence)
	}
	// It proves nothing by itself.
	b.write("INSTANCE \"VI_2\" MASTER_RX_LOWER_PRI 90\n")
	b.after(tick)
	b.want("VI_2", Unknown, false, "MASTER_RX_LOWER_PRI")
}

func TestC19AReloadClosesTheFIFOAndNothingIsProvenUntilItIsToldAgain(t *testing.T) {
	for name, reload := range map[string]func(b *bench){
		"a new FIFO": func(b *bench) {
			os.Remove(b.path)
			unix.Close(b.end)
		},
		"the same FIFO": func(b *bench) { unix.Close(b.end) },
	} {
		t.Run(name, func(t *testing.T) {
			b := master(t)
			reload(b)
			b.after(tick)
			b.want("VI_1", Unknown, false, "open for writing")
			b.create()
			b.after(tick)
			b.want("VI_1", Unknown, false, "open for writing")
			b.host.says = map[string]line{"VI_1": {name: "VI_1", word: Master, priority: 100}}
			b.after(grace + tick + rise)
			b.want("VI_1", Master, true, "")
			b.want("VI_2", Unknown, false, "no vrrp_instance VI_2")
		})
	}
}

func TestAWordOfTheFIFOWinsOverAnAnswer(t *testing.T) {
	b := newBench(t)
	b.after(grace + tick)
	if b.host.asked != 1 {
		t.Fatalf("it was asked %d times", b.host.asked)
	}
	b.host.says = map[string]line{"VI_1": {name: "VI_1", word: Master, priority: 100}, "VI_2": {name: "VI_2", word: Master, priority: 100}}
	b.write("INSTANCE \"VI_1\" BACKUP 100\n") // after it has written its answer
	b.after(rise)
	b.want("VI_1", Backup, false, "BACKUP")
	b.want("VI_2", Master, true, "")
}

func TestAnAnswerFromBeforeALossCountsNoMore(t *testing.T) {
	b := newBench(t)
	b.after(grace + tick)
	b.write("rubbish\n")
	b.host.says = map[string]line{"VI_1": {name: "VI_1", word: Master, priority: 100}}
	b.after(tick)
	b.want("VI_1", Unknown, false, "rubbish")
	b.after(again + rise)
	b.want("VI_1", Master, true, "")
}

func TestWhoCannotBeAskedSaysWhy(t *testing.T) {
	b := newBench(t)
	b.host.mute = errors.New("it is no keepalived")
	b.after(time.Second)
	b.want("VI_1", Unknown, false, "it is no keepalived")
	if b.host.asked != 1 {
		t.Errorf("it was asked %d times in a second", b.host.asked)
	}
}

func TestAFIFOThatIsNotThereFailsClosed(t *testing.T) {
	b := master(t)
	os.Remove(b.path)
	b.after(tick)
	b.want("VI_1", Unknown, false, "reload keepalived")
	b.after(tick)
	b.want("VI_1", Unknown, false, "no such file")

	if err := os.WriteFile(b.path, []byte("INSTANCE \"VI_1\" MASTER 100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.after(tick)
	b.want("VI_1", Unknown, false, "not a FIFO")
	os.Remove(b.path)
	if err := os.Symlink(os.DevNull, b.path); err != nil {
		t.Fatal(err)
	}
	b.after(tick)
	b.want("VI_1", Unknown, false, "symbolic links")
}

func TestTheFIFOMayBeThereBeforeKeepalived(t *testing.T) {
	b := newBench(t)
	unix.Close(b.end)
	b.after(time.Second)
	b.want("VI_1", Unknown, false, "nobody has the notify FIFO open")
	b.create()
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	b.after(rise)
	b.want("VI_1", Master, true, "")
}

func TestAFIFOThatNobodyReadForLongTellsNothing(t *testing.T) {
	b := newBench(t)
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	for { // until it is full, and drops what comes
		if _, err := unix.Write(b.end, []byte("INSTANCE \"VI_2\" BACKUP 90\n")); err != nil {
			break
		}
	}
	b.after(tick)
	b.want("VI_1", Unknown, false, "may be lost")
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	b.after(rise)
	b.want("VI_1", Master, true, "")
}

func TestTheFIFOHasExactlyOneWriter(t *testing.T) {
	b := newBench(t)
	b.host.gone = errors.New("two have it open")
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	b.after(tick)
	b.want("VI_1", Unknown, false, "two have it open")

	b = master(t)
	b.host.gone = errors.New("two have it open")
	b.after(again)
	b.want("VI_1", Unknown, false, "two have it open")
	b.host.gone = nil
	b.host.says = map[string]line{"VI_1": {name: "VI_1", word: Master, priority: 100}}
	b.after(again + idle + rise)
	b.want("VI_1", Master, true, "")
}

func TestADeadKeepalivedProvesNothingWhoeverKeepsTheFIFOOpen(t *testing.T) {
	for name, change := range map[string]func(*vitals){
		"gone":                        func(v *vitals) { v.pid++ },
		"its number is another one's": func(v *vitals) { v.start++ },
		"dead":                        func(v *vitals) { v.state = 'Z' },
	} {
		t.Run(name, func(t *testing.T) {
			b := master(t)
			change(&b.host.keeper)
			b.host.gone = errClosed
			b.after(tick)
			b.want("VI_1", b.w.State("VI_1").Word, false, "keepalived (process 4711) is ")
		})
	}
}

func TestC18AKeepalivedThatIsStoppedProvesNothingUntilItHasRunForAnInterval(t *testing.T) {
	b := master(t)
	b.host.keeper.state = 'T'
	b.after(tick)
	b.want("VI_1", Master, false, "is stopped")
	b.after(time.Minute)
	b.host.keeper.state = 'S'
	b.after(tick)
	b.want("VI_1", Master, false, "held up")
	b.after(time.Second)
	b.want("VI_1", Master, true, "")
}

func TestAKeepalivedThatDoesNotRunProvesNothingBeforeItsBackupsTakeOver(t *testing.T) {
	b := master(t)
	for waited := time.Duration(0); waited < 3*time.Second; waited += tick {
		b.host.clock += tick // and no switch, as in a frozen control group
		b.w.look()
	}
	b.want("VI_1", Master, false, "has not run")
	b.after(tick)
	b.want("VI_1", Master, false, "held up")
	b.after(time.Second)
	b.want("VI_1", Master, true, "")
}

func TestABackupMaySleep(t *testing.T) {
	b := newBench(t)
	b.write("INSTANCE \"VI_1\" BACKUP 100\nINSTANCE \"VI_2\" BACKUP 100\n")
	for waited := time.Duration(0); waited < 3*time.Second; waited += tick {
		b.host.clock += tick
		b.w.look()
	}
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	b.after(rise)
	b.want("VI_1", Master, true, "")
}

func TestAWatchThatWasHeldUpProvesNothing(t *testing.T) {
	b := master(t)
	b.host.clock += time.Minute
	b.want("VI_1", Master, false, "has not been read")
	b.after(tick)
	b.want("VI_1", Master, false, "held up")
	b.write("INSTANCE \"VI_1\" BACKUP 100\n")
	b.after(2 * time.Second)
	b.want("VI_1", Backup, false, "BACKUP")
}

func TestPriorityIsTheLastOneSaid(t *testing.T) {
	b := master(t)
	b.write("INSTANCE \"VI_1\" MASTER_PRIORITY 120\n")
	b.after(tick)
	if s := b.want("VI_1", Master, true, ""); s.Priority != 120 {
		t.Errorf("it is %+v", s)
	}
}

func TestARunTellsEachChangeAndTakesProofBackAtItsEnd(t *testing.T) {
	b := newBench(t)
	b.host.live, b.w.advert = time.Now(), time.Hour // it may be silent
	told := make(chan State, 100)
	b.w.changed = func(s State) { told <- s }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); b.w.Run(ctx) }()
	await := func(proven bool) {
		for s := range told {
			if s.Instance == "VI_1" && s.Proven == proven {
				return
			}
		}
	}
	b.write("INSTANCE \"VI_1\" MASTER 100\n")
	await(true)
	b.want("VI_1", Master, true, "")
	b.write("INSTANCE \"VI_1\" BACKUP 100\nINSTANCE \"VI_1\" MASTER 100\n")
	await(true)
	cancel()
	await(false)
	<-ended
	b.want("VI_1", Unknown, false, "not watched any more")
}

func TestWhatCannotBeWatchedIsRefused(t *testing.T) {
	for _, c := range []struct {
		path      string
		advert    time.Duration
		instances []string
	}{{"fifo", 0, []string{"a"}}, {"/fifo", 0, nil}, {"/fifo", 0, []string{""}}, {"/fifo", -1, []string{"a"}}} {
		if _, err := New(c.path, c.advert, nil, c.instances...); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
