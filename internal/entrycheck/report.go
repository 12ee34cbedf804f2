package entrycheck

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Status is the result of a check.
type Status string

// The results.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Check is one check of an entry.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Do says what to do; empty: nothing.
	Do string `json:"do,omitempty"`
}

// Metric is a metric that the parser found.
type Metric struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Kind   string `json:"kind"`
	Better string `json:"better"` // "higher", "lower" or empty
	// Total: there is a figure of the whole run. Points counts those over time.
	Total  bool `json:"total"`
	Points int  `json:"points"`
}

// Report is the result of the checks.
type Report struct {
	Entry   string            `json:"entry"`
	Origin  string            `json:"origin"`
	Vars    map[string]string `json:"vars"`
	Checks  []Check           `json:"checks"`
	Metrics []Metric          `json:"metrics"`
	Passed  int               `json:"passed"`
	Failed  int               `json:"failed"`
	Skipped int               `json:"skipped"`
	Bundles string            `json:"bundles,omitempty"` // directory, if they are kept
}

// Columns of the text.
const (
	columns = 100
	indent  = 21 // of messages
)

// Text writes the report for people. Checks that were skipped one after another for one reason share a line.
func (r *Report) Text(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "workload %s (%s)", r.Entry, r.Origin)
	sep := ", with "
	for _, name := range slices.Sorted(maps.Keys(r.Vars)) {
		fmt.Fprintf(&b, "%s%s=%s", sep, name, r.Vars[name])
		sep = " "
	}
	b.WriteString("\n\n")
	for i := 0; i < len(r.Checks); i++ {
		c := r.Checks[i]
		same := []string{c.Name}
		for c.Status == Skip && i+1 < len(r.Checks) && r.Checks[i+1].Status == Skip && r.Checks[i+1].Message == c.Message {
			i++
			same = append(same, r.Checks[i].Name)
		}
		switch {
		case len(same) > 1:
			wrapped(&b, "  skip", strings.Join(same, ", ")+": "+c.Message)
		case c.Status == Fail:
			wrapped(&b, "  FAIL  "+c.Name, c.Message)
		default:
			wrapped(&b, "  "+string(c.Status)+"  "+c.Name, c.Message)
		}
		if c.Do != "" {
			wrapped(&b, "", "to do: "+c.Do)
		}
	}
	r.metricTable(&b)
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
	if r.Bundles != "" {
		fmt.Fprintf(&b, "bundles: %s\n", r.Bundles)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (r *Report) metricTable(b *strings.Builder) {
	if len(r.Metrics) == 0 {
		return
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "  metric\tunit\tkind\tbetter\ttotal\tpoints\n")
	for _, m := range r.Metrics {
		total := "no"
		if m.Total {
			total = "yes"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%d\n", m.Name, orDash(m.Unit), m.Kind, orDash(m.Better), total, m.Points)
	}
	_ = w.Flush() // a Builder never fails
}

// wrapped writes a text behind a label, over as many lines as it needs. Longer words have a line of their own.
func wrapped(b *strings.Builder, label, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		at := 0
		fmt.Fprintf(b, "%-*s", indent, label)
		for _, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case at > 0 && indent+at+1+n > columns:
				fmt.Fprintf(b, "\n%*s", indent, "")
				at = 0
			case at > 0:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
		b.WriteByte('\n')
		label = ""
	}
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
