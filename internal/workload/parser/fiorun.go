package parser

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/lazy"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// fioRun is the work on one container's files.
type fioRun struct {
	in      Input
	reports []*fioReport
	jobs    []*fioJob // of all reports, in order
	logs    []fioLog
	inTurn  bool // jobs are meant to run one after another
	res     Result
}

type fioLog struct {
	name   string
	number int // of the job, from 1; 0: of all
	rows   []histRow
}

func (f *fioRun) warn(code, format string, args ...any) {
	f.add(Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// invalid adds a warning about figures that must not be used.
func (f *fioRun) invalid(code, format string, args ...any) {
	f.add(Warning{Code: code, Message: fmt.Sprintf(format, args...), Invalid: true})
}

func (f *fioRun) add(w Warning) {
	if !slices.Contains(f.res.Warnings, w) {
		f.res.Warnings = append(f.res.Warnings, w)
	}
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

var histLogName = lazy.Regexp(`_clat_hist(?:\.(\d+))?\.log$`)

// fioDirections are the directions of I/O in the order of fio's numbers.
var fioDirections = []string{metric.Read, metric.Write, metric.Trim}
