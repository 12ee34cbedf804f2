package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/run"
)

// progress shows a run in progress: on a terminal one line that it rewrites, elsewhere a plain line at intervals. It
// implements run.Observer.
type progress struct {
	w     io.Writer
	tty   bool
	clock op.Clock
	plan  *plan.Plan

	mu      sync.Mutex
	phase   run.Phase
	began   time.Time // of the phase
	counts  map[op.Outcome]int64
	rate    int64             // ops ended since the last line
	last    *op.Op            // formatted when it is shown: there may be thousands a second
	waits   map[string]string // by object: the reason, as the platform gives it
	open    bool              // the terminal shows a line without its end
	stop    chan struct{}
	once    sync.Once
	stopped sync.WaitGroup
}

const (
	liveStep  = 200 * time.Millisecond
	plainStep = 10 * time.Second
)

// newProgress starts the display. If a machine reads the standard output, the display goes to the standard error.
func newProgress(s *streams, p *plan.Plan, clock op.Clock, machine bool) *progress {
	w := s.out
	if machine {
		w = s.err
	}
	w = unescaped(w) // progress escapes its own lines
	f, isFile := w.(*os.File)
	pr := &progress{w: w, tty: isFile && term.IsTerminal(int(f.Fd())), clock: clock, plan: p,
		counts: map[op.Outcome]int64{}, waits: map[string]string{}, stop: make(chan struct{}), began: time.Now()}
	step := plainStep
	if pr.tty {
		step = liveStep
	}
	pr.stopped.Add(1)
	go pr.refresh(step)
	return pr
}

func (p *progress) refresh(step time.Duration) {
	defer p.stopped.Done()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.show(step)
		case <-p.stop:
			return
		}
	}
}

// close ends the display. A second call has no effect.
func (p *progress) close() {
	p.once.Do(func() { close(p.stop) })
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// Phase implements run.Observer.
func (p *progress) Phase(phase run.Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began = phase, time.Now()
	p.line(fmt.Sprintf("%8s  %s", p.at(), phase))
}

// OpEnded implements run.Observer. The op does not change afterwards.
func (p *progress) OpEnded(o *op.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[o.Outcome]++
	p.rate++
	switch o.Outcome {
	case op.OK:
		p.last = o
	case op.Error, op.Timeout:
		p.last = o
		if n := p.counts[o.Outcome]; n <= 3 {
			p.line(fmt.Sprintf("%8s  %s %s: %s: %s", p.at(), o.Action, o.Target, o.Outcome, o.Message))
		} else if n == 4 {
			p.line(fmt.Sprintf("%8s  further ops that end with %s are only counted", p.at(), o.Outcome))
		}
	}
}

// Log implements run.Observer: it shows lines of the run, and waits in the live line.
func (p *progress) Log(source, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source == engine.WaitsSource {
		p.wait(engine.ParseWait(text))
	}
	if source != "run" {
		return
	}
	p.line(fmt.Sprintf("%8s  %s", p.at(), text))
}

// wait notes what an object waits for; an empty why ends the wait.
func (p *progress) wait(object, why string) {
	if why == "" {
		delete(p.waits, object)
		return
	}
	p.waits[object] = why
}

// maxWait limits the text of a wait in the live line.
const maxWait = 160

// waiting is the wait of the first object, and the number of others.
func (p *progress) waiting() string {
	if len(p.waits) == 0 {
		return ""
	}
	object := slices.Min(slices.Collect(maps.Keys(p.waits)))
	why := []rune(p.waits[object])
	text := fmt.Sprintf("  %s waits: %s", object, string(why[:min(maxWait, len(why))]))
	if len(why) > maxWait {
		text += "…"
	}
	if n := len(p.waits) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (p *progress) at() string {
	return fmt.Sprintf("%.1fs", time.Duration(p.clock.Now()).Seconds())
}

// line prints a whole line, above the live one.
func (p *progress) line(text string) {
	p.wipe()
	fmt.Fprintln(p.w, terminal.Visible(text))
}

func (p *progress) wipe() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

func (p *progress) show(step time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == "" {
		return
	}
	text := terminal.Visible(strings.ReplaceAll(p.status(step), "\n", " "))
	p.rate = 0
	if !p.tty {
		fmt.Fprintln(p.w, text)
		return
	}
	f := p.w.(*os.File)
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && len([]rune(text)) >= width {
		text = string([]rune(text)[:max(0, width-2)]) + "…"
	}
	fmt.Fprint(p.w, "\r\x1b[K", text)
	p.open = true
}

// status is the live line: the phase, the ops that have ended, the last op.
func (p *progress) status(step time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s  %s ", p.at(), p.phase)
	if p.phase == run.Running && p.plan.Runtime > 0 {
		b.WriteString(p.done() + " ")
	}
	fmt.Fprintf(&b, " %d ok", p.counts[op.OK])
	for _, o := range []op.Outcome{op.Error, op.Timeout, op.Dropped, op.Censored} {
		if n := p.counts[o]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, o)
		}
	}
	if perSecond := float64(p.rate) / step.Seconds(); perSecond >= 1 {
		fmt.Fprintf(&b, "  %.0f ops/s", perSecond)
	}
	if text := p.waiting(); text != "" {
		return b.String() + text
	}
	if o := p.last; o != nil {
		how := string(o.Outcome)
		if d, ok := o.Service(); ok && o.Outcome == op.OK {
			how = units.Duration(float64(d))
		}
		fmt.Fprintf(&b, "  %s %s %s", o.Action, o.Target, how)
	}
	return b.String()
}

// done shows how much of the runtime is over: as a bar, or in words in a log.
func (p *progress) done() string {
	if p.tty {
		return bar(time.Since(p.began), p.plan.Runtime)
	}
	return fmt.Sprintf("(%.0f s of %.0f s)", time.Since(p.began).Seconds(), p.plan.Runtime.Seconds())
}

// bar draws a progress bar.
func bar(done, whole time.Duration) string {
	const width = 20
	n := min(width, int(done*width/whole))
	return "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "]"
}
