package parser

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// Lines of fio's report for people (show_thread_status_normal and show_ddir_status in fio's stat.c).
var (
	fioTextSettings = regexp.MustCompile(`^(?:<\S+> )?(.+): \(g=\d+\): rw=(\S+), bs=\(R\) (\d+)(B|KiB|MiB)-\S+, ` +
		`\(W\) (\d+)(B|KiB|MiB)-\S+, \(T\) \S+, ioengine=(\S+), iodepth=(\d+)$`)
	fioTextJob  = regexp.MustCompile(`^(.+): \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+)(.*?): pid=(\d+): .*$`)
	fioTextRate = regexp.MustCompile(`^(read|write|trim|mixed)\s*: IOPS=([0-9.]+[kM]?), ` +
		`BW=([0-9.]+(?:[KMGT]i?)?B/s) \(.*\)\(.*\)(?:; .*)?$`)
	fioTextLatency = regexp.MustCompile(`^(slat|clat|lat|sync) \((nsec|usec|msec)\): min=\s*\S+, max=\s*\S+, ` +
		`avg=\s*([0-9.]+), stdev=\s*\S+$`)
	fioTextTitle    = regexp.MustCompile(`^(slat|clat|lat|sync) percentiles \((nsec|usec|msec)\):$`)
	fioTextRow      = regexp.MustCompile(`^\|(\s*[0-9.]+th=.*)$`)
	fioTextCell     = regexp.MustCompile(`([0-9.]+)th=\[\s*([0-9.]+[kM]?)\]`)
	fioTextSync     = regexp.MustCompile(`^fsync/fdatasync/sync_file_range:$`)
	fioTextStarting = regexp.MustCompile(`^(?:<\S+> )?Starting (.+)$`)
	fioTextStarted  = regexp.MustCompile(`(\d+) (?:process|thread)`)
	fioTextLeftOut  = regexp.MustCompile(`^(fio-\d|Run status group|Disk stats|bw \(|iops\s*:|lat \([num]sec\)\s*:|` +
		`cpu\s*:|IO depths\s*:|submit\s*:|complete\s*:|issued (rwts?:|r/w)|latency\s*:|(READ|WRITE|TRIM|MIXED): |` +
		`\S+: ios=|Jobs: \d|<\S+> |hostname=|.*: Laying out IO file|clat prio|steadystate|\.\.\.$|fio: |note: |terminate|` +
		`md\d+:|All clients)`)
	fioTextTerse = regexp.MustCompile(`^[345];fio-`)
)

func isFioText(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, ": (groupid=") && fioTextJob.MatchString(line) || fioTextTerse.MatchString(line) {
			return !isFioJSON(text)
		}
	}
	return false
}

// fioText is the work on a report for people.
type fioText struct {
	report
	options map[string]map[string]string // by job
	jobs    []*fioTextOf
	at      fioLatencyAt
	started int // processes and threads, as fio says
}

// fioTextOf has the figures of one job.
type fioTextOf struct {
	name, group, pid string
	jobs             int
	direction        string
	imported.Report
}

// fioLatencyAt is the latency whose percentiles follow.
type fioLatencyAt struct {
	name string
	unit float64 // in ns
}

var nanoseconds = map[string]float64{"nsec": 1, "usec": 1e3, "msec": 1e6}

// readFioText reads the report that fio prints without --output-format: the same figures, with the same names, as from
// its JSON, but rounded as printed. Of the reports of --status-interval the last one of each job counts.
func readFioText(text string) (*imported.Report, error) {
	if fioTextTerse.MatchString(strings.TrimSpace(text)) {
		return nil, errors.New("this is fio's terse output: run fio with --output-format=json")
	}
	f := &fioText{options: map[string]map[string]string{}}
	err := f.lines(strings.ReplaceAll(text, "\r", "\n"), 1, []linePattern{
		{fioTextSettings, f.settings}, {fioTextJob, f.job}, {fioTextRate, f.rate}, {fioTextLatency, f.latency},
		{fioTextTitle, f.percentiles}, {fioTextRow, f.row}, {fioTextSync, f.sync}, {fioTextStarting, f.starting},
		{fioTextLeftOut, func([]string) error { f.at = fioLatencyAt{}; return nil }},
	})
	if err != nil {
		return nil, err
	}
	if len(f.jobs) == 0 {
		return nil, errors.New("no job of fio: want the report that begins with NAME: (groupid=0, jobs=1)")
	}
	ran := 0
	for _, j := range f.jobs {
		if len(j.Figures) == 0 {
			f.flag(imported.Invalid, "noIO", "job %s did no I/O", j.name)
		}
		f.absent(j)
		f.Figures = append(f.Figures, j.Figures...)
		ran += j.jobs
	}
	if f.started > 0 && ran != f.started {
		f.flag(imported.Warning, "jobsMissing", "fio started %d processes or threads, the reports are of %d", f.started, ran)
	}
	if !strings.Contains(text, "Run status group") {
		f.flag(imported.Warning, "reportCut", "the report has no end (\"Run status group\"): it may be cut off")
	}
	f.flag(imported.Warning, "rounded", "fio's report for people has rounded figures: its JSON has them whole")
	return &f.Report, nil
}

// absent names the latencies of a direction that fio usually prints.
func (f *fioText) absent(j *fioTextOf) {
	has := func(name string) bool {
		return slices.ContainsFunc(j.Figures, func(x imported.Figure) bool { return x.Name == name })
	}
	var names []string
	for _, d := range fioNames {
		name := j.name + " " + d
		if !slices.ContainsFunc(j.Figures, func(x imported.Figure) bool { return strings.HasPrefix(x.Name, name+" ") }) {
			continue
		}
		if !has(name + " latency") {
			names = append(names, name+" latency")
		}
		for _, p := range []string{" p50", " p99"} {
			if !has(name+" latency"+p) && !has(name+" completion latency"+p) {
				names = append(names, name+" latency"+p)
			}
		}
	}
	if len(names) > 0 {
		f.flag(imported.Info, "figuresMissing", "the report does not have: %s", strings.Join(names, ", "))
	}
}

func (f *fioText) settings(m []string) error {
	sizes := map[string]int{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
	of, unit := m[3], m[4]
	if strings.Contains(m[2], "write") {
		of, unit = m[5], m[6]
	}
	n, err := strconv.Atoi(of)
	f.options[m[1]] = map[string]string{"rw": m[2], "bs": strconv.Itoa(n * sizes[unit]), "ioengine": m[7], "iodepth": m[8]}
	return err
}

func (f *fioText) starting(m []string) error {
	for _, n := range fioTextStarted.FindAllStringSubmatch(m[1], -1) {
		started, err := strconv.Atoi(n[1])
		if err != nil {
			return err
		}
		f.started += started
	}
	return nil
}

// job begins the figures of a job, or replaces those that --status-interval printed before.
func (f *fioText) job(m []string) error {
	if m[4] != "0" {
		return fmt.Errorf("job %s failed with error %s: its figures are no trial", m[1], m[4])
	}
	f.jobs = slices.DeleteFunc(f.jobs, func(j *fioTextOf) bool {
		return j.name == m[1] && j.pid == m[6] &&
			j.group == m[2]
	})
	jobs, err := strconv.Atoi(m[3])
	f.jobs = append(f.jobs, &fioTextOf{name: m[1], group: m[2], pid: m[6], jobs: jobs})
	f.at = fioLatencyAt{}
	return err
}

// add adds a figure of the job whose lines are read.
func (f *fioText) add(name, unit string, v float64) error {
	if len(f.jobs) == 0 {
		return errors.New("figures without a job before them")
	}
	j := f.jobs[len(f.jobs)-1]
	if j.direction == "" {
		return fmt.Errorf("%s without a direction before it", name)
	}
	name = j.name + " " + j.direction + name
	if slices.ContainsFunc(j.Figures, func(x imported.Figure) bool { return x.Name == name }) {
		return fmt.Errorf("a second %s in the report of one job: a line before it is missing", name)
	}
	r := report{j.Report}
	r.figure(name, unit, v, f.options[j.name])
	j.Report = r.Report
	return nil
}

func (f *fioText) rate(m []string) error {
	if len(f.jobs) == 0 {
		return errors.New("figures without a job before them")
	}
	f.jobs[len(f.jobs)-1].direction, f.at = m[1], fioLatencyAt{}
	iops, err := fioHuman(m[2])
	if err != nil {
		return err
	}
	bandwidth, err := fioHuman(m[3])
	if err != nil {
		return err
	}
	return errors.Join(f.add(" IOPS", "IOPS", iops), f.add(" bandwidth", "B/s", bandwidth))
}

func (f *fioText) sync([]string) error {
	if len(f.jobs) == 0 {
		return errors.New("figures without a job before them")
	}
	f.jobs[len(f.jobs)-1].direction, f.at = "sync", fioLatencyAt{}
	return nil
}

func (f *fioText) latency(m []string) error {
	f.at = fioLatencyAt{}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil || m[1] == "slat" || m[1] == "clat" { // means are those of "lat", as from the JSON
		return err
	}
	return f.add(" latency", "ns", v*nanoseconds[m[2]])
}

func (f *fioText) percentiles(m []string) error {
	f.at = fioLatencyAt{name: " latency", unit: nanoseconds[m[2]]}
	switch m[1] {
	case "clat":
		f.at.name = " completion latency"
	case "slat":
		f.at.name = ""
	}
	return nil
}

// row reads percentiles; those that the JSON's figures have too.
func (f *fioText) row(m []string) error {
	cells := fioTextCell.FindAllStringSubmatch(m[1], -1)
	if len(cells) != strings.Count(m[1], "th=") {
		return fmt.Errorf("invalid percentiles %q", m[1])
	}
	for _, cell := range cells {
		v, err := fioHuman(cell[2])
		if err != nil {
			return err
		}
		if f.at.unit == 0 {
			return errors.New("percentiles without the line that says of what and in which unit")
		}
		name, ok := map[string]string{"50.00": " p50", "99.00": " p99"}[cell[1]]
		if !ok || f.at.name == "" {
			continue
		}
		if err := f.add(f.at.name+name, "ns", v*f.at.unit); err != nil {
			return err
		}
	}
	return nil
}

// fioHuman reads a number of fio with its unit: "24.4k", "791KiB/s".
func fioHuman(text string) (float64, error) {
	m := human.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("invalid number %q of fio", text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, err
	}
	v *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
	if m[3] != "" {
		v *= bytesPerSecond[m[3]]
	}
	return v, nil
}
