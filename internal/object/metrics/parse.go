// Package metrics turns the files of an object workload's instances into the metrics of a run.
package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// Parse is the parser.Func of object workloads: it reads the file of one shard (*.objects.jsonl).
//
// Metrics are named after operations in the only measured stage; in other stages the stage's name is the prefix:
// main.read, prepare.write. With several works in a stage each also has its own metrics, such as WORK.read.
// Histograms are exact; the response counts from when an operation was due.
func Parse(in parser.Input) (parser.Result, error) {
	p, err := readShard(in.Files)
	if err != nil {
		return parser.Result{}, err
	}
	switch {
	case in.Started.Known() && p.Barrier.Known():
		p.Shift(in.Started - p.Barrier)
	case in.AtWall != nil:
		p.Shift(in.AtWall(p.Wall))
	}
	o := objects{part: p}
	o.judge()
	for i := range p.Stages {
		if s := &p.Stages[i]; len(s.Works) > 0 {
			if err := o.stage(s); err != nil {
				return o.res, fmt.Errorf("stage %s: %w", s.Name, err)
			}
		}
	}
	return o.res, nil
}

// readShard finds and reads the file of a shard.
func readShard(files fs.FS) (*coordinator.Shard, error) {
	found := ""
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if ok, _ := path.Match("*.objects.jsonl", path.Base(name)); err == nil && !d.IsDir() && ok {
			found = cmp.Or(found, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if found == "" {
		return nil, errors.New("there is no *.objects.jsonl: the program ended before it began")
	}
	f, err := files.Open(found)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	p, err := coordinator.ReadShard(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found, err)
	}
	return p, nil
}

// objects collects the metrics of one shard.
type objects struct {
	part *coordinator.Shard
	res  parser.Result
}

func (o *objects) warn(code, format string, args ...any) {
	o.res.Warnings = append(o.res.Warnings, parser.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// judge warns of missing data and of reasons to doubt the figures.
func (o *objects) judge() {
	p := o.part
	who := fmt.Sprintf("part %d of %d", p.Index+1, p.Parts)
	if p.Torn {
		o.warn("partLost", "%s was lost: what it wrote ends without its last line", who)
		for _, m := range p.Missing() {
			o.warn("partLost", "%s, %s", who, m)
		}
	}
	if p.Err != "" {
		o.warn("objectsFailed", "%s: %s", who, p.Err)
	}
	if text, missing := loadgen.MissingInLog(p.Unlogged, p.LogErr); missing {
		o.warn(loadgen.LogIncomplete, "%s: %s", who, text)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		for _, f := range s.Findings() {
			o.res.Warnings = append(o.res.Warnings, parser.Warning{Code: f.Code, Invalid: f.Invalid,
				Message: who + ", " + f.Text})
		}
		if len(s.Outages) > 0 {
			if o.res.Outages == nil {
				o.res.Outages = map[string][]metric.Outage{}
			}
			o.res.Outages[s.Name] = s.Outages
		}
		measured := slices.ContainsFunc(s.Works, func(w loadgen.WorkResult) bool { return w.Work.Kind == model.Normal })
		if limit, ok := s.Limit(); ok && measured {
			o.res.Bounds = append(o.res.Bounds, limit)
		}
	}
}

// stage puts all figures of a stage into the result.
func (o *objects) stage(s *coordinator.ShardStage) error {
	prefix := stagePrefix(&o.part.Workload, s.Name)
	var each []loadgen.Metrics
	for i := range s.Works {
		m, err := s.Works[i].Metrics()
		if err != nil {
			return err
		}
		each = append(each, m)
		if err := o.slices(s, i, prefix); err != nil {
			return err
		}
	}
	all, err := loadgen.Together(each)
	if err != nil {
		return err
	}
	o.metrics(prefix, all)
	if err := o.series(prefix, s, func(int) bool { return true }); err != nil {
		return err
	}
	if len(s.Works) > 1 {
		for i, m := range each {
			own := prefix + s.Works[i].Work.Name + "."
			o.metrics(own, m)
			if err := o.series(own, s, func(work int) bool { return work == i }); err != nil {
				return err
			}
		}
	}
	if s.TokenRequests > 0 {
		o.res.Scalars = append(o.res.Scalars, metric.Scalar{Metric: s.Name + loadgen.TokenRequests, Unit: metric.Count,
			Value: float64(s.TokenRequests)})
	}
	if d, _, ok := s.CPUPerOp(); ok {
		o.res.Scalars = append(o.res.Scalars, metric.Scalar{Metric: s.Name + ".cpuPerOp", Unit: metric.Nanoseconds,
			Value: float64(d)})
	}
	return nil
}

// stagePrefix is the prefix of the names of a stage's metrics.
func stagePrefix(w *model.Workload, stage string) string {
	normal := func(s model.Stage) bool {
		return slices.ContainsFunc(s.Works, func(w model.Work) bool { return w.Kind == model.Normal })
	}
	measured := 0
	for _, s := range w.Stages {
		if normal(s) {
			measured++
		}
	}
	i := slices.IndexFunc(w.Stages, func(s model.Stage) bool { return s.Name == stage })
	if measured == 1 && i >= 0 && normal(w.Stages[i]) {
		return ""
	}
	return stage + "."
}

func (o *objects) metrics(prefix string, m loadgen.Metrics) {
	for _, h := range m.Histograms {
		h.Metric = prefix + h.Metric
		o.res.Totals = append(o.res.Totals, h)
	}
	for _, x := range m.Scalars {
		x.Metric = prefix + x.Metric
		o.res.Scalars = append(o.res.Scalars, x)
	}
}

// slices are the responses of each interval of a work. Those of works that go on
// side by side share the name of their stage.
func (o *objects) slices(s *coordinator.ShardStage, i int, prefix string) error {
	w := s.Works[i].Work
	intervals := loadgen.Slices{}
	add := func(list []metric.Histogram) {
		for _, h := range list {
			h.Metric = prefix + h.Metric
			o.res.Slices = append(o.res.Slices, h)
		}
	}
	for _, x := range s.Seconds {
		if x.Work != i {
			continue
		}
		list, err := intervals.Add(w, x.From, x.To, x.Cells)
		if err != nil {
			return err
		}
		add(list)
	}
	add(intervals.End(w))
	return nil
}

// wholeSecond is how much a reported second may differ from one second.
const wholeSecond = 20 * time.Millisecond

// series are the rates of the wanted works by second, added up over concurrent works. A remainder of less than half a
// second at the end of a work belongs to the second before; any other incomplete second is a series of its own with
// its own step, so that all add up to the totals.
func (o *objects) series(prefix string, s *coordinator.ShardStage, wanted func(work int) bool) error {
	rates := rates{seconds: map[int64]*second{}, units: map[string]string{}}
	for i := range s.Works {
		if !wanted(i) {
			continue
		}
		cells, from, to, row := loadgen.Cells{}, op.Never, op.Never, int64(0)
		for _, x := range s.Seconds {
			if x.Work != i {
				continue
			}
			k := max(0, int64((x.To-s.Works[i].Began+op.Time(time.Second)/2)/op.Time(time.Second))-1)
			if from.Known() && k != row {
				rates.add(&s.Works[i], row, from, to, cells)
				cells, from = loadgen.Cells{}, op.Never
			}
			if !from.Known() {
				from, row = x.From, k
			}
			to = x.To
			if err := cells.Merge(x.Cells); err != nil {
				return err
			}
		}
		if from.Known() {
			rates.add(&s.Works[i], row, from, to, cells)
		}
	}
	o.res.Series = append(o.res.Series, rates.series(prefix)...)
	return nil
}

// rates of works by the number of the second.
type rates struct {
	seconds map[int64]*second
	units   map[string]string // by metric
}

type second struct {
	at   op.Time
	long op.Time
	sums map[string]float64 // of rates × ns
}

func (r *rates) add(w *loadgen.WorkResult, k int64, from, to op.Time, cells loadgen.Cells) {
	if r.seconds[k] == nil {
		r.seconds[k] = &second{at: from, sums: map[string]float64{}}
	}
	x := r.seconds[k]
	x.long = max(x.long, to-from)
	for _, m := range loadgen.Rates(w.Work, from, to, cells) {
		r.units[m.Metric] = m.Unit
		x.sums[m.Metric] += m.Value * float64(to-from)
	}
}

func (r *rates) series(prefix string) (all []metric.Series) {
	for _, name := range slices.Sorted(maps.Keys(r.units)) {
		list := metric.Series{Metric: prefix + name, Unit: r.units[name], Step: int64(time.Second)}
		var parts []metric.Series
		for _, k := range slices.Sorted(maps.Keys(r.seconds)) {
			x := r.seconds[k]
			p := metric.Point{At: x.at, Value: x.sums[name] / float64(x.long)}
			if d := x.long - op.Time(time.Second); max(d, -d) < op.Time(wholeSecond) {
				list.Points = append(list.Points, p)
			} else {
				parts = append(parts, metric.Series{Metric: list.Metric, Unit: list.Unit, Step: int64(x.long),
					Points: []metric.Point{p}})
			}
		}
		if len(list.Points) > 0 {
			all = append(all, list)
		}
		all = append(all, parts...)
	}
	return all
}

// Names are the latencies that Parse can find for a workload.
func Names(w *model.Workload) []string {
	var names []string
	add := func(prefix string, work *model.Work) {
		for i := range work.Ops {
			name := prefix + work.Ops[i].Name
			names = append(names, name, name+metric.Service, name+".connect", name+".firstByte", name+".drain")
			if work.Rate != nil {
				names = append(names, name+".late")
			}
			for _, step := range work.Ops[i].Steps() {
				names = append(names, name+"."+step)
			}
		}
	}
	for i := range w.Stages {
		s := &w.Stages[i]
		prefix := stagePrefix(w, s.Name)
		for j := range s.Works {
			add(prefix, &s.Works[j])
			if len(s.Works) > 1 {
				add(prefix+s.Works[j].Name+".", &s.Works[j])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
