package podlogs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Limits of reading.
const (
	maxCalls    = 400     // requests for logs
	atOnce      = 4       // of them in flight
	maxPerRead  = 4 << 20 // bytes of one request
	maxLine     = 16 << 10
	callTimeout = 10 * time.Second
	listTimeout = 20 * time.Second // of lists of pods; a cluster that is lost does not answer
	maxNotes    = 40
)

// Keep receives a line; see engine.LogReader.
type Keep func(at op.Time, source, line string)

// reader reads the logs of one run.
type reader struct {
	*core.Run
	keep Keep

	mu    sync.Mutex
	notes []string
}

// note adds a note that is not there yet.
func (r *reader) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := fmt.Sprintf(format, args...); !slices.Contains(r.notes, n) && len(r.notes) < maxNotes {
		r.notes = append(r.notes, n)
	}
}

// Read reads the logs of what served the run's ops in the windows; see engine.LogReader. Lines have the time of their
// node's clock, as far as the wall clock of the runner agrees with it; where it does not, a note says so.
func Read(ctx context.Context, run *core.Run, windows []engine.LogWindow, keep Keep) []string {
	r := &reader{Run: run, keep: keep}
	pods := r.pods(ctx)
	list, notes := choose(pods, run.DriversInUse(), r.otherDrivers(), r.isMine)
	r.notes = append(r.notes, notes...)
	if len(list) == 0 || len(windows) == 0 {
		return r.notes
	}
	r.compareClocks(ctx, pods, list)
	windows = merge(windows, max(1, maxCalls/len(list)-1)) // one for the begin of each log
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range list {
		g.Go(func() error { r.read(ctx, &list[i], windows); return nil })
	}
	_ = g.Wait() // errors are notes
	return r.notes
}

// pods lists the pods of all namespaces, or the run's if the right is missing.
func (r *reader) pods(ctx context.Context) (pods []*corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, _, err := r.Client.List(ctx, api.Pods, "", metav1.ListOptions{})
	if err != nil {
		if apierrors.IsForbidden(err) {
			err = errors.New("the right is missing: list pods in all namespaces")
		}
		r.note("the logs of drivers, sidecars and controllers are not read: %v", err)
		own := metav1.ListOptions{LabelSelector: r.Selector()}
		if list, _, err = r.Client.List(ctx, api.Pods, r.Namespace, own); err != nil {
			r.note("the logs of the run's servers are not read: %v", err)
		}
	}
	for _, o := range list {
		pods = append(pods, o.(*corev1.Pod))
	}
	return pods
}

// otherDrivers lists the cluster's drivers that the run does not use.
func (r *reader) otherDrivers() (others []string) {
	used := r.DriversInUse()
	for name := range r.Drivers {
		if !slices.Contains(used, name) {
			others = append(others, name)
		}
	}
	return others
}

func (r *reader) isMine(p *corev1.Pod) bool {
	key, value, _ := strings.Cut(r.Selector(), "=")
	return p.Namespace == r.Namespace && p.Labels[key] == value
}

// merge joins the windows with the smallest gaps until at most most are left.
func merge(windows []engine.LogWindow, most int) []engine.LogWindow {
	windows = slices.Clone(windows)
	for len(windows) > most {
		at := 1
		for i := 2; i < len(windows); i++ {
			if windows[i].From-windows[i-1].To < windows[at].From-windows[at-1].To {
				at = i
			}
		}
		windows[at-1].To = windows[at].To
		windows = slices.Delete(windows, at, at+1)
	}
	return windows
}

// read reads the log of a container, and of its instance before the last restart.
func (r *reader) read(ctx context.Context, c *container, windows []engine.LogWindow) {
	if last := c.status.LastTerminationState.Terminated; last != nil {
		ended := r.at(last.FinishedAt.Time)
		for _, w := range windows {
			if w.From <= ended && !r.window(ctx, c, w, true) {
				break
			}
		}
		if c.status.RestartCount > 1 {
			r.note("%s: it restarted %d times: only its last two logs are kept by its node", c.source(),
				c.status.RestartCount)
		}
	}
	if !r.begin(ctx, c, windows[0]) {
		return
	}
	for _, w := range windows {
		if !r.window(ctx, c, w, false) {
			return
		}
	}
}

// at converts a wall-clock time. The monotonic reading of the runner's clock is dropped: a node has another one.
func (r *reader) at(t time.Time) op.Time {
	return op.Time(t.Sub(r.Session.Clock.Start().Round(0)))
}

// stampBytes is the length of a time before a line, and of what separates both.
const stampBytes = 32

// beginBytes are enough for the time of the first line.
const beginBytes = 64

// begin notes a log that begins after a window that its container was running in: nodes rotate logs and serve the
// last file only. It returns false if the log cannot be read.
func (r *reader) begin(ctx context.Context, c *container, first engine.LogWindow) bool {
	at, found := op.Never, false
	ok := r.lines(ctx, c, url.Values{"limitBytes": {strconv.Itoa(beginBytes)}}, func(t op.Time, _ string) bool {
		at, found = t, true
		return false
	})
	running := c.status.State.Running
	if ok && found && running != nil && at > first.From && r.at(running.StartedAt.Time)+op.Time(time.Second) < first.From {
		r.note("%s: its node keeps its log from %.0f s of the run on: earlier lines are missing", c.source(),
			float64(at)/1e9)
	}
	return ok
}

// window passes the lines of one window. It returns false if the log cannot be read.
func (r *reader) window(ctx context.Context, c *container, w engine.LogWindow, previous bool) bool {
	from := r.Session.Clock.Start().Round(0).Add(time.Duration(w.From))
	query := url.Values{"sinceTime": {from.UTC().Truncate(time.Second).Format(time.RFC3339)},
		"limitBytes": {strconv.Itoa(maxPerRead)}}
	source := c.source()
	if previous {
		query.Set("previous", "true")
		source += " before its restart"
	}
	read, beyond := 0, false
	ok := r.lines(ctx, c, query, func(at op.Time, line string) bool {
		read += len(line) + stampBytes
		if beyond = at > w.To; beyond {
			return false
		}
		if at >= w.From {
			r.keep(at, source, line)
		}
		return true
	})
	if ok && !beyond && read >= maxPerRead-maxLine {
		r.note("%s: more than %d MiB of log in a window: the rest is not read", c.source(), maxPerRead>>20)
	}
	return ok
}

// lines passes the lines of a log with their times until each returns false. A failure is noted.
func (r *reader) lines(ctx context.Context, c *container, query url.Values,
	each func(at op.Time, line string) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	query.Set("container", c.name)
	query.Set("timestamps", "true")
	body, err := r.Client.Stream(ctx, api.Pods.Path(c.namespace, c.pod, "log"), query)
	switch {
	case apierrors.IsForbidden(err):
		r.note("the right is missing: get pods/log in namespace %s: logs of its pods are not kept", c.namespace)
		return false
	case err != nil:
		r.note("%s: its log cannot be read: %v", c.source(), err)
		return false
	}
	defer func() { _ = body.Close() }()
	for l, err := range bounded.Lines(body, maxLine) {
		if err != nil {
			r.note("%s: its log was not read to its end: %v", c.source(), err)
			return false
		}
		stamp, text, _ := strings.Cut(l.String(), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			continue // the rest of a line that the node wrote in parts
		}
		if !each(r.at(at), text) {
			break
		}
	}
	return true
}
