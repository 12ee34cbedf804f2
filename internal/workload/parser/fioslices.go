package parser

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// step returns the interval of the histogram log.
func (f *fioRun) step() time.Duration {
	for _, j := range f.jobs {
		_, v, _ := j.option("log_hist_msec")
		if ms, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil && ms > 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return time.Second
}

// job returns the job of a log; nil if unknown (grouped jobs, no report).
func (f *fioRun) job(l *fioLog) *fioJob {
	if len(f.reports) == 1 && l.number >= 1 && l.number <= len(f.jobs) && len(f.logs) == len(f.jobs) {
		return f.jobs[l.number-1]
	}
	return nil
}

// span returns the measured time of a job, after its ramp.
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

// unixEpoch is a stamp in ms that only a wall clock reaches (the year 2001).
const unixEpoch = 1e12

// place converts a log's stamp to the run's clock. Logs with log_unix_epoch=1 have wall
// clock stamps. Others count from the end of the ramp, and are placed by the report's end
// time, or else by the container's start, which ignores the time of laying out files.
func (f *fioRun) place(j *fioJob, ms int64) op.Time {
	at := op.Time(ms * int64(time.Millisecond))
	if ms >= unixEpoch {
		if f.in.AtWall != nil {
			return f.in.AtWall(ms * int64(time.Millisecond))
		}
		f.warn("placement", "log_unix_epoch=1, but the wall clock of the container is not joined to the run's: slices "+
			"count from 1970")
		return at
	}
	if j != nil && f.in.AtWall != nil && j.report.TimestampMs > 0 {
		f.warn("placement", "%swithout log_unix_epoch=1 the log is placed by the end of the run, to some 50 ms",
			f.label(j))
		return f.in.AtWall(j.report.TimestampMs*int64(time.Millisecond)) - op.Time(j.runtime()) + at
	}
	f.warn("placement", "without log_unix_epoch=1 the log is placed by the container's start: early by the time that "+
		"fio took to lay out its files")
	if j != nil {
		at += op.Time(j.ramp())
	}
	return f.in.Started + at
}

// slices converts the logs to interval histograms and rates.
func (f *fioRun) slices() {
	if len(f.logs) == 0 && len(f.jobs) > 0 {
		f.warn("histLogMissing",
			"there is no histogram log (write_hist_log, log_hist_msec): latency over time is unknown")
	}
	rates := newRates(f.step())
	logged := make(map[string]*binned) // of all logs, for grouped jobs
	last := make(map[string]op.Time)
	for i := range f.logs {
		l := &f.logs[i]
		j := f.job(l)
		for d, direction := range fioDirections {
			sum, end := f.sliceLog(l, j, d, direction, rates)
			if sum == nil || j != nil {
				continue
			}
			if logged[direction] == nil {
				logged[direction] = &binned{}
			}
			logged[direction].merge(sum)
			last[direction] = max(last[direction], end)
		}
	}
	for _, direction := range fioDirections { // of jobs that fio reported as a group
		if sum := logged[direction]; sum != nil {
			f.tail("", f.jobs, direction, sum, last[direction], blockSize(f.jobs, direction), rates)
		}
	}
	if f.err != nil {
		return
	}
	f.res.Series = rates.series()
	if len(f.logs) > 1 {
		var err error
		f.res.Slices, err = mergeSlices(f.res.Slices, op.Time(f.step()))
		f.check("", err)
	}
}

// mergeSlices adds the histograms of slices of several logs that cover about the same step, so that a quantile of a
// slice is one of all jobs. Slices that are late stay apart: they say nothing of a single step.
func mergeSlices(list []metric.Histogram, step op.Time) ([]metric.Histogram, error) {
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b metric.Histogram) int { return cmp.Compare(a.From, b.From) })
	type key struct {
		metric string
		cell   op.Time
	}
	base, at := list[0].From, map[key]int{}
	var merged []metric.Histogram
	for _, s := range list {
		k := key{s.Metric, ((s.From+s.To)/2 - base) / step}
		i, ok := at[k]
		late := metric.Late(int64(s.To-s.From), int64(step))
		if !ok || late {
			if !late {
				at[k] = len(merged)
			}
			merged = append(merged, s)
			continue
		}
		m := &merged[i]
		m.Hist = m.Hist.Clone()
		if err := m.Hist.Merge(s.Hist); err != nil {
			return nil, err
		}
		if s.To-m.To > step/10 { // jobs begin within milliseconds of each other
			m.To = s.To
		}
	}
	return merged, nil
}

// sliceLog converts one direction of one log; each row covers the time since the row
// before. It returns the sum of the rows and the end of the last.
func (f *fioRun) sliceLog(l *fioLog, j *fioJob, number int, direction string, rates *rates) (*binned, op.Time) {
	jobs, owner := f.jobs, j
	if j != nil {
		jobs = []*fioJob{j}
	} else if len(jobs) > 0 {
		owner = jobs[0]
	}
	sum, end, size := &binned{}, op.Time(0), blockSize(jobs, direction)
	rows := rowsOf(l.rows, number)
	windows := newFioWindows(rows, f.step())
	for i := 0; i < len(rows); i++ {
		row, first := rows[i], i == 0
		counts, over := &row.Counts, windows.next(row.At)
		before := counts.n - 1 // completed before the end of the window
		for i+1 < len(rows) && rows[i+1].At == row.At {
			i++ // fio wrote two rows for one instant
			counts.counts = slices.Clone(counts.counts)
			counts.merge(&rows[i].Counts)
			windows.next(row.At)
		}
		s := fioSlice{from: end, to: f.place(owner, row.At), atEnd: counts.n - before}
		s.silent = s.to - op.Time((row.At-over)*int64(time.Millisecond))
		if first {
			s.from = s.to - op.Time(f.step())
		}
		if size == 0 {
			size = float64(row.BlockSize)
		}
		f.slice(direction, s, counts, size, rates)
		sum.merge(counts)
		end = s.to
	}
	if j != nil {
		from, _ := f.span(j)
		f.tail(f.label(j), jobs, direction, sum, max(end, from), size, rates)
	} else if len(rows) == 0 {
		return nil, 0
	}
	return sum, end
}

// rowsOf returns the rows of one direction.
func rowsOf(rows []histRow, direction int) (list []*histRow) {
	for i := range rows {
		if rows[i].Direction == direction {
			list = append(list, &rows[i])
		}
	}
	return list
}

// tail adds the slice of the I/O of jobs after the last row of their logs, which ended at from; label begins messages.
func (f *fioRun) tail(label string, jobs []*fioJob, direction string, logged *binned, from op.Time, size float64,
	rates *rates) {
	total, to := &binned{}, op.Time(math.MinInt64)
	for _, j := range jobs {
		bins := &j.directions[direction].Clat.Bins
		f.check(f.label(j), bins.err)
		total.merge(&bins.binned)
		_, end := f.span(j)
		to = max(to, end)
	}
	if total.n == 0 || f.err != nil {
		return // no report, or one without bins: nothing to compare with
	}
	left, ok := total.minus(logged)
	switch {
	case !ok && slices.ContainsFunc(f.jobs, func(j *fioJob) bool { return j.flag("log_hist_coarseness", false) }):
		f.warn("lastSliceMissing", "%s: log_hist_coarseness is set: the I/O after the last row of the log is unknown",
			direction)
	case !ok:
		f.warn("histLogDiffers",
			"%s%s: the histogram log holds more than the report's total: one of them is from another run",
			label, direction)
	case left.n > 0 && to > from:
		// All of it completed within a step, or there would be a row.
		f.slice(direction, fioSlice{from: from, to: to, silent: from + op.Time(f.step())}, left, size, rates)
	case left.n > 0:
		// The last completions came after the clock of the job had stopped.
		to = from + op.Time(time.Millisecond)
		f.slice(direction, fioSlice{from: from, to: to, silent: to}, left, size, rates)
	}
}

func (f *fioRun) slice(direction string, s fioSlice, counts *binned, size float64, rates *rates) {
	h, err := counts.hist()
	f.check("slice of "+direction+": ", err)
	f.res.Slices = append(f.res.Slices,
		metric.Histogram{Metric: direction, Unit: metric.Nanoseconds, Basis: "clat", From: s.from, To: s.to, Hist: h})
	s.addTo(rates, direction, counts.n, size)
}

// blockSize returns the mean I/O size of jobs.
func blockSize(jobs []*fioJob, direction string) float64 {
	d := sumOf(jobs, direction)
	if d.IOs == 0 {
		return 0
	}
	return float64(d.Bytes) / float64(d.IOs)
}
