package parse

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

func isTruncated(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

var histLogName = regexp.MustCompile(`_clat_hist(?:\.(\d+))?\.log$`)

var fioMetrics = []string{"read", "write", "trim"}

// Fio reads the JSON+ reports (*.json) and the histogram logs
// (*_clat_hist.N.log) of one container.
//
// Totals are of "lat" (submission + completion, lat_percentiles=1) where fio
// gave its bins, else of "clat"; n, sum, min and max are fio's own, quantiles
// are within 1/128 (half of fio's bin). Slices are of "clat": fio logs no
// other; with asynchronous engines they miss what blocks the submission, as
// a frozen filesystem does. The part after a log's last row, which fio does
// not write, is the difference to the total.
//
// Metrics are "read", "write", "trim" and (totals only) "sync". Where jobs of
// several names ran, each has its own "<job>.read" beside.
func Fio(in Input) (Result, error) {
	f := fioRun{in: in}
	if err := f.load(); err != nil {
		return f.res, err
	}
	f.judge()
	if err := f.totals(); err != nil {
		return f.res, err
	}
	f.scalars()
	if err := f.slices(); err != nil {
		return f.res, err
	}
	return f.res, nil
}

// fioRun is the work on one container's files.
type fioRun struct {
	in      Input
	reports []*fioReport
	jobs    []*fioJob // of all reports, in order
	logs    []fioLog
	res     Result
}

type fioLog struct {
	name   string
	number int // of the job, from 1; 0: of all
	rows   []histRow
}

func (f *fioRun) warn(code, format string, args ...any) {
	w := Warning{Code: code, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(f.res.Warnings, w) {
		f.res.Warnings = append(f.res.Warnings, w)
	}
}

// load reads all files that are fio's.
func (f *fioRun) load() error {
	var found bool
	err := fs.WalkDir(f.in.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
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
	})
	if err != nil {
		return fmt.Errorf("fio: %w", err)
	}
	if !found {
		return errors.New("fio: there is no *.json and no *_clat_hist.*.log: run fio with --output-format=json+ --output=FILE.json, and name the file among the outputs")
	}
	slices.SortStableFunc(f.logs, func(a, b fioLog) int { return a.number - b.number })
	return nil
}

func (f *fioRun) loadReport(name string) error {
	b, err := fs.ReadFile(f.in.Files, name)
	if err != nil {
		return err
	}
	r, err := decodeFio(b)
	if err != nil {
		f.warn("outputUnread", "%s %v", name, err)
		return nil
	}
	if r.preamble != "" {
		f.warn("fioMessages", "%s: fio said: %s", name, r.preamble)
	}
	if r.truncated {
		f.warn("fioTruncated", "%s holds no whole report (fio was killed or refused to start): totals are missing", name)
		return nil
	}
	f.reports = append(f.reports, r)
	for i := range r.Jobs {
		f.jobs = append(f.jobs, &r.Jobs[i])
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
	f.logs = append(f.logs, fioLog{name: name, number: n, rows: rows})
	return nil
}

// judge warns of what makes figures doubtful.
func (f *fioRun) judge() {
	for _, j := range f.jobs {
		if j.Error != 0 {
			f.warn("fioError", "job %s ended with error %d", j.Name, j.Error)
		}
		if !j.direct() {
			f.warn("notDirect", "job %s: direct=0: the page cache is measured with the storage", j.Name)
		}
		switch {
		case j.flag("gtod_reduce", false):
			f.warn("gtodReduce", "job %s: gtod_reduce=1: no latency was measured", j.Name)
		case !j.flag("clat_percentiles", true) && !j.flag("lat_percentiles", false):
			f.warn("percentilesOff", "job %s: clat_percentiles=0: the distribution of latency was not kept", j.Name)
		case !j.flag("lat_percentiles", false):
			f.warn("latMissing", "job %s: lat_percentiles is off: latencies are of the completion alone (clat)", j.Name)
		}
		var ios int64
		for name, d := range j.directions() {
			ios += d.IOs
			if m := max(d.Lat.Max, d.Clat.Max); m >= fioSaturates {
				f.warn("fioSaturated", "job %s %s: the largest latency is %v: fio's histogram ends at %v", j.Name, name, time.Duration(m), time.Duration(fioSaturates))
			}
		}
		if ios == 0 {
			f.warn("noIO", "job %s did no I/O", j.Name)
		}
	}
}

// groups are the jobs by the prefix of their metrics: all together, and, when
// they have several names, those of each name.
func (f *fioRun) groups() ([]string, map[string][]*fioJob) {
	order, groups := []string{""}, map[string][]*fioJob{"": f.jobs}
	byName := make(map[string][]*fioJob)
	for _, j := range f.jobs {
		byName[j.Name] = append(byName[j.Name], j)
	}
	if len(byName) > 1 {
		for _, j := range f.jobs {
			if _, ok := groups[j.Name+"."]; !ok {
				order = append(order, j.Name+".")
				groups[j.Name+"."] = byName[j.Name]
			}
		}
	}
	return order, groups
}

// totals makes one histogram a metric.
func (f *fioRun) totals() error {
	order, groups := f.groups()
	for _, prefix := range order {
		for _, metric := range append(slices.Clone(fioMetrics), "sync") {
			if err := f.total(prefix+metric, metric, groups[prefix]); err != nil {
				return fmt.Errorf("fio: %s: %w", prefix+metric, err)
			}
		}
	}
	return nil
}

func (f *fioRun) total(name, metric string, jobs []*fioJob) error {
	basis := "lat"
	for _, j := range jobs {
		if d := j.directions()[metric]; max(d.Lat.N, d.Clat.N) > 0 && len(d.Lat.Bins) == 0 {
			basis = "clat"
		}
	}
	h, from, to := hist.New(), op.Time(math.MaxInt64), op.Time(math.MinInt64)
	for _, j := range jobs {
		d := j.directions()[metric]
		l := &d.Lat
		if basis == "clat" {
			l = &d.Clat
		}
		one, err := l.exact()
		if err != nil {
			f.warn("latencyDoubtful", "job %s %s: %v", j.Name, metric, err)
		}
		if err := h.Merge(one); err != nil {
			return err
		}
		a, b := f.span(j)
		from, to = min(from, a), max(to, b)
	}
	if h.N() > 0 {
		f.res.Totals = append(f.res.Totals, Histogram{Metric: name, Unit: "ns", Basis: basis, From: from, To: to, Hist: h})
	}
	return nil
}

// exact is the histogram with fio's own sum, min and max. Beside an error it
// is what could be read.
func (l *fioLatency) exact() (*hist.Histogram, error) {
	b, err := l.histogram()
	if err != nil || b == nil || b.n == 0 {
		return hist.New(), err
	}
	h, err := b.hist()
	if err != nil {
		return hist.New(), err
	}
	sum := l.Mean * float64(l.N)
	switch {
	case b.n != l.N:
		return h, fmt.Errorf("bins hold %d values, N says %d", b.n, l.N)
	case sum >= math.MaxInt64:
		return h, errors.New("the sum of all latencies is beyond counting")
	}
	return h, h.SetExact(int64(math.Round(sum)), l.Min, l.Max)
}

// scalars are fio's own figures, summed over jobs that ran together.
func (f *fioRun) scalars() {
	order, groups := f.groups()
	for _, prefix := range order {
		jobs := groups[prefix]
		if len(jobs) == 0 {
			continue
		}
		apart := prefix == "" && slices.ContainsFunc(jobs, func(j *fioJob) bool {
			return j.flag("stonewall", false) || j.flag("wait_for_previous", false)
		})
		if apart {
			f.warn("jobsInTurn", "jobs ran one after the other (stonewall): rates are given for each job, not in sum")
		}
		var user, system float64
		for _, j := range jobs {
			user += j.UserCPU
			system += j.SysCPU
		}
		f.scalar(prefix+"cpu.user", "% of a CPU", user)
		f.scalar(prefix+"cpu.system", "% of a CPU", system)
		for _, metric := range fioMetrics {
			var d fioDirection
			for _, j := range jobs {
				x := j.directions()[metric]
				d.IOs, d.Bytes, d.IOPS, d.BytesPS = d.IOs+x.IOs, d.Bytes+x.Bytes, d.IOPS+x.IOPS, d.BytesPS+x.BytesPS
			}
			if d.IOs == 0 {
				continue
			}
			f.scalar(prefix+metric+".ios", "1", float64(d.IOs))
			f.scalar(prefix+metric+".bytes", "B", float64(d.Bytes))
			if !apart {
				f.scalar(prefix+metric+".iops", "1/s", d.IOPS)
				f.scalar(prefix+metric+".bandwidth", "B/s", d.BytesPS)
			}
		}
	}
}

func (f *fioRun) scalar(metric, unit string, v float64) {
	f.res.Scalars = append(f.res.Scalars, Scalar{Metric: metric, Unit: unit, Value: v})
}

// step is the interval of the histogram log.
func (f *fioRun) step() time.Duration {
	for _, j := range f.jobs {
		if v, ok := j.option("log_hist_msec"); ok {
			if ms, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil && ms > 0 {
				return time.Duration(ms) * time.Millisecond
			}
		}
	}
	return time.Second
}

// job that a log belongs to; nil when that cannot be known (grouped jobs, no
// report).
func (f *fioRun) job(l *fioLog) *fioJob {
	if len(f.reports) == 1 && l.number >= 1 && l.number <= len(f.jobs) && len(f.logs) == len(f.jobs) {
		return f.jobs[l.number-1]
	}
	return nil
}

// span is when a job measured, after its ramp.
func (f *fioRun) span(j *fioJob) (from, to op.Time) {
	for i := range f.logs {
		l := &f.logs[i]
		if owner := f.job(l); len(l.rows) > 0 && (owner == j || owner == nil) {
			from = f.place(j, l.rows[0].At-f.step().Milliseconds())
			return from, from + op.Time(j.runtime())
		}
	}
	if f.in.AtWall != nil && j.report.TimestampMs > 0 {
		to = f.in.AtWall(j.report.TimestampMs * int64(time.Millisecond))
		return to - op.Time(j.runtime()), to
	}
	from = f.in.Started + op.Time(j.ramp())
	return from, from + op.Time(j.runtime())
}

// unixEpoch is a stamp that only the wall clock can reach: 2001 in ms.
const unixEpoch = 1e12

// place puts a stamp of a log on the run's clock. Logs with log_unix_epoch=1
// carry the wall clock. Others count from the end of the ramp, and are placed
// by the end of the run that the report states, or else by the container's
// start, which leaves out the time that fio took to lay out its files.
func (f *fioRun) place(j *fioJob, ms int64) op.Time {
	at := op.Time(ms * int64(time.Millisecond))
	if ms >= unixEpoch {
		if f.in.AtWall != nil {
			return f.in.AtWall(ms * int64(time.Millisecond))
		}
		f.warn("placement", "log_unix_epoch=1, but the wall clock of the container is not joined to the run's: slices count from 1970")
		return at
	}
	if j != nil && f.in.AtWall != nil && j.report.TimestampMs > 0 {
		f.warn("placement", "job %s: without log_unix_epoch=1 its log is placed by the end of the run, to some 50 ms", j.Name)
		return f.in.AtWall(j.report.TimestampMs*int64(time.Millisecond)) - op.Time(j.runtime()) + at
	}
	f.warn("placement", "without log_unix_epoch=1 the log is placed by the container's start: early by the time that fio took to lay out its files")
	if j != nil {
		at += op.Time(j.ramp())
	}
	return f.in.Started + at
}

// slices turns the logs into interval histograms and rates.
func (f *fioRun) slices() error {
	if len(f.logs) == 0 && len(f.jobs) > 0 {
		f.warn("histLogMissing", "there is no histogram log (write_hist_log, log_hist_msec): latency over time is unknown")
	}
	rates := newRates(f.step())
	logged := make(map[string]*binned) // of all logs, for grouped jobs
	last := make(map[string]op.Time)
	for i := range f.logs {
		l := &f.logs[i]
		j := f.job(l)
		for d, metric := range fioMetrics {
			sum, end, err := f.sliceLog(l, j, d, metric, rates)
			if err != nil {
				return err
			}
			if sum == nil || j != nil {
				continue
			}
			if logged[metric] == nil {
				logged[metric] = newBinned()
			}
			logged[metric].merge(sum)
			last[metric] = max(last[metric], end)
		}
	}
	if err := f.rest(logged, last, rates); err != nil {
		return err
	}
	f.res.Series = rates.series()
	return nil
}

// sliceLog cuts one direction of one log: each row covers the time since the
// row before. It returns the sum of the rows and the end of the last.
func (f *fioRun) sliceLog(l *fioLog, j *fioJob, direction int, metric string, rates *rates) (*binned, op.Time, error) {
	var owner = j
	if owner == nil && len(f.jobs) > 0 {
		owner = f.jobs[0]
	}
	sum, end, size := newBinned(), op.Time(0), f.blockSize(j, metric)
	started := false
	for i := 0; i < len(l.rows); i++ {
		row := l.rows[i]
		if row.Direction != direction {
			continue
		}
		counts := newBinned()
		counts.merge(row.Counts)
		for i+1 < len(l.rows) && l.rows[i+1].Direction == direction && l.rows[i+1].At == row.At {
			i++ // fio wrote two rows for one instant
			counts.merge(l.rows[i].Counts)
		}
		to := f.place(owner, row.At)
		from := end
		if !started {
			from, started = to-op.Time(f.step()), true
		}
		if size == 0 {
			size = float64(row.BlockSize)
		}
		if err := f.slice(metric, from, to, counts, size, rates); err != nil {
			return nil, 0, err
		}
		sum.merge(counts)
		end = to
	}
	if j == nil {
		if !started {
			return nil, 0, nil
		}
		return sum, end, nil
	}
	return sum, end, f.tail(j, metric, sum, end, size, rates)
}

// tail adds what a job did after its log's last row.
func (f *fioRun) tail(j *fioJob, metric string, logged *binned, end op.Time, size float64, rates *rates) error {
	total, err := j.directions()[metric].Clat.histogram()
	if err != nil {
		return fmt.Errorf("fio: job %s: %w", j.Name, err)
	}
	from, to := f.span(j)
	return f.remainder(j.Name, metric, total, logged, max(end, from), to, size, rates)
}

// rest does the same for jobs that fio reported as a group.
func (f *fioRun) rest(logged map[string]*binned, last map[string]op.Time, rates *rates) error {
	for _, metric := range fioMetrics {
		if logged[metric] == nil {
			continue
		}
		total, to := newBinned(), op.Time(math.MinInt64)
		for _, j := range f.jobs {
			b, err := j.directions()[metric].Clat.histogram()
			if err != nil {
				return fmt.Errorf("fio: job %s: %w", j.Name, err)
			}
			if b != nil {
				total.merge(b)
			}
			_, end := f.span(j)
			to = max(to, end)
		}
		if err := f.remainder("", metric, total, logged[metric], last[metric], to, f.blockSize(nil, metric), rates); err != nil {
			return err
		}
	}
	return nil
}

// remainder is the slice total − logged in [from, to).
func (f *fioRun) remainder(job, metric string, total, logged *binned, from, to op.Time, size float64, rates *rates) error {
	if total == nil || total.n == 0 {
		return nil // no report, or one without bins: nothing to compare with
	}
	left, ok := total.minus(logged)
	switch {
	case !ok && f.coarse():
		f.warn("lastSliceMissing", "%s: log_hist_coarseness is set: what came after the last row of the log cannot be told", metric)
	case !ok:
		f.warn("histLogDiffers", "%s %s: the histogram log holds more than the report's total: one of them is not of this run", job, metric)
	case left.n > 0 && to > from:
		return f.slice(metric, from, to, left, size, rates)
	case left.n > 0:
		// The last completions came after the clock of the job had stopped.
		return f.slice(metric, from, from+op.Time(time.Millisecond), left, size, rates)
	}
	return nil
}

func (f *fioRun) coarse() bool {
	return slices.ContainsFunc(f.jobs, func(j *fioJob) bool { return j.flag("log_hist_coarseness", false) })
}

func (f *fioRun) slice(metric string, from, to op.Time, counts *binned, size float64, rates *rates) error {
	h, err := counts.hist()
	if err != nil {
		return fmt.Errorf("fio: slice of %s: %w", metric, err)
	}
	f.res.Slices = append(f.res.Slices, Histogram{Metric: metric, Unit: "ns", Basis: "clat", From: from, To: to, Hist: h})
	rates.add(metric, from, to, float64(counts.n), size)
	return nil
}

// blockSize is the mean size of an I/O of a job, or of all.
func (f *fioRun) blockSize(j *fioJob, metric string) float64 {
	jobs := f.jobs
	if j != nil {
		jobs = []*fioJob{j}
	}
	var ios, bytes int64
	for _, j := range jobs {
		d := j.directions()[metric]
		ios, bytes = ios+d.IOs, bytes+d.Bytes
	}
	if ios == 0 {
		return 0
	}
	return float64(bytes) / float64(ios)
}
