package parser

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// compareOptions compares the results of a job with its options, which the report repeats:
// fio reads 4q as 4 and 3ss as 0 without an error.
func (f *fioRun) compareOptions(j *fioJob) {
	for _, difference := range []func(*fioJob) string{f.compareRuntime, compareBlockSize, compareDepth, compareJobs,
		compareDirection} {
		if what := difference(j); what != "" {
			f.warn("fioDiffers", "%s%s", f.label(j), what)
		}
	}
}

func (j *fioJob) ios() (n int64) {
	for _, name := range fioDirections {
		n += j.directions[name].IOs
	}
	return n
}

// whole returns an option that is a number from 1; 0 if it is none.
func (j *fioJob) whole(names ...string) (n int, value string, ok bool) {
	_, value, ok = j.option(names...)
	if v, err := strconv.Atoi(value); err == nil {
		n = max(v, 0)
	}
	return n, value, ok
}

// leastShare is the least run time ÷ the requested time of a time_based job.
const leastShare = 0.9

var fioTimeText = re(`^(?i)[0-9]+(\.[0-9]+)?(d|h|m|s|ms|msec|us|usec)?$`)

func (f *fioRun) compareRuntime(j *fioJob) string {
	name, value, ok := j.option("runtime", "timeout")
	if !ok {
		return ""
	}
	ran := j.runtime()
	if !fioTimeText.MatchString(value) {
		return fmt.Sprintf("%s=%s is not a time that fio understands: it ran for %v", name, value, ran)
	}
	ended := f.in.Terminated || j.Error != 0 || strings.Contains(j.report.messages, "terminating on signal") ||
		j.has("io_size", "io_limit", "number_ios", "exitall", "exitall_on_error", "steadystate", "ss",
			"rate_min", "rate_iops_min")
	least := leastShare * float64(fioTime(value))
	if ended || j.ios() == 0 || !j.flag("time_based", false) || float64(ran) >= least {
		return ""
	}
	return fmt.Sprintf("%s=%s was asked for, it ran for %v", name, value, ran.Round(time.Millisecond))
}

// Block sizes differ if they are off by more than sizeShare, and by more than the I/Os in
// flight at the begin and the end.
const (
	sizeShare = 0.05
	sizeIOs   = 8
)

func compareBlockSize(j *fioJob) string {
	name, value, ok := j.option("bs", "blocksize")
	if !ok || j.has("bsrange", "blocksize_range", "bssplit", "bs_unaligned", "blocksize_unaligned", "verify",
		"zonemode") {
		return ""
	}
	sizes := strings.Split(value, ",")
	for i, direction := range fioDirections {
		d := j.directions[direction]
		size := sizes[min(i, len(sizes)-1)]
		if d.IOs == 0 || size == "" {
			continue
		}
		mean := float64(d.Bytes) / float64(d.IOs)
		want, err := variable.ParseFioSize(size)
		if err != nil {
			return fmt.Sprintf("%s=%s is not a size that fio understands: a %s was of %.0f B", name, value, direction,
				mean)
		}
		depth, _, _ := j.whole("iodepth")
		off := math.Abs(float64(d.Bytes) - want*float64(d.IOs))
		if off > sizeShare*want*float64(d.IOs) && off > want*float64(sizeIOs+2*max(depth, 1)) {
			return fmt.Sprintf("%s=%s was asked for, a %s was of %.0f B in the mean", name, value, direction, mean)
		}
	}
	return ""
}

// synchronous engines have one I/O per job in flight at any iodepth. psync is fio's default.
var synchronous = []string{"", "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"}

func compareDepth(j *fioJob) string {
	n, value, ok := j.whole("iodepth")
	_, engine, _ := j.option("ioengine")
	switch {
	case !ok || j.ios() == 0:
	case n == 0:
		return fmt.Sprintf("iodepth=%s is not a depth that fio understands: it ran %s", value, j.depths())
	case n > 1 && slices.Contains(synchronous, engine):
		return fmt.Sprintf("iodepth=%d was asked for, engine %s does one I/O at a time", n, cmp.Or(engine, "psync"))
	}
	return ""
}

// depths describes the most frequent number of I/Os in flight.
func (j *fioJob) depths() string {
	most, share := "", 0.0
	for depth, percent := range j.Depths {
		if percent > share {
			most, share = depth, percent
		}
	}
	return fmt.Sprintf("%.0f %% of its I/Os at depth %s", share, most)
}

func compareJobs(j *fioJob) string {
	n, value, ok := j.whole("numjobs")
	ran := 0
	for i := range j.report.Jobs {
		if j.report.Jobs[i].Name == j.Name {
			ran++
		}
	}
	switch {
	case ok && n == 0:
		return fmt.Sprintf("numjobs=%s is not a number that fio understands", value)
	case ok && !j.flag("group_reporting", false) && ran < n:
		return fmt.Sprintf("numjobs=%d was asked for, %d ran", n, ran)
	}
	return ""
}

// compareDirection finds I/O in a direction that the pattern does not have.
func compareDirection(j *fioJob) string {
	_, value, ok := j.option("rw", "readwrite")
	if !ok || j.has("verify") {
		return ""
	}
	pattern, _, _ := strings.Cut(value, ":")
	for _, direction := range fioDirections {
		n := j.directions[direction].IOs
		mixed := strings.HasSuffix(pattern, "rw") || pattern == "readwrite"
		if n > 0 && !strings.Contains(pattern, direction) && (!mixed || direction == "trim") {
			return fmt.Sprintf("rw=%s was asked for, it did %d I/Os of direction %s", value, n, direction)
		}
	}
	return ""
}
