package fit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/trace"
)

// Profile configures how a Benchmark is fitted to a trace.
type Profile struct {
	Name string
	// Share is the share of the objects, and of the rates.
	Share float64
	// TimeScale is the factor of all times: 0.1 divides lifetimes and gaps by 10.
	TimeScale float64
	// StorageClass is the class of all volumes; empty: the most frequent class in the trace.
	StorageClass string
	// Quantiles is the number of quantiles of a lifetime; 0: 20.
	Quantiles int
}

const (
	// maxCount is the schema's limit of objects that one action creates at the start.
	maxCount = 10_000
	// maxQuantiles keeps the Benchmark readable.
	maxQuantiles = 1000
)

// Benchmark returns a Benchmark with the rates, the mix, the population and the lifetimes of a trace.
// Comments in it give the quality of each fit. A trace without operations that a Benchmark can have is an
// error.
func (p Profile) Benchmark(records []trace.Record) (string, error) {
	if !(p.Share > 0) || !(p.TimeScale > 0) || p.Share > 1 {
		return "", fmt.Errorf("invalid share %g or time scale %g: both must be more than 0, and the share at most 1",
			p.Share, p.TimeScale)
	}
	if p.Quantiles < 0 || p.Quantiles > maxQuantiles {
		return "", fmt.Errorf("invalid number of quantiles %d: want 1 to %d", p.Quantiles, maxQuantiles)
	}
	if p.Quantiles == 0 {
		p.Quantiles = 20
	}
	w := &writer{Profile: p, d: describe(records)}
	if p.StorageClass == "" {
		w.StorageClass = commonest(records, func(r *trace.Record) string {
			if r.Op == trace.Create && r.Kind == trace.Volume {
				return r.Class
			}
			return ""
		})
	}
	w.attach = len(w.d.ops[opKind{trace.Attach, trace.Attachment}])+len(w.d.ops[opKind{trace.Create,
		trace.Workload}]) > 0
	w.size = medianSize(records)
	if err := w.volumes(); err != nil {
		return "", err
	}
	w.copies()
	w.changes()
	w.lives(trace.Volume, "volume", w.makers[trace.Volume])
	w.lives(trace.Snapshots, "snapshot", w.makers[trace.Snapshots])
	if len(w.actions) == 0 {
		return "", fmt.Errorf("the trace has no operation that a Benchmark can have")
	}
	return w.text(), nil
}

// writer collects the parts of the file.
type writer struct {
	Profile
	d              *description
	attach         bool
	size           int64
	actions, rates []string
	notes          []string
	makers         map[trace.Kind][]string
}

func (w *writer) action(format string, args ...any) {
	w.actions = append(w.actions, fmt.Sprintf("    - "+format, args...))
}

func (w *writer) makes(kind trace.Kind, action string) {
	if w.makers == nil {
		w.makers = map[trace.Kind][]string{}
	}
	w.makers[kind] = append(w.makers[kind], action)
}

// volumes adds the volumes that exist at the start, and those that are created later.
func (w *writer) volumes() error {
	p := w.d.kinds[trace.Volume]
	if p == nil {
		return nil
	}
	volume := []string{"size: " + strconv.Quote(strconv.FormatInt(w.size, 10))}
	if w.StorageClass != "" {
		volume = append([]string{"storageClass: " + strconv.Quote(w.StorageClass)}, volume...)
	}
	if w.attach {
		volume = append(volume, "attach: true")
	}
	spec := "volume: {" + strings.Join(volume, ", ") + "}"
	n := int(math.Round(float64(p.atStart) * w.Share))
	if n > maxCount {
		return fmt.Errorf("%d volumes at the start are more than %d: want a share of at most %.2g", n, maxCount,
			float64(maxCount)/float64(p.atStart))
	}
	if n > 0 {
		w.action("{name: volumes-there, createObjSpec: {count: %d, %s}}", n, spec)
		w.makes(trace.Volume, "volumes-there")
	}
	if w.rate("volume-creation", opKind{trace.Create, trace.Volume}) {
		w.action("{name: volumes, rateName: volume-creation, createObjSpec: {%s}}", spec)
		w.makes(trace.Volume, "volumes")
	}
	return nil
}

// copies adds snapshots, restores and clones, of volumes that the run creates or else of those at the start.
func (w *writer) copies() {
	sources := w.makers[trace.Volume]
	if len(sources) == 0 {
		return
	}
	of := sources[len(sources)-1]
	if w.rate("snapshot-taking", opKind{trace.Snapshot, trace.Snapshots}) {
		w.action("{name: snapshots, rateName: snapshot-taking, snapshotSpec: {actionName: %s, select: random}}", of)
		w.makes(trace.Snapshots, "snapshots")
	}
	if len(w.makers[trace.Snapshots]) > 0 && w.rate("restoring", opKind{trace.Restore, trace.Volume}) {
		w.action("{name: restores, rateName: restoring, restoreSpec: {actionName: snapshots, select: random}}")
		w.makes(trace.Volume, "restores")
	}
	if w.rate("cloning", opKind{trace.Clone, trace.Volume}) {
		w.action("{name: clones, rateName: cloning, cloneSpec: {actionName: %s, select: random}}", of)
		w.makes(trace.Volume, "clones")
	}
}

// changes adds resizes. A trace has too little information for other changes.
func (w *writer) changes() {
	sources := w.makers[trace.Volume]
	if len(sources) > 0 && w.rate("resizing", opKind{trace.Resize, trace.Volume}) {
		w.action("{name: resizes, rateName: resizing, resizeSpec: {actionName: %s, select: random, increaseBy: 1Gi}}",
			sources[len(sources)-1])
	}
	for _, k := range []opKind{{trace.Modify, trace.Volume}, {trace.Create, trace.Workload},
		{trace.Delete, trace.Workload},
		{trace.Attach, trace.Attachment}, {trace.Detach, trace.Attachment}} {
		if n := len(w.d.ops[k]); n > 0 {
			why := "attaching is part of creating (attach: true)"
			if k.op == trace.Modify {
				why = "the trace does not say what is modified"
			}
			w.notes = append(w.notes, fmt.Sprintf("left out: %s of %s, %d times: %s", k.op, k.kind, n, why))
		}
	}
}

// lives adds deletions with the lifetimes of the trace's objects.
func (w *writer) lives(kind trace.Kind, noun string, makers []string) {
	p := w.d.kinds[kind]
	if p == nil || len(makers) == 0 {
		return
	}
	l := estimate(p.lives)
	if l.Ended == 0 {
		return
	}
	for _, m := range makers {
		w.action("{name: %s-end, rateName: %s-lives, deleteSpec: {actionName: %s}}", m, noun, m)
	}
	n := min(w.Quantiles, max(1, l.Ended))
	var quantiles []string
	for _, q := range l.quantiles(n) {
		quantiles = append(quantiles, w.stretched(q))
	}
	why := fmt.Sprintf("Kaplan–Meier: %d ends, %d censored, mean %v, median %v", l.Ended, l.Censored,
		l.Mean.Round(time.Millisecond), l.Median.Round(time.Millisecond))
	if l.Tail > 0.01 {
		why += fmt.Sprintf("; %.0f %% live longer than was seen, of which the length is a guess", 100*l.Tail)
	}
	w.rates = append(w.rates, fmt.Sprintf("    # %s", why),
		fmt.Sprintf("    - {name: %s-lives, maxInFlight: 0, lifetimeRateSpec: {quantiles: [%s]}}", noun,
			strings.Join(quantiles, ", ")))
}

// rate adds the rate of an operation. It returns false if the trace has no such operations.
func (w *writer) rate(name string, k opKind) bool {
	times := w.d.times[k]
	if len(times) == 0 {
		return false
	}
	r := rateOf(times, w.d.length)
	spec := ""
	switch r.Form {
	case "constant":
		spec = fmt.Sprintf("constantRateSpec: {perSecond: %s}", w.scaled(r.PerSecond))
	case "poisson":
		spec = fmt.Sprintf("poissonRateSpec: {perSecond: %s}", w.scaled(r.PerSecond))
	case "ramp":
		var stages []string
		for _, s := range r.Stages {
			stages = append(stages, fmt.Sprintf("{duration: %s, perSecond: %s}", w.stretched(s.Length),
				w.scaled(s.PerSecond)))
		}
		start := ""
		if r.Start > 0 {
			start = fmt.Sprintf("startPerSecond: %s, ", w.scaled(r.Start))
		}
		spec = fmt.Sprintf("rampRateSpec: {%sstages: [%s]}", start, strings.Join(stages, ", "))
	}
	w.rates = append(w.rates, "    # "+r.Why, fmt.Sprintf("    - {name: %s, maxInFlight: 0, %s}", name, spec))
	return true
}

// scaled scales a rate for the Benchmark.
func (w *writer) scaled(perSecond float64) string {
	return strconv.FormatFloat(perSecond*w.Share/w.TimeScale, 'g', 6, 64)
}

// stretched scales a duration for the Benchmark.
func (w *writer) stretched(d time.Duration) string {
	s := time.Duration(float64(d) * w.TimeScale)
	return max(s.Round(max(s/100000, time.Microsecond)), time.Microsecond).String()
}

func (w *writer) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Fitted to a trace of %v by cnsbench trace profile; share of the objects %g, time scale %g.\n",
		time.Duration(w.d.length), w.Share, w.TimeScale)
	for _, n := range w.notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	fmt.Fprintf(&b, "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: %s}\nspec:\n  runtime: %s\n",
		w.Name, w.stretched(time.Duration(w.d.length)))
	fmt.Fprintf(&b, "  actions:\n%s\n", strings.Join(w.actions, "\n"))
	if len(w.rates) > 0 {
		fmt.Fprintf(&b, "  rates:\n%s\n", strings.Join(w.rates, "\n"))
	}
	return b.String()
}

// medianSize returns the median size of created volumes, or 1 GiB if no record has a size.
func medianSize(records []trace.Record) int64 {
	var sizes []int64
	for _, r := range records {
		if r.Kind == trace.Volume && r.Op == trace.Create && r.Size > 0 {
			sizes = append(sizes, r.Size)
		}
	}
	if len(sizes) == 0 {
		return 1 << 30
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2]
}

func commonest(records []trace.Record, of func(*trace.Record) string) string {
	counts, best := map[string]int{}, ""
	for i := range records {
		if v := of(&records[i]); v != "" {
			counts[v]++
			if counts[v] > counts[best] || counts[v] == counts[best] && v < best {
				best = v
			}
		}
	}
	return best
}
