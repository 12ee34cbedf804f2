package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/visible"
)

const (
	liveStep  = 200 * time.Millisecond
	plainStep = 10 * time.Second
)

// liveLine shows lines that change: on a terminal it rewrites them, elsewhere it prints the first of them at intervals.
// Its users hold mu while they change what the lines are made of, or call line.
type liveLine struct {
	w    io.Writer
	tty  bool
	step time.Duration // between two of its states

	mu      sync.Mutex
	open    int // lines that the terminal shows and that are rewritten
	stop    chan struct{}
	once    sync.Once
	stopped sync.WaitGroup
}

// start shows what lines returns, except while it is nil. lines is called with mu held.
func (l *liveLine) start(w io.Writer, lines func() []string) {
	w = visible.Raw(w) // line and show escape their texts
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
				l.show(lines)
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

// line prints a line that stays, above those that change.
func (l *liveLine) line(text string) {
	l.wipe()
	fmt.Fprintln(l.w, visible.Text(text))
}

func (l *liveLine) wipe() {
	if l.open > 0 {
		fmt.Fprint(l.w, "\r", strings.Repeat("\x1b[A", l.open-1), "\x1b[J")
		l.open = 0
	}
}

func (l *liveLine) show(lines func() []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := lines()
	if len(now) == 0 {
		return
	}
	for i, s := range now {
		now[i] = visible.Text(strings.ReplaceAll(s, "\n", " "))
	}
	if !l.tty {
		fmt.Fprintln(l.w, now[0])
		return
	}
	if width, height, err := term.GetSize(int(l.w.(*os.File).Fd())); err == nil {
		now = now[:min(len(now), max(1, height-1))]
		for i, s := range now {
			now[i] = narrow(s, width)
		}
	}
	l.wipe()
	fmt.Fprint(l.w, strings.Join(now, "\n"))
	l.open = len(now)
}

// spare are the parts of a line that give way where it does not fit, in this order: the bar, the padding, the
// operations that ended, the number of the stage.
var spare = []*regexp.Regexp{regexp.MustCompile(`\[=* *\] `), regexp.MustCompile(`^ +`),
	regexp.MustCompile(`  \d+ ended`), regexp.MustCompile(` \(\d+ of \d+\)`)}

// narrow shortens a line to less than width columns, so that its figures and failures stay as long as possible.
func narrow(s string, width int) string {
	for _, part := range spare {
		if len([]rune(s)) < width {
			return s
		}
		if at := part.FindStringIndex(s); at != nil {
			s = s[:at[0]] + s[at[1]:]
		}
	}
	return cut(s, width)
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
