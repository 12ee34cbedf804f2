package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/knee"
)

// FindMax is what a search of the highest rate came to at which a condition holds.
type FindMax struct {
	Stage     string `json:"stage"` // that was repeated
	Condition string `json:"condition"`
	Verdict   string `json:"verdict"` // found, never, always, undecided, interrupted
	// PerSecond is the highest rate at which it held, and AbovePerSecond the lowest
	// at which it did not; nil where there is none.
	PerSecond      *float64 `json:"perSecond"`
	AbovePerSecond *float64 `json:"abovePerSecond"`
	// Resolution is the width of that bracket, as a share of its lower end.
	Resolution *float64 `json:"resolution"`
	// Bound says what kept it from holding there, Evidence why.
	Bound    string     `json:"bound,omitempty"`
	Evidence string     `json:"evidence,omitempty"`
	Message  string     `json:"message,omitempty"`
	Steps    []FindStep `json:"steps"` // in order of time
}

// FindStep is one window of a search.
type FindStep struct {
	Stage             string             `json:"stage"` // as the bundle calls it: "main.find01"
	PerSecond         float64            `json:"perSecond"`
	OfferedPerSecond  float64            `json:"offeredPerSecond"`
	AchievedPerSecond float64            `json:"achievedPerSecond"`
	WindowNs          int64              `json:"windowNs"`
	Held              bool               `json:"held"`
	Undecided         bool               `json:"undecided,omitempty"` // it says neither
	Observed          []expr.Observation `json:"observed"`
	Bound             string             `json:"bound"`
	Evidence          string             `json:"evidence"`
	Latency           Latency            `json:"latency"` // of all operations together
}

// Scaling is how a stage scaled with its workers.
type Scaling struct {
	Stage string     `json:"stage"`
	Knee  *knee.Knee `json:"knee"` // nil: the rule cannot be applied
	Rows  []ScaleRow `json:"rows"` // from the fewest workers up
}

// ScaleRow is one number of workers; its latency is of all repetitions together.
type ScaleRow struct {
	Workers         int       `json:"workers"`
	PerSecond       []float64 `json:"perSecond"` // of each repetition
	MedianPerSecond float64   `json:"medianPerSecond"`
	// Gain of throughput over the row before, for each doubling of the workers, as a
	// share; its interval if there are enough repetitions for one.
	GainPerDoubling *float64 `json:"gainPerDoubling"`
	GainLow         *float64 `json:"gainLow"`
	GainHigh        *float64 `json:"gainHigh"`
	Failed          int64    `json:"failed"`
	// ClientBound are the repetitions whose figures are the client's own.
	ClientBound int     `json:"clientBound"`
	Latency     Latency `json:"latency"`
}

// seeks reads what was sought in a run of object storage, and marks the workloads
// that are steps of it.
func (s *Summary) seeks(d *dataset.Data) error {
	if !d.Bundle.Run.ObjectsOnly() {
		return nil
	}
	var err error
	if s.FindMax, err = findMax(d); err != nil {
		return err
	}
	if s.Scaling, err = scaling(d.Bundle); err != nil {
		return err
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.Step = s.FindMax.has(w.Action) || s.Scaling.has(w.Action)
	}
	return nil
}

// has says whether a workload is a step that the search judged; one in which it was
// interrupted it did not.
func (m *FindMax) has(action string) bool {
	return m != nil && slices.ContainsFunc(m.Steps, func(s FindStep) bool { return ofStage(action, s.Stage) })
}

// has says whether a workload is a repetition, main.w8.r1, of a number of workers
// that there is a row of.
func (s *Scaling) has(action string) bool {
	return s != nil && slices.ContainsFunc(s.Rows, func(r ScaleRow) bool {
		return strings.HasPrefix(action, fmt.Sprintf("%s.w%d.r", s.Stage, r.Workers))
	})
}

// ofStage says whether an action is a stage, or one of its works.
func ofStage(action, stage string) bool {
	return action == stage || strings.HasPrefix(action, stage+".")
}

// maxFound bounds a file of findings; a thousand steps take a tenth of it.
const maxFound = 64 << 20

// found reads a file of findings; false: there is none.
func found(b *bundle.Bundle, name string, into any) (bool, error) {
	f, err := os.Open(filepath.Join(b.Dir, "raw", "cnsbench", name, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // only read
	if err := json.NewDecoder(io.LimitReader(f, maxFound)).Decode(into); err != nil {
		return false, fmt.Errorf("raw/cnsbench/%s/%s.json: %w", name, name, err)
	}
	return true, nil
}

func findMax(d *dataset.Data) (*FindMax, error) {
	var file struct {
		FindMax
		Above *float64 `json:"above"`
	}
	if ok, err := found(d.Bundle, "find-max", &file); !ok {
		return nil, err
	}
	m := &file.FindMax
	m.AbovePerSecond = file.Above
	for i := range m.Steps {
		m.Steps[i].Latency = together(d, m.Steps[i].Stage)
		list(&m.Steps[i].Observed)
	}
	list(&m.Steps)
	return m, nil
}

// together is the latency of all operations of a stage's works, with those that
// were due and were never done.
func together(d *dataset.Data, stage string) Latency {
	var names []string
	for _, h := range d.Totals {
		if ofStage(h.Action, stage) && !slices.Contains(names, h.Metric) {
			names = append(names, h.Metric)
		}
	}
	var all stats.Sample
	for _, h := range d.Totals {
		if ofStage(h.Action, stage) && !slices.ContainsFunc(names, func(of string) bool { return partOf(h.Metric, of) }) {
			_ = all.AddHistogram(h.Hist) // counts of a run do not overflow
		}
	}
	for _, x := range d.Scalars {
		if metric, ok := strings.CutSuffix(x.Metric, ".lost"); ok && ofStage(x.Action, stage) && slices.Contains(names, metric) {
			all.AddInfinite(int64(x.Value))
		}
	}
	return ofIO(&all)
}

func scaling(b *bundle.Bundle) (*Scaling, error) {
	var file struct {
		Stage string     `json:"stage"`
		Knee  *knee.Knee `json:"knee"`
		Rows  []struct {
			ScaleRow
			Response *hist.Histogram `json:"response"`
		} `json:"rows"`
	}
	if ok, err := found(b, "scale-workers", &file); !ok {
		return nil, err
	}
	s := &Scaling{Stage: file.Stage, Knee: file.Knee, Rows: []ScaleRow{}}
	if s.Knee != nil && (len(s.Knee.Levels) < 2 || len(s.Knee.Steps) != len(s.Knee.Levels)-1) {
		return nil, errors.New("raw/cnsbench/scale-workers/scale-workers.json: the knee is not of its levels")
	}
	for _, r := range file.Rows {
		row := r.ScaleRow
		row.MedianPerSecond = stats.Median(row.PerSecond)
		if r.Response != nil {
			var sample stats.Sample
			_ = sample.AddHistogram(r.Response) // counts of a run do not overflow
			row.Latency = ofIO(&sample)
		}
		if s.Knee != nil {
			for _, step := range s.Knee.Steps {
				if step.To == row.Workers {
					row.GainPerDoubling, row.GainLow, row.GainHigh = &step.Gain, step.Low, step.High
				}
			}
		}
		list(&row.PerSecond)
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// Line is the result of the search in a sentence.
func (m *FindMax) Line() string {
	text := m.Stage + ": " + m.Condition
	switch {
	case m.Verdict == "found" && m.PerSecond != nil && m.AbovePerSecond != nil:
		text += fmt.Sprintf(" holds up to %s operations a second (%s), not at %s (%s)",
			Rate(*m.PerSecond), m.windows(*m.PerSecond, true), Rate(*m.AbovePerSecond), m.windows(*m.AbovePerSecond, false))
	case m.Verdict == "never" && m.AbovePerSecond != nil:
		text += fmt.Sprintf(" never holds: not even at %s operations a second, the least rate that was to be tried", Rate(*m.AbovePerSecond))
	case m.Verdict == "always" && m.PerSecond != nil:
		return text + fmt.Sprintf(" holds at all rates that were to be tried, up to %s operations a second (%s): the limit was not met.", Rate(*m.PerSecond), m.windows(*m.PerSecond, true))
	default:
		text += fmt.Sprintf(": the search of the highest rate has no result (%s)", m.Verdict)
		if m.Message != "" {
			text += ": " + OneLine(m.Message)
		}
		if m.PerSecond != nil {
			text += fmt.Sprintf("; it held at %s operations a second", Rate(*m.PerSecond))
		}
	}
	if word, ok := bounds[m.Bound]; ok {
		text += "; " + word
	}
	return text + "."
}

// bounds say what kept a condition from holding.
var bounds = map[string]string{
	"worker-bound": "there operations waited for a free worker, and had they not, it would have held (worker-bound)",
	"client-bound": "the limit is this client's own (client-bound)",
	"server-bound": "the limit is the server's (server-bound)",
}

// windows says in how many of those at a rate the condition held, or failed.
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
	return fmt.Sprintf("%s in %d of %s", word, n, plural(int64(of), "window"))
}

// Holds is whether the condition held in the step, for people.
func (s *FindStep) Holds() string {
	switch {
	case s.Undecided:
		return "?"
	case s.Held:
		return "yes"
	}
	return "no"
}

// Line is the knee in a sentence.
func (s *Scaling) Line() string {
	if s.Knee == nil {
		return ""
	}
	text := s.Stage + ": " + s.Knee.String()
	bound, all := 0, 0
	for _, r := range s.Rows {
		bound, all = bound+r.ClientBound, all+len(r.PerSecond)
	}
	if bound > 0 {
		text += fmt.Sprintf("; %d of %s were client-bound: what limits them is this client, not the server", bound, plural(int64(all), "step"))
	}
	return text + "."
}

// Rate is a number of operations a second, to at least four digits: rates of a
// search lie close together.
func Rate(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Measured is what the step observed, for people: "10.3 ms".
func (s *FindStep) Measured() string {
	var values []string
	for _, o := range s.Observed {
		values = append(values, o.Value)
	}
	return strings.Join(values, ", ")
}
