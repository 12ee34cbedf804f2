package parser

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// compareOptions compares the results of a job with its options, which the report repeats:
// fio reads 4q as 4 and 3ss as 0 without an error.
func (f *fioRun) compareOptions(j *fioJob) {
	for _, difference := range []func(*fioJob) string{f.compareRuntime, compareBlockSize, compareDepth, f.compareJobs,
		compareDirection} {
		if what := difference(j); what != "" {
			f.warn("fioDiffers", "%s%s", f.label(j), what)
		}
	}
}

// firstOption returns the first of the names of an option that a job has.
func (j *fioJob) firstOption(names ...string) (name, value string, ok bool) {
	for _, name := range names {
		if v, ok := j.option(name); ok {
			return name, v, true
		}
	}
	return "", "", false
}

func (j *fioJob) has(names ...string) bool {
	_, _, ok := j.firstOption(names...)
	return ok
}

func (j *fioJob) ios() (n int64) {
	for _, name := range fioDirections {
		n += j.directions[name].IOs
	}
	return n
}

// leastShare is the least run time ÷ the requested time of a time_based job.
const leastShare = 0.9

var fioTimeText = regexp.MustCompile(`^(?i)[0-9]+(\.[0-9]+)?(d|h|m|s|ms|msec|us|usec)?$`)

func (f *fioRun) compareRuntime(j *fioJob) string {
	name, value, ok := j.firstOption("runtime", "timeout")
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
	compareOptions := fioTime(value)
	if ended || j.ios() == 0 || !j.flag("time_based", false) || float64(ran) >= leastShare*float64(compareOptions) {
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
	name, value, ok := j.firstOption("bs", "blocksize")
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
		compareOptions, err := variable.ParseFioSize(size)
		if err != nil {
			return fmt.Sprintf("%s=%s is not a size that fio understands: a %s was of %.0f B", name, value, direction,
				mean)
		}
		off := math.Abs(float64(d.Bytes) - compareOptions*float64(d.IOs))
		if off > sizeShare*compareOptions*float64(d.IOs) && off > compareOptions*float64(sizeIOs+2*j.depth()) {
			return fmt.Sprintf("%s=%s was asked for, a %s was of %.0f B in the mean", name, value, direction, mean)
		}
	}
	return ""
}

// depth returns the iodepth option; 1 if it is invalid.
func (j *fioJob) depth() int {
	v, _ := j.option("iodepth")
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// synchronous engines have one I/O per job in flight at any iodepth.
var synchronous = []string{"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"}

func compareDepth(j *fioJob) string {
	value, ok := j.option("iodepth")
	if !ok || j.ios() == 0 {
		return ""
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Sprintf("iodepth=%s is not a depth that fio understands: it ran %s", value, j.depths())
	}
	engine, ok := j.option("ioengine")
	if !ok {
		engine = "psync" // fio's default
	}
	if n > 1 && slices.Contains(synchronous, engine) {
		return fmt.Sprintf("iodepth=%d was asked for, engine %s does one I/O at a time", n, engine)
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

func (f *fioRun) compareJobs(j *fioJob) string {
	value, ok := j.option("numjobs")
	if !ok {
		return ""
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Sprintf("numjobs=%s is not a number that fio understands", value)
	}
	ran := 0
	for i := range j.report.Jobs {
		if j.report.Jobs[i].Name == j.Name {
			ran++
		}
	}
	if j.flag("group_reporting", false) || ran >= n {
		return ""
	}
	return fmt.Sprintf("numjobs=%d was asked for, %d ran", n, ran)
}

// compareDirection finds I/O in a direction that the pattern does not have.
func compareDirection(j *fioJob) string {
	_, value, ok := j.firstOption("rw", "readwrite")
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
