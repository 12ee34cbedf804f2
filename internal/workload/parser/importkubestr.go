package parser

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// kubestrLines are the lines of the output of kubestr fio.
var kubestrLines = []linePattern[*kubestr]{
	{re(`^FIO test results:$`), (*kubestr).begin},
	{re(`^JobName:\s*(.*)$`), (*kubestr).named},
	{re(`^blocksize=(\S*) filesize=(\S*) iodepth=(\S*) rw=(\S*)$`), (*kubestr).with},
	{re(`^(read|write|trim):$`), (*kubestr).side},
	{re(`^IOPS=([0-9.]+) BW\(KiB/s\)=([0-9]+)$`), (*kubestr).figures},
	{re(`^Disk stats \(read/write\):$`), func(k *kubestr, _ []string) { k.ends++ }},
	{re(`^(PVC (created|deleted)|Pod (created|deleted)|Running FIO test|Elapsed time-|FIO version - |Global options - |` +
		`iops: min=|bw\(KiB/s\): min=|\S+: ios=|- +OK$)`), nil},
}

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
	sides          []string       // directions of the job
	open           bool           // the job, or its direction, has no figures yet
	outputs, ends  int
}

// readKubestr reads the IOPS and the bandwidth of each job and direction; each output is a trial. Jobs without a name
// have that of their kind of I/O and block size, as far as kubestr prints them.
func readKubestr(text string) (*imported.Report, error) {
	k := &kubestr{seen: map[string]int{}}
	readLines(k, &k.report, text, 1, kubestrLines)
	k.incomplete("the output")
	if k.ends > max(k.outputs, 1) {
		k.flag(imported.Warning, "linesMissing", "%d outputs end (\"Disk stats\"), %d begin (\"FIO test results:\")", k.ends,
			k.outputs)
	}
	if k.ends < max(k.outputs, 1) {
		k.flag(imported.Warning, "reportCut", "the output has no end (\"Disk stats\"): it may be cut off")
	}
	return k.done()
}

func (k *kubestr) begin([]string) {
	k.incomplete("an output")
	k.seen = map[string]int{}
	k.outputs++
}

// incomplete flags a direction without figures.
func (k *kubestr) incomplete(what string) {
	if k.open {
		k.missing("%s has no figures of %s", what, strings.TrimSpace(k.job+" "+k.direction))
	}
	k.open = false
}

func (k *kubestr) named(m []string) {
	k.incomplete("job " + k.job)
	k.job, k.direction, k.options, k.sides = m[1], "", nil, nil
	k.open = true
}

func (k *kubestr) with(m []string) {
	switch {
	case !k.open && k.job == "":
		k.refuse("options of a job without the line JobName before them")
	case k.options != nil:
		k.refuse("a second line of options of one job: its line JobName is missing")
	}
	k.options = map[string]string{"bs": m[1], "filesize": m[2], "iodepth": m[3], "rw": m[4]}
	if k.job == "" {
		k.job = strings.TrimSpace(m[4] + " " + m[1])
	}
	id := fmt.Sprintf("%q %q", k.job, m[1:])
	if k.seen[id]++; k.seen[id] > 1 { // another job that nothing else tells apart
		k.options["job"] = strconv.Itoa(k.seen[id])
	}
}

func (k *kubestr) side(m []string) {
	if k.direction != "" {
		k.incomplete("job " + k.job)
	}
	if slices.Contains(k.sides, m[1]) {
		k.refuse("a second part %s of one job: a line before it is missing", m[1])
	}
	k.direction, k.open, k.sides = m[1], true, append(k.sides, m[1])
}

func (k *kubestr) figures(m []string) {
	switch {
	case k.direction == "":
		k.refuse("figures without a direction")
	case k.options == nil:
		k.refuse("figures without the line of the job's options (blocksize=…)")
	case !k.open:
		k.refuse("a second line of figures of %s", k.direction)
	}
	name, options := strings.TrimSpace(k.job+" "+k.direction), maps.Clone(k.options)
	k.figure(name+" IOPS", "IOPS", k.number("IOPS", m[1]), options)
	k.figure(name+" bandwidth", "KiB/s", k.number("bandwidth", m[2]), options)
	k.open = false
}
