package imported

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/lazy"
)

// Lines of dbench's summary. Its figures are those that fio prints: "75.7k", "523MiB/s".
var (
	dbenchRandom     = lazy.Regexp(`^Random Read/Write IOPS: (\S+)/(\S+)\. BW: (\S+) / (\S+)$`)
	dbenchLatency    = lazy.Regexp(`^Average Latency \((\w+)\) Read/Write: (\S+)/(\S+)$`)
	dbenchSequential = lazy.Regexp(`^Sequential Read/Write: (\S+) / (\S+)$`)
	dbenchMixed      = lazy.Regexp(`^Mixed Random Read/Write IOPS: (\S+)/(\S+)$`)
)

// parseDbench reads the summaries in the log of dbench; each is a trial.
func parseDbench(text string) ([]Figure, error) {
	var list []Figure
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		var err error
		add := func(name, unit, value string) {
			var f Figure
			if f, err = humanFigure(name, unit, value, err); err == nil {
				list = append(list, f)
			}
		}
		if m := dbenchRandom().FindStringSubmatch(line); m != nil {
			add("Random read IOPS", "IOPS", m[1])
			add("Random write IOPS", "IOPS", m[2])
			add("Random read bandwidth", "MiB/s", m[3])
			add("Random write bandwidth", "MiB/s", m[4])
		} else if m := dbenchLatency().FindStringSubmatch(line); m != nil {
			unit := strings.TrimSuffix(m[1], "ec")
			add("Read latency", unit, m[2])
			add("Write latency", unit, m[3])
		} else if m := dbenchSequential().FindStringSubmatch(line); m != nil {
			add("Sequential read", "MiB/s", m[1])
			add("Sequential write", "MiB/s", m[2])
		} else if m := dbenchMixed().FindStringSubmatch(line); m != nil {
			add("Mixed read IOPS", "IOPS", m[1])
			add("Mixed write IOPS", "IOPS", m[2])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return list, nil
}

// human matches a figure as fio prints it for people.
var human = lazy.Regexp(`^([0-9]+(?:\.[0-9]+)?)([kM]?)((?:[KMG]i?)?B/s)?$`)

// mebibytes are the units of fio's bandwidths in MiB/s.
var mebibytes = map[string]float64{"B/s": 1.0 / (1 << 20), "KiB/s": 1.0 / (1 << 10), "MiB/s": 1, "GiB/s": 1 << 10,
	"KB/s": 1e3 / (1 << 20), "MB/s": 1e6 / (1 << 20), "GB/s": 1e9 / (1 << 20)}

// humanFigure reads a figure in IOPS, MiB/s, or a unit of time. After an error it returns that.
func humanFigure(name, unit, text string, before error) (Figure, error) {
	if before != nil {
		return Figure{}, before
	}
	m := human().FindStringSubmatch(text)
	if m == nil || (unit == "MiB/s") != (m[3] != "") {
		return Figure{}, fmt.Errorf("invalid figure %q of %s", text, name)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return Figure{}, err
	}
	x *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
	if m[3] != "" {
		x *= mebibytes[m[3]]
	}
	return figureOf(name, unit, x), nil
}
