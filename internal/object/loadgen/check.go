package loadgen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The findings of a check beside a payload violation. Skipped checks are those of objects whose last change had no
// response, so that they may still change.
const (
	Consistent  = "consistent"
	Missing     = "missing"    // after a write: it is not there, or not listed
	Stale       = "stale"      // after a write: an earlier one is read
	Remains     = "remains"    // after a delete: it is there, or listed
	unanswered  = "unanswered" // nothing was found out
	skipped     = "skipped"    // no check was made
	mostUnknown = 1_000_000    // objects that a worker remembers as unknown
	askFirst    = time.Millisecond
	askLast     = 100 * time.Millisecond
)

// checks asks the store whether it shows what the worker has just done, if the operation has checks. Checks have
// their own figures.
func (w *worker) checks(ctx context.Context, i int, o *model.Op) {
	if !w.work.Owned() || !o.Type.Writes() {
		return
	}
	name := string(w.container) + "/" + string(w.object)
	if uncertain(&w.result) && len(w.unknown) < mostUnknown {
		if w.unknown == nil {
			w.unknown = map[string]bool{}
		}
		w.unknown[name] = true
	}
	if !w.result.OK() {
		return
	}
	done, wrote := w.result.Ended, w.request.Writer
	found := make([]string, len(o.Checks))
	for k, c := range o.Checks {
		if w.unknown[name] || len(w.unknown) == mostUnknown {
			w.meter.checked(Key{Op: i, Check: c, Label: skipped, Lost: true}, 0, nil)
			continue
		}
		found[k] = w.ask(ctx, c, wrote)
		if found[k] == Consistent || found[k] == unanswered {
			w.meter.checked(Key{Op: i, Check: c, Label: found[k], OK: found[k] == Consistent,
				Lost: found[k] == unanswered}, 0, &w.probe)
			found[k] = ""
		}
	}
	for k, c := range o.Checks { // after each check was made once, in time
		if found[k] != "" {
			w.until(ctx, Key{Op: i, Check: c, Label: found[k]}, o.CheckWithin, done, wrote, name)
		}
	}
}

// uncertain reports whether an operation may still be run, or have been.
func uncertain(r *client.Result) bool { return r.Failure != "" || r.Status >= 500 }

// until counts a violation and asks again, at growing intervals, until the store is consistent or the time is over. A
// violation is lost if the store was not seen consistent again.
func (w *worker) until(ctx context.Context, k Key, within time.Duration, done op.Time, wrote uint64, name string) {
	detail := name
	if k.Label == Stale {
		detail = fmt.Sprintf("%s has write %016x, not %016x", name, w.stale, wrote)
	}
	end, pause := done+op.Time(within), askFirst
	for now := w.config.Clock.Now(); now < end && w.sleep(ctx,
		min(now+op.Time(pause), end)); now = w.config.Clock.Now() {
		if w.ask(ctx, k.Check, wrote) == Consistent {
			w.probe.Detail = detail
			w.meter.checked(k, w.probe.Ended-done, &w.probe)
			return
		}
		pause = min(2*pause, askLast)
	}
	k.Lost = true
	w.probe.Detail = detail
	w.meter.checked(k, 0, &w.probe)
}

// ask makes one check of the object of the last request.
func (w *worker) ask(ctx context.Context, c model.IntegrityCheck, wrote uint64) string {
	r := client.Request{Verb: client.List, Container: w.container, Object: w.object, Length: -1, MaxKeys: 1}
	switch c {
	case model.ReadAfterWrite:
		r.Verb, r.Verify = client.Get, true
	case model.ReadAfterDelete:
		r.Verb = client.Head
	}
	w.client.Do(ctx, &r, &w.probe)
	p := &w.probe
	answered := p.Failure == "" && p.Status >= 200 && p.Status < 300
	switch {
	case r.Verb == client.List && !answered:
		return unanswered
	case c == model.ListAfterWrite && !p.Listed, c == model.ReadAfterWrite && p.Failure == "" && p.Status == 404:
		return Missing
	case c == model.ListAfterDelete && p.Listed, c == model.ReadAfterDelete && answered:
		return Remains
	case r.Verb == client.List, c == model.ReadAfterDelete && p.Failure == "" && p.Status == 404:
		return Consistent
	case !answered:
		return unanswered
	case p.Violation != "":
		return string(p.Violation)
	case p.Writer != wrote:
		w.stale = p.Writer
		return Stale
	}
	return Consistent
}

// checked counts one check; after is how long the store was seen inconsistent.
func (m *meter) checked(k Key, after op.Time, r *client.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tally(k)
	c := &t.counts
	c.N++
	if r != nil {
		c.Attempts += int64(r.Attempts)
		if c.Detail == "" && !k.OK {
			c.Detail = detail(r.Detail)
		}
	}
	if after > 0 {
		t.response.Record(int64(after))
	}
}

// Violated are how many checks found the store inconsistent.
func (c *CheckFigures) Violated() (n int64) {
	for _, v := range c.Violations {
		n += v.N
	}
	return n
}

// Violated are how many checks of the work found its store inconsistent, of how
// many.
func (w *WorkResult) Violated() (bad, all int64) {
	for k, c := range w.Cells {
		if k.Check == "" || k.Label == unanswered || k.Label == skipped {
			continue
		}
		if all += c.N; !k.OK {
			bad += c.N
		}
	}
	return bad, all
}

// checksOf are the figures of an operation's checks, in its order.
func (w *WorkResult) checksOf(i int) ([]CheckFigures, error) {
	var all []CheckFigures
	for _, check := range w.Work.Ops[i].Checks {
		f := CheckFigures{Check: check}
		kinds := map[string]*Violation{}
		for k, c := range w.Cells {
			if k.Op != i || k.Check != check {
				continue
			}
			if err := f.add(k, c, kinds); err != nil {
				return nil, err
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			f.Violations = append(f.Violations, *kinds[kind])
		}
		all = append(all, f)
	}
	return all, nil
}

func (c *CheckFigures) add(k Key, cell *Cell, kinds map[string]*Violation) error {
	switch k.Label {
	case unanswered:
		c.Unanswered += cell.N
		return nil
	case skipped:
		c.Skipped += cell.N
		return nil
	}
	if c.Done += cell.N; k.OK {
		return nil
	}
	v := kinds[k.Label]
	if v == nil {
		v = &Violation{Kind: k.Label, Until: hist.New()}
		kinds[k.Label] = v
	}
	if v.N += cell.N; k.Lost {
		v.Lasting += cell.N
	}
	if v.Detail == "" {
		v.Detail = cell.Detail
	}
	return v.Until.Merge(cell.Response)
}
