package vrrp

import (
	"fmt"
	"strings"
	"testing"
)

func TestALineOfKeepalivedIsRead(t *testing.T) {
	for text, want := range map[string]line{
		`INSTANCE "VI_1" MASTER 100`:              {name: "VI_1", word: Master, priority: 100},
		`INSTANCE "VI 1" BACKUP 0`:                {name: "VI 1", word: Backup},
		`INSTANCE "a" b" MASTER 255`:              {name: `a" b`, word: Master, priority: 255},
		`INSTANCE "v" MASTER_RX_LOWER_PRI 1`:      {name: "v", word: rxLower, priority: 1},
		`GROUP "VG" FAULT 0`:                      {group: true, name: "VG", word: Fault},
		`INSTANCE "INSTANCE "x" MASTER 1" STOP 9`: {name: `INSTANCE "x" MASTER 1`, word: Stop, priority: 9},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestALineThatKeepalivedDoesNotWriteIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "MASTER", `INSTANCE VI_1 MASTER 100`, `INSTANCE "VI_1" MASTER`, `INSTANCE "VI_1" MASTER 256`, `INSTANCE "VI_1" MASTER -1`,
		`INSTANCE "VI_1" MASTER 100 `, `INSTANCE "VI_1" MASTER  100`, ` INSTANCE "VI_1" MASTER 100`, `INSTANCE "VI_1" master 100`,
		`INSTANCE "" MASTER 100`, `INSTANCE "VI_1 MASTER 100`, `instance "VI_1" MASTER 100`, `INSTANCE "VI_1" {UNKNOWN} 100`,
		`STANCE "VI_1" MASTER 100`, "INSTANCE \"VI_1\" MASTER 100\x00", `VS [192.0.2.1]:tcp:80 UP`, strings.Repeat("x", maxLine),
	} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`INSTANCE "VI_1" MASTER 100`)
	f.Add(`GROUP "a" b" STOP 0`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parse(text)
		if err != nil {
			return
		}
		kind := map[bool]string{true: "GROUP", false: "INSTANCE"}[l.group]
		again, err := parse(fmt.Sprintf("%s %q %s %d", kind, "x", l.word, l.priority))
		if again.name = l.name; err != nil || again != l {
			t.Errorf("%q is read as %+v, and that as %+v, %v", text, l, again, err)
		}
		if !strings.HasPrefix(text, kind+` "`+l.name+`" `+string(l.word)+" ") {
			t.Errorf("%q is read as %+v", text, l)
		}
	})
}
