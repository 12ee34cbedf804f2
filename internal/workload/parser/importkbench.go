package parser

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// kbenchLines are the lines of the summaries of kbench (fio/parse.sh and fio/cmp_parse.sh of yasker/kbench).
var kbenchLines = []linePattern[*kbench]{
	{re(`^FIO Benchmark (Summary|Compar[a-z]+ Summary)$`), (*kbench).begin},
	{re(`^For: (.+)$`), (*kbench).of},
	{re(`^(SIZE|Size|QUICK MODE|Quick Mode|CPU Idleness Profiling): ?(.*)$`), (*kbench).setting},
	{re(`^(IOPS|Bandwidth in KiB/sec|Latency in ns) \(Read/Write\)$`), func(k *kbench, m []string) {
		k.title = kbenchTitles[m[1]]
	}},
	{re(`^(Random|Sequential): +(\S*) / (\S*?)(?: +vs +(\S*) / (\S*) +: +.*)?$`), (*kbench).row},
	{re(`^(=+$|TEST_\w+: |Benchmarking \S+\.fio into |CPU Idleness: |.+ vs .+ : +Change$|QUICK MODE ENABLED$)`), nil},
}

var kbenchNumber = re(`^[0-9]{1,3}(,[0-9]{3})*$|^[0-9]+$`)

func isKbench(text string) bool {
	return strings.Contains(text, "FIO Benchmark ") && strings.Contains(text, "IOPS (Read/Write)")
}

// kbench is the work on its output.
type kbench struct {
	report
	volumes []string // of a comparison two, else none
	options map[string]string
	title   []string // name and unit of the rows that follow
	rows    int      // of the summary that is read
	begun   bool
}

// kbenchRows is how many rows of figures a summary has.
const kbenchRows = 6

var kbenchTitles = map[string][]string{"IOPS": {"IOPS", "IOPS"}, "Bandwidth in KiB/sec": {"bandwidth", "KiB/s"},
	"Latency in ns": {"latency", "ns"}}

// readKbench reads the summaries of kbench, the benchmark of Longhorn: of one volume, or of two that it compares, which
// become levels of the factor volume. Each summary is a trial. Its numbers may have thousands separators.
func readKbench(text string) (*imported.Report, error) {
	k := &kbench{options: map[string]string{}}
	readLines(k, &k.report, text, 1, kbenchLines)
	k.end()
	return k.done()
}

func (k *kbench) begin(m []string) {
	k.end()
	k.volumes, k.options, k.title, k.rows, k.begun = nil, map[string]string{}, nil, 0, true
	if m[1] != "Summary" {
		k.volumes = []string{"", ""}
	}
}

func (k *kbench) end() {
	if k.begun && k.rows != kbenchRows {
		k.missing("a summary has %d of %d rows of figures: it may be cut off", k.rows, kbenchRows)
	}
}

// of reads the names of volumes.
func (k *kbench) of(m []string) {
	if k.volumes == nil {
		return
	}
	first, second, ok := strings.Cut(m[1], " vs ")
	if !ok {
		k.refuse("a comparison of %q: want NAME vs NAME", m[1])
	}
	k.volumes = []string{strings.TrimSpace(first), strings.TrimSpace(second)}
}

func (k *kbench) setting(m []string) {
	if name := strings.ToLower(m[1]); name != "cpu idleness profiling" {
		k.options[name] = strings.ToLower(m[2])
	}
}

func (k *kbench) row(m []string) {
	switch {
	case k.title == nil:
		k.refuse("figures without the line that says of what and in which unit")
		return
	case k.volumes == nil && m[4] != "":
		k.refuse("figures of two volumes without the title of a comparison")
	case k.volumes != nil && (k.volumes[0] == "" || k.volumes[0] == k.volumes[1]):
		k.refuse("figures of two volumes without the line \"For: NAME vs NAME\"")
	}
	k.rows++
	for i, text := range m[2:] {
		var levels []imported.Level
		if k.volumes != nil {
			levels = []imported.Level{{Factor: "volume", Level: k.volumes[i/2]}}
		}
		switch name := m[1] + " " + []string{"read", "write"}[i%2] + " " + k.title[0]; {
		case k.volumes == nil && i > 1:
		case text == "":
			k.missing("%s is empty", name)
		case !kbenchNumber.MatchString(text):
			k.refuse("%s: invalid number %q", name, text)
		default:
			k.figure(name, k.title[1], k.number(name, strings.ReplaceAll(text, ",", "")), k.options, levels...)
		}
	}
	if m[1] == "Sequential" {
		k.title = nil
	}
}
