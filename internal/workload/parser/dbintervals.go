package parser

import (
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// readIntervals reads "secs_elapsed,interval_qps". The second is the number of operations since the row before.
func (d *dbBench) readIntervals(r *dbRun, name, text string) {
	unread, last := 0, int64(0)
	for row := range rows(text) {
		if row == "secs_elapsed,interval_qps" {
			continue
		}
		at, n, _ := strings.Cut(row, ",")
		seconds, err1 := strconv.ParseInt(at, 10, 64)
		count, err2 := strconv.ParseInt(n, 10, 64)
		if err1 != nil || err2 != nil || seconds <= last || seconds > maxRunSeconds || count < 0 || count > maxNumber {
			unread++
			continue
		}
		last = seconds
		r.intervals = append(r.intervals, []int64{seconds, count})
	}
	if unread > 0 {
		d.warn("outputUnread", "%s has %d lines that are no intervals", name, unread)
	}
}

// series adds the operations per second by interval, and their mean.
func (d *dbBench) series(r *dbRun, suffix string) {
	if len(r.intervals) == 0 {
		return
	}
	of := rocksAll
	of.Name += suffix
	start, step, last, sum := d.in.began(r.start), op.Time(r.intervals[0][0])*aSecond, int64(0), int64(0)
	var list []metric.Series // of this process
	for _, row := range r.intervals {
		long := row[0] - last
		list = addInterval(list, of.Series(int64(step)), start+op.Time(last)*aSecond, op.Time(long)*aSecond,
			float64(row[1])/float64(long))
		last, sum = row[0], sum+row[1]
	}
	d.res.Series = append(d.res.Series, list...)
	d.suffixed(rocksAll.Scalar(float64(sum)/float64(last)), suffix)
	d.checkIntervals(r)
}

// checkIntervals warns if the report lacks intervals: a thread of db_bench writes it, which can be late on a busy
// machine, and ends with the benchmark. One interval may be missing at the end.
func (d *dbBench) checkIntervals(r *dbRun) {
	step, last, longest := r.intervals[0][0], int64(0), int64(0)
	for _, row := range r.intervals {
		longest, last = max(longest, row[0]-last), row[0]
	}
	end := float64(last)
	if n := len(r.benchmarks); n > 0 {
		end = r.benchmarks[n-1].seconds
	}
	if longest > step {
		d.warn("dbBenchReport", "%s: the report has an interval of %d s, the first is of %d s: it was written late", r.name,
			longest, step)
	} else if end-float64(last) >= float64(2*step) {
		d.warn("dbBenchReport", "%s: the report ends after %d s, the benchmark took %.1f s: allOps is the mean of the first",
			r.name, last, end)
	}
}
