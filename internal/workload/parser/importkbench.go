package parser

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// Lines of the summaries of kbench (fio/parse.sh and fio/cmp_parse.sh of yasker/kbench).
var (
	kbenchBegin   = regexp.MustCompile(`^FIO Benchmark (Summary|Compar[a-z]+ Summary)$`)
	kbenchFor     = regexp.MustCompile(`^For: (.+)$`)
	kbenchSetting = regexp.MustCompile(`^(SIZE|Size|QUICK MODE|Quick Mode|CPU Idleness Profiling): ?(.*)$`)
	kbenchTitle   = regexp.MustCompile(`^(IOPS|Bandwidth in KiB/sec|Latency in ns) \(Read/Write\)$`)
	kbenchRow     = regexp.MustCompile(`^(Random|Sequential): +(\S*) / (\S*?)(?: +vs +(\S*) / (\S*) +: +.*)?$`)
	kbenchLeftOut = regexp.MustCompile(`^(=+$|TEST_\w+: |Benchmarking \S+\.fio into |CPU Idleness: |` +
		`.+ vs .+ : +Change$|QUICK MODE ENABLED$)`)
	kbenchNumber = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})*$|^[0-9]+$`)
)

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
	k := &kbench{}
	if err := k.lines(text, 1, []linePattern{{kbenchBegin, k.begin}, {kbenchFor, k.of}, {kbenchSetting, k.setting},
		{kbenchTitle, k.titled}, {kbenchRow, k.row}, {kbenchLeftOut, nil}}); err != nil {
		return nil, err
	}
	k.end()
	return &k.Report, nil
}

func (k *kbench) begin(m []string) error {
	k.end()
	k.volumes, k.options, k.title, k.rows, k.begun = nil, map[string]string{}, nil, 0, true
	if m[1] != "Summary" {
		k.volumes = []string{"", ""}
	}
	return nil
}

func (k *kbench) end() {
	if k.begun && k.rows != kbenchRows {
		k.flag(imported.Warning, "figuresMissing", "a summary has %d of %d rows of figures: it may be cut off", k.rows,
			kbenchRows)
	}
}

// of reads the names of volumes.
func (k *kbench) of(m []string) error {
	if k.volumes == nil {
		return nil
	}
	first, second, ok := strings.Cut(m[1], " vs ")
	if !ok {
		return fmt.Errorf("a comparison of %q: want NAME vs NAME", m[1])
	}
	k.volumes = []string{strings.TrimSpace(first), strings.TrimSpace(second)}
	return nil
}

func (k *kbench) setting(m []string) error {
	if k.options == nil {
		k.options = map[string]string{}
	}
	if name := strings.ToLower(m[1]); name != "cpu idleness profiling" {
		k.options[name] = strings.ToLower(m[2])
	}
	return nil
}

func (k *kbench) titled(m []string) error {
	k.title = kbenchTitles[m[1]]
	return nil
}

func (k *kbench) row(m []string) error {
	if k.title == nil {
		return errors.New("figures without the line that says of what and in which unit")
	}
	pairs := [][]string{{m[2], m[3]}}
	if k.volumes != nil {
		pairs = append(pairs, []string{m[4], m[5]})
		if k.volumes[0] == "" || k.volumes[0] == k.volumes[1] {
			return errors.New("figures of two volumes without the line \"For: NAME vs NAME\"")
		}
	} else if m[4] != "" {
		return errors.New("figures of two volumes without the title of a comparison")
	}
	if m[1] == "Sequential" {
		defer func() { k.title = nil }()
	}
	k.rows++
	for i, pair := range pairs {
		for j, direction := range []string{"read", "write"} {
			name := m[1] + " " + direction + " " + k.title[0]
			if pair[j] == "" {
				k.flag(imported.Warning, "figuresMissing", "%s is empty", name)
				continue
			}
			v, err := kbenchValue(pair[j])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			k.figure(name, k.title[1], v, k.options)
			if k.volumes != nil {
				k.Figures[len(k.Figures)-1].Levels = []imported.Level{{Factor: "volume", Level: k.volumes[i]}}
			}
		}
	}
	return nil
}

func kbenchValue(text string) (float64, error) {
	if !kbenchNumber.MatchString(text) {
		return 0, fmt.Errorf("invalid number %q", text)
	}
	return strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
}
