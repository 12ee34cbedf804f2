package parser

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

var (
	fioTextJob     = re(`^(.+): \(groupid=(\d+), jobs=(\d+)\): err=\s*(\d+)(.*?): pid=(\d+): .*$`)
	fioTextCell    = re(`([0-9.]+)th=\[\s*([0-9.]+[kM]?)\]`)
	fioTextStarted = re(`(\d+) (?:process|thread)`)
	fioTextTerse   = re(`^[345];fio-`)
	// fioTextLines are the lines of fio's report for people (show_thread_status_normal and show_ddir_status in fio's
	// stat.c).
	fioTextLines = []linePattern[*fioText]{
		{re(`^(?:<\S+> )?(.+): \(g=\d+\): rw=(\S+), bs=\(R\) (\d+)(B|KiB|MiB)-\S+, ` +
			`\(W\) (\d+)(B|KiB|MiB)-\S+, \(T\) \S+, ioengine=(\S+), iodepth=(\d+)$`), (*fioText).settings},
		{fioTextJob, (*fioText).job},
		{re(`^(read|write|trim|mixed)\s*: IOPS=([0-9.]+[kM]?), BW=([0-9.]+(?:[KMGT]i?)?B/s) \(.*\)\(.*\)(?:; .*)?$`),
			(*fioText).rate},
		{re(`^(slat|clat|lat|sync) \((nsec|usec|msec)\): min=\s*\S+, max=\s*\S+, avg=\s*([0-9.]+), stdev=\s*\S+$`),
			(*fioText).latency},
		{re(`^(slat|clat|lat|sync) percentiles \((nsec|usec|msec)\):$`), (*fioText).percentiles},
		{re(`^\|(\s*[0-9.]+th=.*)$`), (*fioText).row},
		{re(`^fsync/fdatasync/sync_file_range:$`), func(f *fioText, _ []string) { f.begin("sync") }},
		{re(`^(?:<\S+> )?Starting (.+)$`), (*fioText).starting},
		{re(`^(fio-\d|Run status group|Disk stats|bw \(|iops\s*:|lat \([num]sec\)\s*:|cpu\s*:|IO depths\s*:|submit\s*:|` +
			`complete\s*:|issued (rwts?:|r/w)|latency\s*:|(READ|WRITE|TRIM|MIXED): |\S+: ios=|Jobs: \d|<\S+> |hostname=|` +
			`.*: Laying out IO file|clat prio|steadystate|\.\.\.$|fio: |note: |terminate|md\d+:|All clients)`),
			func(f *fioText, _ []string) { f.at = fioLatencyAt{} }},
	}
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
	report
}

func (j *fioTextOf) has(name string) bool {
	return slices.ContainsFunc(j.Figures, func(x imported.Figure) bool { return x.Name == name })
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
	readLines(f, &f.report, strings.ReplaceAll(text, "\r", "\n"), 1, fioTextLines)
	if f.err != nil {
		return nil, f.err
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
	return f.done()
}

// absent names the latencies of a direction that fio usually prints.
func (f *fioText) absent(j *fioTextOf) {
	var names []string
	for _, d := range fioNames {
		name := j.name + " " + d
		if !slices.ContainsFunc(j.Figures, func(x imported.Figure) bool { return strings.HasPrefix(x.Name, name+" ") }) {
			continue
		}
		if !j.has(name + " latency") {
			names = append(names, name+" latency")
		}
		for _, p := range []string{" p50", " p99"} {
			if !j.has(name+" latency"+p) && !j.has(name+" completion latency"+p) {
				names = append(names, name+" latency"+p)
			}
		}
	}
	if len(names) > 0 {
		f.flag(imported.Info, "figuresMissing", "the report does not have: %s", strings.Join(names, ", "))
	}
}

func (f *fioText) settings(m []string) {
	sizes := map[string]int{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
	of, unit := m[3], m[4]
	if strings.Contains(m[2], "write") {
		of, unit = m[5], m[6]
	}
	f.options[m[1]] = map[string]string{"rw": m[2], "bs": strconv.Itoa(f.whole(of) * sizes[unit]), "ioengine": m[7],
		"iodepth": m[8]}
}

func (f *fioText) starting(m []string) {
	for _, n := range fioTextStarted.FindAllStringSubmatch(m[1], -1) {
		f.started += f.whole(n[1])
	}
}

// whole parses a whole number.
func (f *fioText) whole(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		f.refuse("%v", err)
	}
	return n
}

// job begins the figures of a job, or replaces those that --status-interval printed before.
func (f *fioText) job(m []string) {
	if m[4] != "0" {
		f.refuse("job %s failed with error %s: its figures are no trial", m[1], m[4])
	}
	f.jobs = slices.DeleteFunc(f.jobs, func(j *fioTextOf) bool {
		return j.name == m[1] && j.pid == m[6] && j.group == m[2]
	})
	f.jobs = append(f.jobs, &fioTextOf{name: m[1], group: m[2], pid: m[6], jobs: f.whole(m[3])})
	f.at = fioLatencyAt{}
}

// last is the job whose lines are read.
func (f *fioText) last() *fioTextOf {
	if len(f.jobs) == 0 {
		f.refuse("figures without a job before them")
		return &fioTextOf{}
	}
	return f.jobs[len(f.jobs)-1]
}

// begin begins the figures of a direction.
func (f *fioText) begin(direction string) { f.last().direction, f.at = direction, fioLatencyAt{} }

// add adds a figure of the job whose lines are read.
func (f *fioText) add(name, unit string, v float64) {
	j := f.last()
	if j.direction == "" {
		f.refuse("%s without a direction before it", name)
	}
	name = j.name + " " + j.direction + name
	if j.has(name) {
		f.refuse("a second %s in the report of one job: a line before it is missing", name)
	}
	j.figure(name, unit, v, f.options[j.name])
}

// human reads a number of fio with its unit.
func (f *fioText) human(text string) float64 {
	v, err := fioHuman(text)
	if err != nil {
		f.refuse("%v", err)
	}
	return v
}

func (f *fioText) rate(m []string) {
	f.begin(m[1])
	f.add(" IOPS", "IOPS", f.human(m[2]))
	f.add(" bandwidth", "B/s", f.human(m[3]))
}

// latency reads a mean: those of "lat" are figures, as from the JSON.
func (f *fioText) latency(m []string) {
	f.at = fioLatencyAt{}
	if v := f.number("latency", m[3]); m[1] != "slat" && m[1] != "clat" {
		f.add(" latency", "ns", v*nanoseconds[m[2]])
	}
}

func (f *fioText) percentiles(m []string) {
	names := map[string]string{"clat": " completion latency", "slat": "", "lat": " latency", "sync": " latency"}
	f.at = fioLatencyAt{names[m[1]], nanoseconds[m[2]]}
}

// row reads percentiles; those that the JSON's figures have too.
func (f *fioText) row(m []string) {
	cells := fioTextCell.FindAllStringSubmatch(m[1], -1)
	if len(cells) != strings.Count(m[1], "th=") {
		f.refuse("invalid percentiles %q", m[1])
	}
	for _, cell := range cells {
		v := f.human(cell[2])
		if f.at.unit == 0 {
			f.refuse("percentiles without the line that says of what and in which unit")
		}
		name, ok := map[string]string{"50.00": " p50", "99.00": " p99"}[cell[1]]
		if ok && f.at.name != "" {
			f.add(f.at.name+name, "ns", v*f.at.unit)
		}
	}
}
