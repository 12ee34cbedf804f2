package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// OfficeHours are the hours of weekdays in which others use the storage: from From until before To, local time.
type OfficeHours struct {
	From int `json:"from"`
	To   int `json:"to"`
}

var officeHours = OfficeHours{8, 18}

// Coverage counts the occasions with a trial that started at such a time. An occasion may count in several.
type Coverage struct {
	OfficeHours OfficeHours `json:"officeHours"`
	Weekdays    int         `json:"weekdays"`
	Weekends    int         `json:"weekends"`
	InOffice    int         `json:"inOfficeHours"`
	OutOfOffice int         `json:"outsideOfficeHours"`
	// Missing names what no occasion covers.
	Missing []string `json:"missing"`
}

// coverageOf counts the occasions: starts has the local times at which the trials of each started.
func coverageOf(starts [][]time.Time) Coverage {
	h := officeHours
	c := Coverage{OfficeHours: h, Missing: []string{}}
	for _, occasion := range starts {
		var weekday, weekend, in, out int
		for _, at := range occasion {
			switch day := at.Weekday(); {
			case day == time.Saturday || day == time.Sunday:
				weekend, out = 1, 1
			case at.Hour() >= h.From && at.Hour() < h.To:
				weekday, in = 1, 1
			default:
				weekday, out = 1, 1
			}
		}
		c.Weekdays, c.Weekends = c.Weekdays+weekday, c.Weekends+weekend
		c.InOffice, c.OutOfOffice = c.InOffice+in, c.OutOfOffice+out
	}
	for _, kind := range c.kinds() {
		if kind.n == 0 {
			c.Missing = append(c.Missing, kind.name)
		}
	}
	return c
}

type coverageKind struct {
	name string
	n    int
}

func (c *Coverage) kinds() []coverageKind {
	return []coverageKind{{"weekdays", c.Weekdays}, {"weekends", c.Weekends}, {"office hours", c.InOffice},
		{"outside office hours", c.OutOfOffice}}
}

// String lists the counts.
func (c *Coverage) String() string {
	var parts []string
	for _, kind := range c.kinds() {
		parts = append(parts, fmt.Sprintf("%s %d", kind.name, kind.n))
	}
	text := strings.Join(parts, ", ")
	if len(c.Missing) > 0 {
		text += "; not covered: " + strings.Join(c.Missing, ", ")
	}
	return text
}

// OccasionStatus is how far an occasion is.
type OccasionStatus struct {
	Occasion
	Weekday string `json:"weekday"` // of its begin, local
	Done    int    `json:"done"`
	Of      int    `json:"of"`
	// Days are the local dates on which its trials started. An occasion of several was interrupted, or is long.
	Days []string `json:"days"`
	// Failed trials are not done: study run repeats them.
	Failed int `json:"failed,omitempty"`

	starts []time.Time
	took   []timed
}

// sameDay warns of occasions that began on the same day, and of those whose trials are of several days.
func sameDay(list []OccasionStatus) []string {
	warnings := []string{}
	days := map[string]int{}
	for i := range list {
		o := &list[i]
		if len(o.Days) > 1 {
			warnings = append(warnings, fmt.Sprintf("occasion %d has trials of %d days", o.Number, len(o.Days)))
		}
		if o.Begun.IsZero() {
			continue
		}
		day := o.Cluster + o.Begun.In(o.Location()).Format(time.DateOnly)
		if first, ok := days[day]; ok {
			warnings = append(warnings, fmt.Sprintf("occasions %d and %d are of one day: they may have more in common "+
				"than others", first, o.Number))
			continue
		}
		days[day] = o.Number
	}
	return warnings
}

// timed is how long a trial of a cell took.
type timed struct {
	cell int
	long time.Duration
}

// occasionStatus reads the bundles of an occasion.
func (d *Dir) occasionStatus(o Occasion, trials []Trial) OccasionStatus {
	s := OccasionStatus{Occasion: o, Of: len(trials), Days: []string{}}
	if s.Begun.IsZero() {
		s.Begun = d.firstStart()
	}
	zone := s.Location()
	s.Weekday = s.Begun.In(zone).Weekday().String()
	for _, t := range trials {
		run, done := d.finished(t)
		if !done {
			if d.failed(t) {
				s.Failed++
			}
			continue
		}
		s.Done++
		start := run.Clock.Start.In(zone)
		s.starts = append(s.starts, start)
		// A failed trial that was repeated later is of another day than those around it.
		if day := start.Format(time.DateOnly); !slices.Contains(s.Days, day) {
			s.Days = append(s.Days, day)
		}
		if run.EndedAt.Known() {
			s.took = append(s.took, timed{t.Cell, time.Duration(run.EndedAt)})
		}
	}
	slices.Sort(s.Days)
	return s
}

// finished returns run.json of a trial with a complete bundle.
func (d *Dir) finished(t Trial) (bundle.Run, bool) {
	b := d.Bundle(t)
	if b == nil {
		return bundle.Run{}, false
	}
	return b.Run, true
}
