package parser

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// fioRun is the work on one container's files.
type fioRun struct {
	work
	reports []*fioReport
	jobs    []*fioJob // of all reports, in order
	logs    []fioLog
	inTurn  bool // jobs are meant to run one after another
	err     error
}

// check keeps the first error; of says of what it is.
func (f *fioRun) check(of string, err error) {
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("fio: %s%w", of, err)
	}
}

type fioLog struct {
	number int // of the job, from 1; 0: of all
	rows   []histRow
}

// label returns the beginning of a message about a job: its name where the container ran jobs
// of several names. The instance's name in it is written as INSTANCE, so that messages of
// all instances are equal.
func (f *fioRun) label(j *fioJob) string {
	if !slices.ContainsFunc(f.jobs, func(x *fioJob) bool { return x.Name != j.Name }) {
		return ""
	}
	name := j.Name
	rest, own := strings.CutPrefix(name, f.in.Instance)
	if own && f.in.Instance != "" && (rest == "" || !unicode.IsDigit(rune(rest[0]))) {
		name = "INSTANCE" + rest
	}
	return "job " + name + ": "
}

var histLogName = re(`_clat_hist(?:\.(\d+))?\.log$`)

// fioDirections are the directions of I/O in the order of fio's numbers.
var fioDirections = []string{metric.Read, metric.Write, metric.Trim}

// fioFigured are the directions that have figures.
var fioFigured = append(slices.Clone(fioDirections), fioMixed)

// runInTurn says whether some jobs began when others had ended. fio's JSON does not have options without a value, such
// as stonewall: the times of the logs tell, else the groups, which begin with such an option and otherwise only with
// new_group, and the time since fio began. In doubt the answer is yes, because a sum would be a rate that never was.
func (f *fioRun) runInTurn() bool {
	var times []extent
	groups := map[int]op.Time{} // the longest job of each, with its ramp
	var elapsed op.Time
	for _, j := range f.jobs {
		if j.flag("stonewall", false) || j.flag("wait_for_previous", false) || j.has("wait_for") {
			return true
		}
		groups[j.Group] = max(groups[j.Group], op.Time(j.runtime()+j.ramp()))
		elapsed = max(elapsed, op.Time(j.Elapsed)*op.Time(time.Second))
		if slices.ContainsFunc(f.logs, func(l fioLog) bool { return f.job(&l) == j && len(l.rows) > 0 }) {
			from, to := f.span(j)
			times = append(times, extent{from, to})
		}
	}
	if len(times) == len(f.jobs) {
		for _, a := range times {
			if slices.ContainsFunc(times, func(b extent) bool { return b.from >= a.to-(a.to-a.from)/10 }) {
				return true
			}
		}
		return false
	}
	var sum op.Time
	for _, ran := range groups {
		sum += ran
	}
	return len(groups) > 1 && (elapsed == 0 || elapsed+op.Time(time.Second) >= sum)
}
