package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen shows the narration as lines and, on a terminal, the status below them, redrawn
// in place.
type screen struct {
	out    io.Writer
	live   bool
	colour bool
	fd     int

	mu    sync.Mutex // lines also come from the lab's start
	drawn []string   // rows of the status that are on the terminal
}

func newScreen(out io.Writer, plain bool) *screen {
	s := &screen{out: out}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.fd = int(f.Fd())
	_, height, err := term.GetSize(s.fd)
	s.live = !plain && err == nil && height >= 16 && os.Getenv("TERM") != "dumb"
	s.colour = s.live && os.Getenv("NO_COLOR") == ""
	return s
}

// period is how often the status changes by itself.
func (s *screen) period() time.Duration {
	if s.live {
		return 250 * time.Millisecond
	}
	return time.Second
}

// say adds a line to the narration. On a terminal it wraps between words.
func (s *screen) say(elapsed time.Duration, phase, text string) {
	l := line{{fmt.Sprintf("%6s  ", clock(elapsed)), faint}, {fmt.Sprintf("%-9s  ", phase), cyan}}
	rest := []string{text}
	if s.live {
		rest = wrap(text, s.width()-l.width())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.drawn
	s.erase()
	indent := strings.Repeat(" ", l.width())
	fmt.Fprintln(s.out, append(l, span{rest[0], ""}).render(l.width()+len(text), s.colour))
	for _, more := range rest[1:] {
		fmt.Fprintln(s.out, indent+more)
	}
	s.paint(rows)
}

// wrap breaks text between words into rows of at most width characters; a longer word has
// a row of its own.
func wrap(text string, width int) []string {
	var rows []string
	row := ""
	for _, word := range strings.Fields(text) {
		if row != "" && utf8.RuneCountInString(row)+1+utf8.RuneCountInString(word) > width {
			rows, row = append(rows, row), ""
		}
		if row != "" {
			row += " "
		}
		row += word
	}
	return append(rows, row)
}

// width leaves the last column free, as it makes some terminals wrap.
func (s *screen) width() int {
	width, _, err := term.GetSize(s.fd)
	if err != nil || width < 40 {
		width = 80
	}
	return width - 1
}

// framer renders a status: one string per row, none wider than width.
type framer interface {
	frame(width int, colour bool) []string
}

// draw shows the status, in place of the last one. What a low terminal has no room for is cut.
func (s *screen) draw(v framer) {
	if !s.live {
		return
	}
	rows := v.frame(s.width(), s.colour)
	if _, height, err := term.GetSize(s.fd); err == nil && height > 1 && len(rows) >= height {
		rows = append(rows[:height-2], fmt.Sprintf("and %d rows more", len(rows)-height+2))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Join(rows, "\n") == strings.Join(s.drawn, "\n") {
		return
	}
	s.erase()
	s.paint(rows)
}

// clear takes the status off the terminal, for good or until the next draw.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
)

func (s *screen) erase() {
	if len(s.drawn) > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\r\x1b[J%s", len(s.drawn), showCursor)
		s.drawn = nil
	}
}

func (s *screen) paint(rows []string) {
	if len(rows) > 0 {
		fmt.Fprint(s.out, hideCursor+strings.Join(rows, "\n")+"\n")
		s.drawn = rows
	}
}
