package lan

import (
	"os"
	"syscall"
	"testing"
)

// TestTwoKeepalivedOnOneLAN tells one story after the other on one LAN. Host a has the better
// priority, and is MASTER at the beginning and at the end of each.
func TestTwoKeepalivedOnOneLAN(t *testing.T) {
	w := newWorld(t, beDriver)
	a, b := w.a, w.b
	start := w.now()
	w.only(a.mac)
	w.announcedBy(start, a.mac)
	w.neverTwo(start)

	story := w.stories()

	story("c19: a reload closes the FIFO, and the state is proven again", func(t *testing.T, since mark) {
		at := a.told()
		if err := a.keepalived.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		at = a.await(at, "withdrawn")
		a.await(at, "proven=true")
		w.announcedBy(since, a.mac)
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("a driver that is started anew learns the state", func(t *testing.T, since mark) {
		at := a.told()
		if err := a.driver.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		a.await(at, "withdrawn")
		w.only("")
		a.drive()
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("the FIFO is removed, and nobody answers until keepalived makes another", func(t *testing.T, since mark) {
		at := a.told()
		if err := os.Remove(a.path("fifo")); err != nil {
			t.Fatal(err)
		}
		a.await(at, "withdrawn")
		w.only("")
		if err := a.keepalived.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("the MASTER is killed, stops to answer at once, and the other takes over", func(t *testing.T, since mark) {
		at := a.told()
		a.kill()
		a.await(at, "withdrawn")
		w.only(b.mac)
		w.announcedBy(since, b.mac)
		a.start()
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("c18: the MASTER is frozen, and the backup answers; after it goes on, one does", func(t *testing.T, since mark) {
		at := a.told()
		a.signal(syscall.SIGSTOP)
		a.await(at, "is stopped")
		w.only(b.mac)
		a.signal(syscall.SIGCONT)
		w.only(a.mac)
		w.neverTwo(since)
	})

	story("the MASTER and its driver are frozen together: nobody is left to withdraw, and two answer until they go on", func(t *testing.T, since mark) {
		at := a.told()
		if err := a.driver.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		a.signal(syscall.SIGSTOP)
		w.announcedBy(since, b.mac)
		w.answeredByTwo(since)
		a.signal(syscall.SIGCONT)
		if err := a.driver.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		a.await(at, "withdrawn") // what it knew is too old
		w.only(a.mac)
	})

	story("c21: a rival that is deaf takes the address, and MASTER_RX_LOWER_PRI takes it back", func(t *testing.T, since mark) {
		at := a.told()
		b.deaf(true)
		w.announcedBy(since, b.mac)
		heard := w.now()
		at = a.await(at, "MASTER proven=true") // it was so before: only a new word says it again
		a.await(at, "asserted")
		w.announcedBy(heard, a.mac)
		b.deaf(false)
		w.only(a.mac)
	})

	story("a partition that heals: keepalived says nothing of it, and the announcements repair the caches", func(t *testing.T, since mark) {
		w.part(true)
		w.announcedBy(since, b.mac)
		w.part(false)
		w.only(a.mac)
		w.announcedBy(w.now(), a.mac)
	})

	story("c20: BACKUP is read late, after MASTER, and is what counts", func(t *testing.T, since mark) {
		at := b.told()
		w.lateBackup()
		b.await(at, "BACKUP proven=false")
		w.only(a.mac)
		w.neverTwo(since) // the MASTER that was over was never acted on
	})

	story("the link of the MASTER goes down and up again, and the address returns with an announcement", func(t *testing.T, since mark) {
		at := a.told()
		w.in("s", "link set port-a down")
		a.await(at, "FAULT proven=false")
		w.only(b.mac)
		up, at := w.now(), a.told()
		w.in("s", "link set port-a up")
		a.await(at, "up")
		w.announcedBy(up, a.mac)
		w.only(a.mac)
		w.neverTwo(since)
	})
}
