package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/report/terminal"
)

const (
	liveStep  = 200 * time.Millisecond
	plainStep = 10 * time.Second
)

// liveLine shows a text that changes: on a terminal one line that it rewrites, elsewhere a plain line at intervals. Its
// users hold mu while they change what the text is made of, or call line.
type liveLine struct {
	w    io.Writer
	tty  bool
	step time.Duration // between two texts

	mu      sync.Mutex
	open    bool // the terminal shows a line without its end
	stop    chan struct{}
	once    sync.Once
	stopped sync.WaitGroup
}

// start shows what text returns, except while it is empty. text is called with mu held.
func (l *liveLine) start(w io.Writer, text func() string) {
	w = unescaped(w) // line and show escape their texts
	f, isFile := w.(*os.File)
	l.w, l.step, l.stop = w, plainStep, make(chan struct{})
	if l.tty = isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"; l.tty {
		l.step = liveStep
	}
	l.stopped.Go(func() {
		tick := time.NewTicker(l.step)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.show(text)
			case <-l.stop:
				return
			}
		}
	})
}

// close ends the display. A second call has no effect.
func (l *liveLine) close() {
	l.once.Do(func() { close(l.stop) })
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wipe()
}

// line prints a whole line, above the live one.
func (l *liveLine) line(text string) {
	l.wipe()
	fmt.Fprintln(l.w, terminal.Visible(text))
}

func (l *liveLine) wipe() {
	if l.open {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.open = false
	}
}

func (l *liveLine) show(text func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := terminal.Visible(strings.ReplaceAll(text(), "\n", " "))
	if s == "" {
		return
	}
	if !l.tty {
		fmt.Fprintln(l.w, s)
		return
	}
	if width, _, err := term.GetSize(int(l.w.(*os.File).Fd())); err == nil {
		s = cut(s, width)
	}
	fmt.Fprint(l.w, "\r\x1b[K", s)
	l.open = true
}

// cut shortens a text to less than width columns; a terminal may wrap a line that fills it.
func cut(s string, width int) string {
	if r := []rune(s); len(r) >= width {
		return string(r[:max(0, width-2)]) + "…"
	}
	return s
}

// done shows how much of a length of time is over: as a bar, or in words in a log.
func (l *liveLine) done(over, whole time.Duration) string {
	if l.tty {
		return fmt.Sprintf("%s %v left", bar(over, whole), max(0, whole-over).Round(time.Second))
	}
	return fmt.Sprintf("(%.0f s of %.0f s)", over.Seconds(), whole.Seconds())
}

// bar draws a progress bar.
func bar(done, whole time.Duration) string {
	const width = 20
	n := min(width, int(done*width/whole))
	return "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "]"
}
