package compare

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
)

// tolerance is the factor by which a value may exceed what the devices allow.
const tolerance = 1.05

// Severities of a flag.
const (
	warning = "warning" // weakens a figure
	invalid = "invalid" // the figure must not be used
)

// maximum matches the number and the unit of a limit.
var maximum = regexp.MustCompile(`^([0-9.eE+]+)\s*(\S*)$`)

// ParseLimit reads "provider=Portworx,metric=Random read IOPS,max=15000". Values may have commas: a new part starts
// with metric, max or the name of a factor.
func ParseLimit(text string, factors []string) (Limit, error) {
	keys := append(slices.Clone(factors), "metric", "max")
	parts, last := map[string]string{}, ""
	for _, segment := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(segment, "=")
		name = strings.TrimSpace(name)
		switch {
		case ok && slices.Contains(keys, name):
			last = name
			parts[last] = strings.TrimSpace(value)
		case last == "":
			return Limit{}, fmt.Errorf("invalid --limit %q: want FACTOR=LEVEL,metric=METRIC,max=NUMBER with a factor of %s",
				text, strings.Join(factors, ", "))
		default:
			parts[last] += "," + segment
		}
	}
	l := Limit{Levels: map[string]string{}, Metric: parts["metric"]}
	m := maximum.FindStringSubmatch(parts["max"])
	if m == nil {
		return Limit{}, fmt.Errorf("invalid --limit %q: want max=NUMBER, with a unit if it is not the metric's", text)
	}
	var err error
	if l.Max, err = strconv.ParseFloat(m[1], 64); err != nil || !(l.Max > 0) || math.IsInf(l.Max, 0) {
		return Limit{}, fmt.Errorf("invalid --limit %q: want a max above 0", text)
	}
	l.Unit = m[2]
	for _, f := range factors {
		if v, ok := parts[f]; ok {
			l.Levels[f] = v
		}
	}
	return l, nil
}

// limit flags the cells that exceed their limits.
func (s *study) limit() error {
	for _, l := range s.options.Limits {
		if err := s.knows("--limit", l.Metric); err != nil {
			return err
		}
		applied := false
		for i := range s.result.Cells {
			c := &s.result.Cells[i]
			if !s.applies(&l, c) {
				continue
			}
			m := observation.Metric{Name: c.Metric, Unit: c.Unit}
			most, ok := convert(l.Max, l.Unit, m.Unit)
			switch {
			case !ok && l.Metric == "": // a limit of all metrics with its unit
			case !ok:
				return fmt.Errorf("--limit: %s is in %s, which has no relation to %s", m.Name, m.Unit, l.Unit)
			default:
				applied = true
				s.exceeds(c, most)
			}
		}
		if !applied {
			return fmt.Errorf("--limit of %s: no cell has this metric and these levels", figure(l.Max, l.Unit))
		}
	}
	return nil
}

// applies says whether a limit is for a cell.
func (s *study) applies(l *Limit, c *Cell) bool {
	if l.Metric != "" && l.Metric != c.Metric || l.Metric == "" && l.Unit == "" {
		return false
	}
	for f, level := range l.Levels {
		if s.table.Cells[c.key.Cell][s.table.Factor(f)] != level {
			return false
		}
	}
	return true
}

// exceeds flags a cell with values above tolerance times its limit.
func (s *study) exceeds(c *Cell, most float64) {
	values, above := known(s.table.Series[c.key]), 0
	for _, x := range values {
		if x > tolerance*most {
			above++
		}
	}
	typical := s.typical(c.key)
	evidence := fmt.Sprintf("%s is %s times the limit of %s", figure(typical, c.Unit), figure3(typical/most),
		figure(most, c.Unit))
	if len(values) > 0 {
		evidence += fmt.Sprintf("; %d of %d values exceed %s times the limit: a cache, or another unit", above, len(values),
			figure3(tolerance))
	}
	switch {
	case typical > tolerance*most:
		s.flag(c, "aboveLimit", invalid, evidence)
		s.weaken(c.key, "%s exceeds its limit (%s)", c.Level, figure(most, c.Unit))
	case above > 0:
		s.flag(c, "aboveLimit", warning, evidence)
	}
}

// flag marks a cell.
func (s *study) flag(c *Cell, name, severity, evidence string) {
	s.result.Flags = append(s.result.Flags, Flag{Name: name, Severity: severity, Metric: c.Metric, Level: c.Level,
		Context: c.Context, Evidence: evidence})
}
