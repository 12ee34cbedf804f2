package parser

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// fioMetrics are those over all jobs.
var fioMetrics = func() []metric.Declaration {
	list := []metric.Declaration{latencyOf(metric.Sync, "latency of syncs"),
		declare("cpu.user", "% of a CPU", metric.Level, metric.Lower, "CPU time in user mode, the sum over the jobs"),
		declare("cpu.system", "% of a CPU", metric.Level, metric.Lower, "CPU time in the kernel")}
	for _, direction := range fioFigured {
		list = append(list, latencyOf(direction, "latency of "+direction+"s"),
			rateOf(direction+metric.IOPS, direction+"s per second"),
			bandwidthOf(direction+metric.Bandwidth, "bytes per second"),
			countOf(direction+metric.IOs, "number of "+direction+"s"),
			declare(direction+metric.Transferred, metric.Bytes, metric.Quantity, "", "bytes in total"))
	}
	return list
}()

// Fio reads the JSON+ reports (*.json) and the histogram logs
// (*_clat_hist.N.log) of one container.
//
// Totals are of "lat" (submission and completion, lat_percentiles=1) where fio has its
// bins, else of "clat". n, sum, min and max are fio's; quantiles are within 1/128 (half a
// bin). Slices are of "clat", the only log that fio writes: with asynchronous engines they
// lack the submission, which a frozen file system blocks. The slice after a log's last row
// is the difference to the total.
//
// Metrics are "read", "write", "trim" and (totals only) "sync". With jobs of several names
// each also has its own "<job>.read".
func Fio(in Input) (Result, error) {
	f := fioRun{work: work{in: in}}
	err := f.parse()
	return f.res, err
}

// parse reads the reports and logs, and adds their figures.
func (f *fioRun) parse() error {
	_, err := f.run("fio", "there is no *.json and no *_clat_hist.*.log: run fio with --output-format=json+ "+
		"--output=FILE.json, and name the file among the outputs", f.load, func() {
		f.judge()
		f.totals()
		f.scalars()
		f.slices()
	})
	return errors.Join(err, f.err)
}

// load reads the reports and logs.
func (f *fioRun) load() (found bool, err error) {
	err = f.walk(func(name string) error {
		m := histLogName.FindStringSubmatch(name)
		switch {
		case m != nil:
			found = true
			return f.loadLog(name, m[1])
		case path.Ext(name) == ".json":
			found = true
			return f.loadReport(name)
		}
		return nil
	}, ".json", ".log")
	slices.SortStableFunc(f.logs, func(a, b fioLog) int { return a.number - b.number })
	return found, err
}

// terminationMessage matches fio's output after SIGTERM.
var terminationMessage = re(`^\s*(fio: terminating on signal 15\s*)+$`)

func (f *fioRun) loadReport(name string) error {
	b, ok, err := f.text(name, maxReport)
	if !ok {
		return err
	}
	out, err := decodeFio(b)
	if err != nil {
		f.warn("outputUnread", "%s %v", name, err)
		return nil
	}
	if out.between != "" && !(f.in.Terminated && terminationMessage.MatchString(out.between)) {
		f.warn("fioMessages", "%s: fio printed: %s", name, out.between)
	}
	for _, what := range out.findings() {
		f.warn("outputUnread", "%s: %s", name, what)
	}
	if len(out.reports) == 0 || out.reports[len(out.reports)-1].truncated {
		f.warn("fioTruncated", "%s holds no whole report (fio was killed or refused to start): totals are missing",
			name)
	}
	for _, r := range out.reports {
		if r.truncated {
			continue
		}
		f.reports = append(f.reports, r)
		for i := range r.Jobs {
			if j := &r.Jobs[i]; j.Host != fioAllClients || len(r.Jobs) == 1 { // it is the sum of the others
				f.jobs = append(f.jobs, j)
			}
		}
	}
	return nil
}

func (f *fioRun) loadLog(name, number string) error {
	r, err := f.in.Files.Open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	rows, err := readHistLog(r)
	if err != nil {
		f.warn("histLogCut", "%s %v: the rest is left out", name, err)
	}
	n, _ := strconv.Atoi(number)
	f.logs = append(f.logs, fioLog{n, rows})
	return nil
}

// judge warns about doubtful figures.
func (f *fioRun) judge() {
	for _, j := range f.jobs {
		if j.Error != 0 {
			f.warn("fioError", "%sended with error %d", f.label(j), j.Error)
		} else if j.Errors > 0 {
			f.warn("fioErrors", "%s%d I/Os failed (continue_on_error): rates count the others", f.label(j), j.Errors)
		}
		if known := len(j.Options)+len(j.report.Global) > 0; known && !j.direct() {
			f.warn("notDirect", "%sdirect=0: the page cache is measured with the storage", f.label(j))
		}
		switch {
		case j.flag("gtod_reduce", false):
			f.warn("gtodReduce", "%sgtod_reduce=1: no latency was measured", f.label(j))
		case !j.flag("clat_percentiles", true) && !j.flag("lat_percentiles", false):
			f.warn("percentilesOff", "%sclat_percentiles=0: the distribution of latency was not kept", f.label(j))
		case !j.flag("lat_percentiles", false):
			f.warn("latMissing", "%slat_percentiles is off: latencies are of the completion alone (clat)", f.label(j))
		}
		var ios int64
		for name, d := range j.directions {
			ios += d.IOs
			if m := max(d.Lat.Max, d.Clat.Max); m >= fioSaturates {
				f.warn("fioSaturated", "%s%s: the largest latency is %v: fio's histogram ends at %v",
					f.label(j), name, time.Duration(m), time.Duration(fioSaturates))
			}
		}
		if ios == 0 {
			f.add(Warning{Code: "noIO", Message: f.label(j) + "no I/O was done", Invalid: true})
		}
		f.compareOptions(j)
	}
}

// fioGroup are jobs with the prefix of their metrics.
type fioGroup struct {
	prefix string
	jobs   []*fioJob
}

// groups returns all jobs, and those of each name if there are several.
func (f *fioRun) groups() []fioGroup {
	list := []fioGroup{{"", f.jobs}}
	for _, j := range f.jobs {
		prefix := j.Name + "."
		i := slices.IndexFunc(list[1:], func(g fioGroup) bool { return g.prefix == prefix }) + 1
		if i == 0 {
			i, list = len(list), append(list, fioGroup{prefix: prefix})
		}
		list[i].jobs = append(list[i].jobs, j)
	}
	if len(list) == 2 {
		return list[:1]
	}
	return list
}

// totals makes one histogram for each metric.
func (f *fioRun) totals() {
	for _, g := range f.groups() {
		for _, direction := range append(slices.Clone(fioFigured), metric.Sync) {
			f.totalOf(g.prefix+direction, direction, g.jobs)
		}
	}
}

func (f *fioRun) totalOf(name, direction string, jobs []*fioJob) {
	basis := "lat"
	for _, j := range jobs {
		if d := j.directions[direction]; max(d.Lat.N, d.Clat.N) > 0 && d.Lat.Bins.none() {
			basis = "clat"
		}
	}
	h, from, to := hist.New(), op.Time(math.MaxInt64), op.Time(math.MinInt64)
	for _, j := range jobs {
		d := j.directions[direction]
		l := &d.Lat
		if basis == "clat" {
			l = &d.Clat
		}
		one, err := l.exact()
		if err != nil {
			f.warn("latencyDoubtful", "%s%s: %v", f.label(j), direction, err)
		}
		f.check(name+": ", h.Merge(one))
		a, b := f.span(j)
		from, to = min(from, a), max(to, b)
	}
	if h.N() > 0 {
		f.total(latencyOf(name, ""), basis, from, to, h)
	}
}

// exact returns the histogram with fio's sum, min and max. With an error it has what could
// be read.
func (l *fioLatency) exact() (*hist.Histogram, error) {
	if l.Bins.err != nil || l.Bins.n == 0 {
		return hist.New(), l.Bins.err
	}
	h, err := l.Bins.hist()
	if err != nil {
		return hist.New(), err
	}
	sum := l.Mean * float64(l.N)
	switch {
	case l.Bins.n != l.N:
		return h, fmt.Errorf("bins hold %d values, N says %d", l.Bins.n, l.N)
	case sum >= math.MaxInt64:
		return h, errors.New("the sum of all latencies overflows")
	}
	return h, h.SetExact(int64(math.Round(sum)), l.Min, l.Max)
}

// scalars are fio's figures, summed over concurrent jobs.
func (f *fioRun) scalars() {
	for _, g := range f.groups() {
		prefix, jobs := g.prefix, g.jobs
		if len(jobs) == 0 {
			continue
		}
		apart := prefix == "" && f.runInTurn()
		if apart && !f.inTurn {
			f.warn("jobsInTurn", "jobs ran one after the other (stonewall): rates are given for each job, not in sum")
		}
		var user, system float64
		for _, j := range jobs {
			user += j.UserCPU
			system += j.SysCPU
		}
		f.scalar(prefix+"cpu.user", "% of a CPU", user)
		f.scalar(prefix+"cpu.system", "% of a CPU", system)
		for _, direction := range fioFigured {
			d := sumOf(jobs, direction)
			if d.IOs == 0 {
				continue
			}
			f.scalar(prefix+direction+metric.IOs, "1", float64(d.IOs))
			f.scalar(prefix+direction+metric.Transferred, metric.Bytes, float64(d.Bytes))
			if !apart {
				f.scalar(prefix+direction+metric.IOPS, metric.PerSecond, d.IOPS)
				f.scalar(prefix+direction+metric.Bandwidth, metric.BytesPerSecond, d.BytesPS)
			}
		}
	}
}

// sumOf adds the numbers and rates of one direction of jobs.
func sumOf(jobs []*fioJob, direction string) (d fioDirection) {
	for _, j := range jobs {
		x := j.directions[direction]
		d.IOs, d.Bytes, d.IOPS, d.BytesPS = d.IOs+x.IOs, d.Bytes+x.Bytes, d.IOPS+x.IOPS, d.BytesPS+x.BytesPS
	}
	return d
}

func (f *fioRun) scalar(name, unit string, v float64) {
	f.res.Scalars = append(f.res.Scalars, metric.Scalar{Metric: name, Unit: unit, Value: v})
}
