package parser

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// The metrics of MEGAHIT. They have the values that it prints.
var (
	megahitElapsed = declare("elapsed", metric.Nanoseconds, metric.Level, metric.Lower,
		"time of the whole assembly, a fixed load").Principal(1)
	megahitContigs = declare("contigs", metric.Count, metric.Quantity, "", "contigs of the result")
	megahitBases   = declare("bases", metric.Count, metric.Quantity, "", "bases of all contigs")
	megahitN50     = declare("n50", metric.Count, metric.Level, "",
		"bases of the contig with which, from the longest on, half of the bases are reached")

	// megahitStages are the beginnings of the lines with which stages start, and the metrics of their times.
	megahitStages = []struct {
		begin string
		time  metric.Declaration
	}{
		{"Convert reads to binary library", megahitStage("read", "packing the reads")},
		{"Extract solid (k+1)-mers for k = ", megahitStage("count", "sorting and counting the k-mers of the reads")},
		{"Build graph for k = ", megahitStage("graph", "building the graphs of all k")},
		{"Assemble contigs from SdBG for k = ", megahitStage("assemble", "cleaning the graphs and writing contigs")},
		{"Local assembly for k = ", megahitStage("local", "mapping reads to the ends of contigs")},
		{"Extract iterative edges from k = ", megahitStage("iterate", "extracting the k-mers of the next k")},
	}

	megahitMetrics = func() []metric.Declaration {
		list := []metric.Declaration{megahitElapsed, megahitContigs, megahitBases, megahitN50}
		for _, s := range megahitStages {
			list = append(list, s.time)
		}
		return list
	}()
)

func megahitStage(name, what string) metric.Declaration {
	return declare("stage."+name, metric.Nanoseconds, metric.Level, metric.Lower, "time of "+what)
}

// Megahit reads the log of MEGAHIT 1.2.9 (*.log), as it writes it to stderr with --verbose.
func Megahit(in Input) (Result, error) {
	m := megahit{work: work{in: in}, stages: map[string]float64{}}
	found := false
	err := m.walk(func(name string) error {
		if found {
			return nil
		}
		found = true
		return m.lines(name, m.line)
	}, ".log")
	switch {
	case err != nil:
		return m.res, fmt.Errorf("megahit: %w", err)
	case !found:
		return m.res, errors.New("megahit: there is no *.log: write the stderr of megahit --verbose to one, and name it " +
			"among the outputs")
	}
	m.results()
	return m.res, nil
}

// megahit is the work on one log.
type megahit struct {
	work
	stage    string             // that runs
	runs     bool               // it has begun, and not ended
	unpaired int                // lines of beginnings and ends of stages without the other
	stages   map[string]float64 // seconds
	failed   string
	done     bool
}

// Lines of the log, after their time. Those of a stage are written as Python prints bytes. Without the time the log
// repeats messages that it could not write elsewhere.
var (
	megahitRow    = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d - (.*)$`)
	megahitReal   = regexp.MustCompile(`^b'.* - Real: ([\d.]+)\\t`)
	megahitResult = regexp.MustCompile(`^(\d+) contigs, total (\d+) bp, .*N50 (\d+) bp$`)
	megahitEnd    = regexp.MustCompile(`^ALL DONE\. Time elapsed: ([\d.]+) seconds\s*$`)
	megahitFailed = regexp.MustCompile(`FATAL .*|^\w+Error: .*|option .* not recognized|Cannot find file .*|` +
		`Exit code -?\d+$`)
)

func (m *megahit) line(row string) {
	if s := megahitFailed.FindString(row); s != "" && m.failed == "" {
		m.failed = s[:min(len(s), 200)]
	}
	stamped := megahitRow.FindStringSubmatch(row)
	if stamped == nil {
		return
	}
	if s := megahitReal.FindStringSubmatch(stamped[1]); s != nil {
		m.ends(seconds(s[1]))
	} else if s := megahitResult.FindStringSubmatch(stamped[1]); s != nil {
		m.count(megahitContigs, s[1])
		m.count(megahitBases, s[2])
		m.count(megahitN50, s[3])
	} else if s := megahitEnd.FindStringSubmatch(stamped[1]); s != nil {
		m.done = true
		m.time(megahitElapsed, seconds(s[1]))
	}
	for _, stage := range megahitStages {
		if strings.HasPrefix(stamped[1], stage.begin) {
			if m.runs {
				m.unpaired++
			}
			m.stage, m.runs = stage.time.Name, true
		}
	}
}

// ends is the end of a stage, which took some seconds.
func (m *megahit) ends(took float64) {
	if !m.runs {
		m.unpaired++
	}
	if m.runs = false; m.stage != "" {
		m.stages[m.stage] += took
	}
}

// maxMegahitSeconds is the greatest accepted time.
const maxMegahitSeconds = 1 << 31

// seconds of a text; 0: none, or more than is accepted.
func seconds(text string) float64 {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s > maxMegahitSeconds {
		return 0
	}
	return s
}

func (m *megahit) time(of metric.Declaration, s float64) {
	m.scalar(of, math.Round(s*1e6)*float64(time.Microsecond))
}

func (m *megahit) count(of metric.Declaration, text string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		m.scalar(of, float64(n))
	}
}

// results adds the times of the stages that ended.
func (m *megahit) results() {
	for _, s := range megahitStages {
		if spent, ended := m.stages[s.time.Name]; ended {
			m.time(s.time, spent)
		}
	}
	if m.done && m.runs {
		m.unpaired++
	}
	if m.unpaired > 0 {
		m.warn("megahitDiffers", "%d stages begin or end only: lines of the log are missing (or --verbose was), and "+
			"times of stages may be wrong", m.unpaired)
	}
	if m.done {
		m.res.expect(megahitElapsed, megahitContigs, megahitBases, megahitN50)
		return
	}
	reason := ""
	if m.failed != "" {
		reason = ": " + m.failed
	} else if m.stage != "" {
		reason = " in " + m.stage
	}
	m.warn("megahitTruncated", "MEGAHIT ended before its result%s", reason)
}
