package parser

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// Lines of dbench's summary. Its figures are those that fio prints: "75.7k", "523MiB/s". A figure is empty where dbench
// did not find it in fio's report.
var (
	dbenchBegin      = regexp.MustCompile(`^= Dbench Summary =$`)
	dbenchRandom     = regexp.MustCompile(`^Random Read/Write IOPS: (\S*?)/(\S*?)\. BW: (\S*) / (\S*)$`)
	dbenchDelay      = regexp.MustCompile(`^Average Latency \((\w+)\) Read/Write: (\S*?) ?/ ?(\S*)$`)
	dbenchSequential = regexp.MustCompile(`^Sequential Read/Write: (\S*) / (\S*)$`)
	dbenchMixed      = regexp.MustCompile(`^Mixed Random Read/Write IOPS: (\S*?)/(\S*)$`)
	dbenchRule       = regexp.MustCompile(`^=+$`)
)

func isDbench(text string) bool { return strings.Contains(text, "= Dbench Summary =") }

// The depths at which dbench measures IOPS and latencies.
const (
	dbenchDepth        = 64
	dbenchLatencyDepth = 4
)

// readDbench reads the summaries in the log of dbench; each is a trial. What precedes a summary is what fio printed.
func readDbench(text string) (*imported.Report, error) {
	d := &dbenchSummary{}
	before, rest, found := strings.Cut(text, "= Dbench Summary =\n")
	if !found {
		before, rest = "", text // the lines alone, as they are pasted
	}
	line := strings.Count(before, "\n") + 1
	if found {
		rest = "= Dbench Summary =\n" + rest
	}
	err := d.lines(rest, line, []linePattern{
		{dbenchBegin, d.begin}, {dbenchRule, nil},
		{regexp.MustCompile(`^(All tests complete\.|Testing .*\.\.\.|Working dir: .*)$`), nil},
		{dbenchRandom, func(m []string) error {
			return d.add("Random read IOPS", "IOPS", m[1], "Random write IOPS", "IOPS", m[2], "Random read bandwidth", "MiB/s",
				m[3],
				"Random write bandwidth", "MiB/s", m[4])
		}},
		{dbenchDelay, func(m []string) error {
			unit := strings.TrimSuffix(m[1], "ec")
			return d.add("Read latency", unit, m[2], "Write latency", unit, m[3])
		}},
		{dbenchSequential, func(m []string) error {
			return d.add("Sequential read", "MiB/s", m[1], "Sequential write", "MiB/s", m[2])
		}},
		{dbenchMixed, func(m []string) error {
			return d.add("Mixed read IOPS", "IOPS", m[1], "Mixed write IOPS", "IOPS", m[2])
		}},
	})
	if err != nil {
		return nil, err
	}
	d.end()
	return &d.Report, nil
}

// dbenchSummary is the work on a log.
type dbenchSummary struct {
	report
	values map[string]float64 // of the summary that is read, in IOPS, MiB/s and ns
	begun  bool
}

func (d *dbenchSummary) begin([]string) error {
	if d.values != nil || d.begun {
		d.end()
	}
	d.values, d.begun = nil, true
	return nil
}

// add adds figures: name, unit and text of each.
func (d *dbenchSummary) add(figures ...string) error {
	if _, again := d.values[figures[0]]; again {
		if err := d.begin(nil); err != nil {
			return err
		}
	}
	if d.values == nil {
		d.values = map[string]float64{}
	}
	for i := 0; i < len(figures); i += 3 {
		name, unit, text := figures[i], figures[i+1], figures[i+2]
		if text == "" {
			continue // end says so
		}
		x, err := humanFigure(name, unit, text)
		if err != nil {
			return err
		}
		d.values[name] = x
		if ns, ok := nanoseconds[unit+"ec"]; ok {
			d.values[name] = x * ns
		}
		d.figure(name, unit, x, nil)
	}
	return nil
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
		d.flag(imported.Warning, "figuresMissing", "the summary does not have: %s (dbench did not find them in fio's report)",
			strings.Join(absent, ", "))
	}
	for _, direction := range []string{"ead", "rite"} {
		first := map[string]string{"ead": "R", "rite": "W"}[direction]
		iops, ok := d.values["Random "+strings.ToLower(first)+direction+" IOPS"]
		latency, both := d.values[first+direction+" latency"]
		if !ok || !both || latency <= 0 || iops <= 0 {
			continue
		}
		// By Little's law a latency at depth 4 makes 4 ÷ latency IOPS. More I/Os in flight rarely make fewer, and never
		// more than 64 ÷ latency, if none is faster than at depth 4.
		const margin = 10
		few, many := dbenchLatencyDepth*1e9/latency, dbenchDepth*1e9/latency
		if few > margin*iops || iops > margin*many {
			d.flag(imported.Warning, "latencyDoubtful",
				"%s%s latency of %.3g ms cannot be with %.0f IOPS: at depth %d it makes %.0f IOPS; the unit that dbench "+
					"prints may be wrong (it takes what fio prints as msec for usec)", first, direction, latency/1e6, iops,
				dbenchLatencyDepth, few)
		}
	}
}

// human matches a figure as fio prints it for people.
var human = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kM]?)((?:[KMGT]i?|k)?B/s)?$`)

// bytesPerSecond are the units of fio's bandwidths.
var bytesPerSecond = map[string]float64{"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
	"TiB/s": 1 << 40,
	"kB/s":  1e3, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}

// humanFigure reads a figure in IOPS, MiB/s, or a unit of time.
func humanFigure(name, unit, text string) (float64, error) {
	m := human.FindStringSubmatch(text)
	if m == nil || (unit == "MiB/s") != (m[3] != "") {
		return 0, fmt.Errorf("invalid figure %q of %s", text, name)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, err
	}
	x *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
	if m[3] != "" {
		x *= bytesPerSecond[m[3]] / (1 << 20)
	}
	return x, nil
}
