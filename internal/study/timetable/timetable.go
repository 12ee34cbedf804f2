// Package timetable writes CronJobs that run a command at certain times of the week. It is pure.
package timetable

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Slot is a time of some days of the week.
type Slot struct {
	Days         []time.Weekday // sorted from Monday on
	Hour, Minute int
}

// week lists the days from Monday on.
var week = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// weekday is the day at a place of week.
func weekday(at int) time.Weekday { return time.Weekday((at + 1) % 7) }

// place is the place of a day in week.
func place(d time.Weekday) int { return (int(d) + 6) % 7 }

// ParseSlot reads "Mon..Fri 10:30", "Sat,Sun 03:00" or "daily 22:00".
func ParseSlot(text string) (Slot, error) {
	invalid := fmt.Errorf("invalid time %q: want DAYS HH:MM, such as Mon..Fri 10:30, Sat,Sun 03:00 or daily 22:00", text)
	days, clock, ok := strings.Cut(strings.TrimSpace(text), " ")
	at, err := time.Parse("15:04", strings.TrimSpace(clock))
	if !ok || err != nil {
		return Slot{}, invalid
	}
	s := Slot{Hour: at.Hour(), Minute: at.Minute()}
	if days == "daily" {
		days = "Mon..Sun"
	}
	for part := range strings.SplitSeq(days, ",") {
		first, last, span := strings.Cut(part, "..")
		if !span {
			last = first
		}
		from, to := slices.Index(week, first), slices.Index(week, last)
		if from < 0 || to < from {
			return Slot{}, invalid
		}
		for d := from; d <= to; d++ {
			if !slices.Contains(s.Days, weekday(d)) {
				s.Days = append(s.Days, weekday(d))
			}
		}
	}
	slices.SortFunc(s.Days, func(a, b time.Weekday) int { return place(a) - place(b) })
	return s, nil
}

// DefaultSlots cover weekdays, in and outside office hours, and the weekend.
func DefaultSlots() []Slot {
	return []Slot{
		{[]time.Weekday{time.Tuesday}, 10, 30},
		{[]time.Weekday{time.Thursday}, 2, 30},
		{[]time.Weekday{time.Saturday}, 14, 30},
	}
}

// Cron is the slot as the schedule of a CronJob, in which Sunday is 0.
func (s Slot) Cron() string {
	var days []string
	for _, d := range s.Days {
		days = append(days, fmt.Sprint(int(d)))
	}
	return fmt.Sprintf("%d %d * * %s", s.Minute, s.Hour, strings.Join(days, ","))
}

// Task is the command that is run.
type Task struct {
	// Name of the study: names of objects are made from it.
	Name  string
	Slots []Slot
	// Zone is the IANA name of the time zone of the slots; empty: that of the machine.
	Zone string
	// Command with its arguments.
	Command []string
}

// ObjectName is the name of the study as part of an object's: at most 49 letters, digits
// and dashes, so that the name of a CronJob can be longer.
func (t *Task) ObjectName() string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name))
	if len(plain) > 40 {
		plain = plain[:40]
	}
	return "cnsbench-" + strings.Trim(plain, "-")
}
