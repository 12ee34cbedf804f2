package parser

import (
	"math"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// The metrics of MEGAHIT. They have the values that it prints.
var (
	megahitElapsed = timeOf("elapsed", metric.Level, "time of the whole assembly, a fixed load").Principal(1)
	megahitContigs = countOf("contigs", "contigs of the result")
	megahitBases   = countOf("bases", "bases of all contigs")
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
	return timeOf("stage."+name, metric.Level, "time of "+what)
}

// Megahit reads the log of MEGAHIT 1.2.9 (*.log), as it writes it to stderr with --verbose.
func Megahit(in Input) (Result, error) {
	m := &megahit{work: work{in: in}, stages: map[string]float64{}}
	return m.run("megahit", "there is no *.log: write the stderr of megahit --verbose to one, and name it among the "+
		"outputs", func() (bool, error) { return m.first(".log", m.line) }, m.results)
}

// megahit is the work on one log.
type megahit struct {
	work
	stage    string             // that runs
	runs     bool               // it has begun, and not ended
	unpaired int                // lines of beginnings and ends of stages without the other
	stages   map[string]float64 // seconds
}

// Lines of the log. Those of a stage are written as Python prints bytes. Without the time the log repeats messages that
// it could not write elsewhere.
var (
	megahitRow    = re(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d - (.*)$`)
	megahitFailed = re(`FATAL .*|^\w+Error: .*|option .* not recognized|Cannot find file .*|Exit code -?\d+$`)
	// megahitLines are the lines that are read, after their time.
	megahitLines = []linePattern[*megahit]{
		{re(`^b'.* - Real: ([\d.]+)\\t`), func(m *megahit, s []string) { m.ends(numberOf(s[1])) }},
		figureLine[*megahit](`^(\d+) contigs, total (\d+) bp, .*N50 (\d+) bp$`, nil, megahitContigs, megahitBases,
			megahitN50),
		figureLine[*megahit](`^ALL DONE\. Time elapsed: ([\d.]+) seconds\s*$`, printedIn{metric.Nanoseconds: 1e9},
			megahitElapsed),
	}
)

func (m *megahit) line(row string) {
	if s := megahitFailed.FindString(row); s != "" {
		m.fail(s)
	}
	stamped := megahitRow.FindStringSubmatch(row)
	if stamped == nil {
		return
	}
	matched(m, megahitLines, stamped[1])
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

// results adds the times of the stages that ended.
func (m *megahit) results() {
	done := m.res.has(megahitElapsed)
	for _, s := range megahitStages {
		if spent, ended := m.stages[s.time.Name]; ended {
			m.scalar(s.time, math.Round(spent*1e6)*1e3)
		}
	}
	if done && m.runs {
		m.unpaired++
	}
	if m.unpaired > 0 {
		m.warn("megahitDiffers", "%d stages begin or end only: lines of the log are missing (or --verbose was), and "+
			"times of stages may be wrong", m.unpaired)
	}
	if done {
		m.res.expect(megahitElapsed, megahitContigs, megahitBases, megahitN50)
		return
	}
	if m.failed == "" && m.stage != "" {
		m.warn("megahitTruncated", "MEGAHIT ended before its result in %s", m.stage)
		return
	}
	m.warn("megahitTruncated", "MEGAHIT ended before its result%s", m.because())
}
