package parser

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// Lines of dbench's summary. Its figures are those that fio prints: "75.7k", "523MiB/s". A figure is empty where dbench
// did not find it in fio's report.
var dbenchLines = []linePattern[*dbenchSummary]{
	{re(`^= Dbench Summary =$`), func(d *dbenchSummary, _ []string) { d.begin() }},
	{re(`^(=+|All tests complete\.|Testing .*\.\.\.|Working dir: .*)$`), nil},
	dbenchFigures(`^Random Read/Write IOPS: ()(\S*?)/(\S*?)\. BW: (\S*) / (\S*)$`, dbenchTests[:4]),
	dbenchFigures(`^Average Latency \((\w+)\) Read/Write: (\S*?) ?/ ?(\S*)$`, dbenchTests[4:6]),
	dbenchFigures(`^Sequential Read/Write: ()(\S*) / (\S*)$`, dbenchTests[6:8]),
	dbenchFigures(`^Mixed Random Read/Write IOPS: ()(\S*?)/(\S*)$`, dbenchTests[8:]),
}

// dbenchFigures is a line with the figures of tests. Its first group is the unit of times.
func dbenchFigures(pattern string, tests []dbenchTest) linePattern[*dbenchSummary] {
	return linePattern[*dbenchSummary]{re(pattern), func(d *dbenchSummary, m []string) {
		d.add(strings.TrimSuffix(m[1], "ec"), tests, m[2:])
	}}
}

func isDbench(text string) bool { return strings.Contains(text, "= Dbench Summary =") }

// The depths at which dbench measures IOPS and latencies.
const (
	dbenchDepth        = 64
	dbenchLatencyDepth = 4
)

// readDbench reads the summaries in the log of dbench; each is a trial. What precedes a summary is what fio printed.
func readDbench(text string) (*imported.Report, error) {
	d := &dbenchSummary{}
	at := max(0, strings.Index(text, "= Dbench Summary =\n")) // or the lines alone, as they are pasted
	readLines(d, &d.report, text[at:], strings.Count(text[:at], "\n")+1, dbenchLines)
	d.end()
	return d.done()
}

// dbenchSummary is the work on a log.
type dbenchSummary struct {
	report
	values map[string]float64 // of the summary that is read, in IOPS, MiB/s and ns
	begun  bool
}

func (d *dbenchSummary) begin() {
	if d.values != nil || d.begun {
		d.end()
	}
	d.values, d.begun = nil, true
}

// add adds the figures of a line; times have a unit.
func (d *dbenchSummary) add(unit string, tests []dbenchTest, texts []string) {
	if _, again := d.values[tests[0].figure.Name]; again {
		d.begin()
	}
	if d.values == nil {
		d.values = map[string]float64{}
	}
	for i, t := range tests {
		if texts[i] == "" {
			continue // end says so
		}
		name, one := t.figure.Name, 1.0
		of, known := map[string]string{metric.PerSecond: "IOPS", metric.BytesPerSecond: "MiB/s"}[t.figure.Unit]
		if !known {
			of = unit
		}
		x, err := fioHuman(texts[i])
		if err != nil || (of == "MiB/s") != strings.HasSuffix(texts[i], "B/s") {
			d.refuse("invalid figure %q of %s", texts[i], name)
		}
		if of == "MiB/s" {
			x /= 1 << 20
		}
		if ns, ok := nanoseconds[of+"ec"]; ok {
			one = ns
		}
		d.values[name] = x * one
		d.figure(name, of, x, nil)
	}
}

// end checks that a summary has all of the figures, and that they can be true together.
func (d *dbenchSummary) end() {
	var absent []string
	for _, t := range dbenchTests {
		if _, ok := d.values[t.figure.Name]; !ok {
			absent = append(absent, t.figure.Name)
		}
	}
	if len(absent) > 0 {
		d.missing("the summary does not have: %s (dbench did not find them in fio's report)", strings.Join(absent, ", "))
	}
	for _, direction := range []string{"Read", "Write"} {
		iops, ok := d.values["Random "+strings.ToLower(direction)+" IOPS"]
		latency, both := d.values[direction+" latency"]
		if !ok || !both || latency <= 0 || iops <= 0 {
			continue
		}
		// By Little's law a latency at depth 4 makes 4 ÷ latency IOPS. More I/Os in flight rarely make fewer, and never
		// more than 64 ÷ latency, if none is faster than at depth 4.
		const margin = 10
		few, many := dbenchLatencyDepth*1e9/latency, dbenchDepth*1e9/latency
		if few > margin*iops || iops > margin*many {
			d.flag(imported.Warning, "latencyDoubtful",
				"%s latency of %.3g ms cannot be with %.0f IOPS: at depth %d it makes %.0f IOPS; the unit that dbench "+
					"prints may be wrong (it takes what fio prints as msec for usec)", direction, latency/1e6, iops,
				dbenchLatencyDepth, few)
		}
	}
}

// human matches a figure as fio prints it for people.
var human = re(`^([0-9]+(?:\.[0-9]+)?)([kM]?)((?:[KMGT]i?|k)?B/s)?$`)

// bytesPerSecond are the units of fio's bandwidths.
var bytesPerSecond = map[string]float64{"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
	"TiB/s": 1 << 40, "kB/s": 1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}

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
