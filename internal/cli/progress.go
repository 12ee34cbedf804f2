package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// progress shows a run in progress. It implements run.Observer.
type progress struct {
	liveLine
	clock op.Clock
	plan  *plan.Plan

	phase   run.Phase
	began   op.Time // of the phase
	counts  map[op.Outcome]int64
	rate    int64  // ops ended since the last line
	last    *op.Op // formatted when it is shown: there may be thousands a second
	started map[string]restarts
	waits   map[string]string // by object: the reason, as the platform gives it
	figures liveFigures
}

// newProgress starts the display. If a machine reads the standard output, the display goes to the standard error.
func newProgress(s *streams, p *plan.Plan, clock op.Clock, machine bool) *progress {
	w := s.out
	if machine {
		w = s.err
	}
	pr := &progress{clock: clock, plan: p, counts: map[op.Outcome]int64{}, waits: map[string]string{}, began: clock.Now(),
		started: map[string]restarts{}}
	pr.start(w, pr.lines)
	return pr
}

// Phase implements run.Observer.
func (p *progress) Phase(phase run.Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began = phase, p.clock.Now()
	p.line(fmt.Sprintf("%8s  %s", p.at(), phase))
}

// OpEnded implements run.Observer. The op does not change afterwards.
func (p *progress) OpEnded(o *op.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[o.Outcome]++
	p.rate++
	if p.tty { // elsewhere they are not shown
		p.figures.ended(o)
	}
	if p.plan.RestartBy(o.Action) != nil {
		p.started[o.Action] = restarts{p.started[o.Action].n + 1, p.clock.Now()}
	}
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
	text := fmt.Sprintf("%s waits: %s", object, string(why[:min(maxWait, len(why))]))
	switch {
	case string(why) == engine.Removal:
		text = object + " is being removed"
	case len(why) > maxWait:
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

// lines are those that change. Their first one is complete in itself if it is the only one that is shown. They begin a
// new interval of the rates.
func (p *progress) lines() []string {
	if p.phase == "" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%8s  %s ", p.at(), p.phase)
	now := p.clock.Now()
	if p.phase == run.Running {
		over, whole := time.Duration(now-p.began), p.plan.Measured()
		if text := p.continues(now); text != "" && over > whole {
			b.WriteString(text + " ")
		} else if whole > 0 {
			b.WriteString(p.done(over, whole) + " ")
		}
	}
	fmt.Fprintf(&b, " %d ok", p.counts[op.OK])
	for _, o := range []op.Outcome{op.Error, op.Timeout, op.Dropped, op.Censored} {
		if n := p.counts[o]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, o)
		}
	}
	if p.tty {
		lines := append([]string{b.String()}, p.figures.lines(now)...)
		if text := p.latest(); text != "" {
			lines = append(lines, "  "+text)
		}
		return lines
	}
	if perSecond := float64(p.rate) / p.step.Seconds(); perSecond >= 1 {
		fmt.Fprintf(&b, "  %.0f ops/s", perSecond)
	}
	p.rate = 0
	if text := p.latest(); text != "" {
		b.WriteString("  " + text)
	}
	return []string{b.String()}
}

// restarts are the ops of an action that started workloads again.
type restarts struct {
	n  int64
	at op.Time // of the last
}

// continues says why the run has not ended although its workloads have had their time: restarts by the action that
// restarted them last. It is empty without any.
func (p *progress) continues(now op.Time) string {
	action := ""
	for a, s := range p.started {
		if action == "" || s.at > p.started[action].at {
			action = a
		}
	}
	if action == "" {
		return ""
	}
	r, s := p.plan.RestartBy(action), p.started[action]
	needs := ""
	if r.Needs > 0 {
		needs = fmt.Sprintf(" of %v", r.Needs)
	}
	return fmt.Sprintf("(no spec.runtime: %s began its time%s again %.0f s ago, %d restarts by %s)",
		strings.Join(r.Workloads, ", "), needs, time.Duration(now-s.at).Seconds(), s.n, action)
}

// latest is what is waited for, or else the op that ended last, except while the run's objects are removed.
func (p *progress) latest() string {
	if text := p.waiting(); text != "" {
		return text
	}
	o := p.last
	if o == nil || p.phase == run.Removing {
		return ""
	}
	how := string(o.Outcome)
	if d, ok := o.Service(); ok && o.Outcome == op.OK {
		how = units.Duration(float64(d))
	}
	return fmt.Sprintf("%s %s %s", o.Action, o.Target, how)
}
