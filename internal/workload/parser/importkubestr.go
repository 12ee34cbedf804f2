package parser

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// Lines of the output of kubestr fio.
var (
	kubestrBegin   = regexp.MustCompile(`^FIO test results:$`)
	kubestrJob     = regexp.MustCompile(`^JobName:\s*(.*)$`)
	kubestrOptions = regexp.MustCompile(`^blocksize=(\S*) filesize=(\S*) iodepth=(\S*) rw=(\S*)$`)
	kubestrSide    = regexp.MustCompile(`^(read|write|trim):$`)
	kubestrFigures = regexp.MustCompile(`^IOPS=([0-9.]+) BW\(KiB/s\)=([0-9]+)$`)
	kubestrGlobal  = regexp.MustCompile(`^Global options - (.*)$`)
	kubestrLeftOut = regexp.MustCompile(`^(PVC (created|deleted)|Pod (created|deleted)|Running FIO test|Elapsed time-|` +
		`FIO version - |iops: min=|bw\(KiB/s\): min=|\S+: ios=|- +OK$)`)
	kubestrDisk = regexp.MustCompile(`^Disk stats \(read/write\):$`)
)

func isKubestr(text string) bool {
	return strings.Contains(text, "FIO test results:") || strings.Contains(text, "JobName:") && strings.Contains(text,
		"BW(KiB/s)=")
}

// kubestr is the work on its output.
type kubestr struct {
	report
	job, direction string
	options        map[string]string
	seen           map[string]int // jobs of this output by name and options
	done           []string       // directions of the job
	open           bool           // the job, or its direction, has no figures yet
	outputs, ends  int
}

// readKubestr reads the IOPS and the bandwidth of each job and direction; each output is a trial. Jobs without a name
// have that of their kind of I/O and block size, as far as kubestr prints them.
func readKubestr(text string) (*imported.Report, error) {
	k := &kubestr{seen: map[string]int{}}
	if err := k.lines(text, 1, []linePattern{
		{kubestrBegin, k.begin}, {kubestrJob, k.named}, {kubestrOptions, k.with}, {kubestrSide, k.side},
		{kubestrFigures, k.figures}, {kubestrGlobal, nil}, {kubestrDisk, k.disk}, {kubestrLeftOut, nil},
	}); err != nil {
		return nil, err
	}
	k.incomplete("the output")
	if k.ends > max(k.outputs, 1) {
		k.flag(imported.Warning, "linesMissing", "%d outputs end (\"Disk stats\"), %d begin (\"FIO test results:\")", k.ends,
			k.outputs)
	}
	if k.ends < max(k.outputs, 1) {
		k.flag(imported.Warning, "reportCut", "the output has no end (\"Disk stats\"): it may be cut off")
	}
	return &k.Report, nil
}

func (k *kubestr) begin([]string) error {
	k.incomplete("an output")
	k.seen = map[string]int{}
	k.outputs++
	return nil
}

// incomplete flags a direction without figures.
func (k *kubestr) incomplete(what string) {
	if k.open {
		k.flag(imported.Warning, "figuresMissing", "%s has no figures of %s", what, strings.TrimSpace(k.job+" "+k.direction))
	}
	k.open = false
}

func (k *kubestr) named(m []string) error {
	k.incomplete("job " + k.job)
	k.job, k.direction, k.options, k.done = m[1], "", nil, nil
	k.open = true
	return nil
}

func (k *kubestr) with(m []string) error {
	if !k.open && k.job == "" {
		return errors.New("options of a job without the line JobName before them")
	}
	if k.options != nil {
		return errors.New("a second line of options of one job: its line JobName is missing")
	}
	k.options = map[string]string{"bs": m[1], "filesize": m[2], "iodepth": m[3], "rw": m[4]}
	if k.job == "" {
		k.job = strings.TrimSpace(m[4] + " " + m[1])
	}
	id := fmt.Sprintf("%q %q", k.job, m[1:])
	if k.seen[id]++; k.seen[id] > 1 { // another job that nothing else tells apart
		k.options["job"] = strconv.Itoa(k.seen[id])
	}
	return nil
}

func (k *kubestr) side(m []string) error {
	if k.direction != "" {
		k.incomplete("job " + k.job)
	}
	if slices.Contains(k.done, m[1]) {
		return fmt.Errorf("a second part %s of one job: a line before it is missing", m[1])
	}
	k.direction, k.open, k.done = m[1], true, append(k.done, m[1])
	return nil
}

func (k *kubestr) figures(m []string) error {
	if k.direction == "" {
		return errors.New("figures without a direction")
	}
	if k.options == nil {
		return errors.New("figures without the line of the job's options (blocksize=…)")
	}
	if !k.open {
		return fmt.Errorf("a second line of figures of %s", k.direction)
	}
	iops, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return fmt.Errorf("invalid IOPS %q", m[1])
	}
	kib, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return fmt.Errorf("invalid bandwidth %q", m[2])
	}
	name, options := strings.TrimSpace(k.job+" "+k.direction), maps.Clone(k.options)
	k.figure(name+" IOPS", "IOPS", iops, options)
	k.figure(name+" bandwidth", "KiB/s", kib, options)
	k.open = false
	return nil
}

func (k *kubestr) disk([]string) error {
	k.ends++
	return nil
}
