package run

import (
	"context"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// maxFirings bounds the firings that a bundle lists for each rate; the log has all.
const maxFirings = 1000

// conditional triggers when the condition of the rate becomes true. It evaluates at fixed instants; those that pass
// while it is late are skipped.
func (rt *rateRunner) conditional(ctx context.Context, start op.Time) {
	c := rt.Condition
	state := schedule.Condition{For: c.For, Cooldown: c.Cooldown, HasReset: c.Reset != ""}
	seen := &bundle.Condition{When: c.When, Reset: c.Reset}
	rt.mu.Lock()
	rt.count.Condition = seen
	rt.mu.Unlock()
	missing := &missingData{}
	every := op.Time(c.Every())
	fired := int64(0)
	for at := start + every; rt.Limit == 0 || fired < rt.Limit; at = start + ((rt.Clock.Now()-start)/every+1)*every {
		if rt.Duration > 0 && at > start+op.Time(rt.Duration) || !rt.Sleep(ctx, rt.Clock.At(at)) {
			break
		}
		now := rt.Clock.Now()
		r := rt.Live.Judge(rt.Name, now)
		seen.Evaluations++
		if r.When == schedule.Unknown {
			seen.Unknown++
		}
		missing.add(now, r.Missing)
		if since, ok := state.Step(time.Duration(now), r); ok {
			fired++
			rt.triggerOn(ctx, seen, bundle.Firing{Since: op.Time(since), At: now, Observed: r.Observed})
		}
	}
	rt.flagCondition(seen, missing, fired)
}

// triggerOn triggers the actions of the rate, and records why.
func (rt *rateRunner) triggerOn(ctx context.Context, seen *bundle.Condition, f bundle.Firing) {
	rt.because = fmt.Sprintf("%s, since %v", f.Observed, round(f.Since))
	rt.trigger(ctx, f.At, schedule.Trigger{})
	if len(seen.Firings) < maxFirings {
		seen.Firings = append(seen.Firings, f)
	}
	rt.log("run", fmt.Sprintf("rate %s triggers at %v: %s", rt.Name, round(f.At), rt.because))
}

func round(t op.Time) time.Duration { return time.Duration(t).Round(time.Millisecond) }

// missingData counts the evaluations for which samples were missing.
type missingData struct {
	n     int64
	first op.Time
	what  string // at the first of them
}

func (m *missingData) add(at op.Time, what string) {
	if what == "" {
		return
	}
	if m.n++; m.n == 1 {
		m.first, m.what = at, what
	}
}

// flagCondition flags a rate that never triggered, and one whose samples were missing.
func (rt *rateRunner) flagCondition(seen *bundle.Condition, missing *missingData, fired int64) {
	if fired == 0 {
		long := ""
		if rt.Condition.For > 0 {
			long = fmt.Sprintf(" for %v", rt.Condition.For)
		}
		rt.flag(info, "triggerNotFired", fmt.Sprintf(
			"rate %s never triggered: its condition was never true%s in %d evaluations, of which %d were undecided", rt.Name,
			long, seen.Evaluations, seen.Unknown))
	}
	if missing.n > 0 {
		rt.warn("triggerDataMissing", fmt.Sprintf(
			"rate %s: samples were missing in %d of %d evaluations, and without them nothing triggers; first at %v: %s",
			rt.Name, missing.n, seen.Evaluations, round(missing.first), missing.what))
	}
}
