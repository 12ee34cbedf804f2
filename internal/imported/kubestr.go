package imported

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/lazy"
)

// Lines of the output of kubestr fio.
var (
	kubestrJob     = lazy.Regexp(`^JobName:\s*(.*)$`)
	kubestrOptions = lazy.Regexp(`^blocksize=(\S*) filesize=\S* iodepth=\S* rw=(\S*)$`)
	kubestrFigures = lazy.Regexp(`^IOPS=([0-9.]+) BW\(KiB/s\)=([0-9]+)$`)
)

// parseKubestr reads the IOPS and the bandwidth of each job and direction; each output is a trial. Jobs without a name
// have that of their kind of I/O and block size.
func parseKubestr(text string) ([]Figure, error) {
	var list []Figure
	job, direction := "", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if m := kubestrJob().FindStringSubmatch(line); m != nil {
			job, direction = m[1], ""
		} else if m := kubestrOptions().FindStringSubmatch(line); m != nil && job == "" {
			job = strings.TrimSpace(m[2] + " " + m[1])
		} else if line == "read:" || line == "write:" {
			direction = strings.TrimSuffix(line, ":")
		} else if m := kubestrFigures().FindStringSubmatch(line); m != nil {
			if direction == "" {
				return nil, fmt.Errorf("line %d: figures without a direction", i+1)
			}
			iops, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid IOPS %q", i+1, m[1])
			}
			kib, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid bandwidth %q", i+1, m[2])
			}
			name := strings.TrimSpace(job + " " + direction)
			list = append(list, figureOf(name+" IOPS", "IOPS", iops), figureOf(name+" bandwidth", "KiB/s", kib))
		}
	}
	return list, nil
}
