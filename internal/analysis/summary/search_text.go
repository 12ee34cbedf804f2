package summary

import (
	"fmt"
	"strings"
)

// Line returns the result in a sentence.
func (m *FindMax) Line() string {
	text := m.Stage + ": " + m.Condition
	switch {
	case m.Verdict == "found" && m.PerSecond != nil && m.AbovePerSecond != nil:
		text += fmt.Sprintf(" holds up to %s (%s), not at %s (%s)", m.rate(*m.PerSecond), m.windows(*m.PerSecond, true),
			m.rateAbove(*m.AbovePerSecond), m.windows(*m.AbovePerSecond, false))
		if at := m.observedAt(*m.AbovePerSecond); m.Runs && at != "" {
			text += "; there " + at
		}
	case m.Verdict == "never" && m.AbovePerSecond != nil:
		text += fmt.Sprintf(" never holds: not even at %s, the lowest rate of the search", m.rate(*m.AbovePerSecond))
	case m.Verdict == "always" && m.PerSecond != nil:
		return text + fmt.Sprintf(" holds at all rates of the search, up to %s (%s): no limit was found.",
			m.rate(*m.PerSecond), m.windows(*m.PerSecond, true))
	default:
		text += fmt.Sprintf(": the search of the highest rate has no result (%s)", m.Verdict)
		if m.Message != "" {
			text += ": " + OneLine(m.Message)
		}
		if m.PerSecond != nil {
			text += fmt.Sprintf("; it held at %s", m.rate(*m.PerSecond))
		}
	}
	if word, ok := bounds[m.Bound]; ok {
		text += "; " + word
	}
	if m.Verdict == "found" && m.Message != "" {
		text += "; " + m.Message
	}
	return text + "."
}

// rate formats a rate with its unit.
func (m *FindMax) rate(v float64) string {
	if m.Runs {
		return PerSecond(v)
	}
	return Rate(v) + " operations a second"
}

func (m *FindMax) rateAbove(v float64) string {
	if m.Runs {
		return PerSecond(v)
	}
	return Rate(v)
}

// observedAt has the values in the last step at a rate at which the condition did not hold.
func (m *FindMax) observedAt(rate float64) (text string) {
	for i := range m.Steps {
		s := &m.Steps[i]
		if s.PerSecond != rate || s.Held {
			continue
		}
		var list []string
		for _, o := range s.Observed {
			list = append(list, o.String())
		}
		text = strings.Join(list, ", ")
	}
	return text
}

// PerSecond formats a rate of control operations, slow ones by the minute: "142 per minute".
func PerSecond(v float64) string {
	if v < 10 {
		return Rate(60*v) + " per minute"
	}
	return Rate(v) + " per second"
}

// bounds describes what limited the rate.
var bounds = map[string]string{
	"worker-bound": "operations waited for a free worker; without that wait the condition would have held (worker-bound)",
	"client-bound": "the limit is this client's own (client-bound)",
	"server-bound": "the limit is the server's (server-bound)",

	"storage-bound": "the limit is not this client's (storage-bound)",
}

// windows returns in how many windows at a rate the condition held, or failed.
func (m *FindMax) windows(rate float64, held bool) string {
	n, of, word := 0, 0, "failed"
	if held {
		word = "held"
	}
	for _, s := range m.Steps {
		if s.PerSecond == rate && !s.Undecided {
			if of++; s.Held == held {
				n++
			}
		}
	}
	what := "window"
	if m.Runs {
		what = "run"
	}
	return fmt.Sprintf("%s in %d of %s", word, n, plural(int64(of), what))
}

// Holds formats whether the condition held in the step.
func (s *FindStep) Holds() string {
	switch {
	case s.PerSecond == 0:
		return "baseline"
	case s.Undecided:
		return "?"
	case s.Held:
		return "yes"
	}
	return "no"
}

// Rate formats operations per second with at least four digits: rates of a search are
// close together.
func Rate(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Measured formats the observed values of the step: "10.3 ms".
func (s *FindStep) Measured() string {
	var values []string
	for _, o := range s.Observed {
		values = append(values, o.Value)
	}
	return strings.Join(values, ", ")
}
