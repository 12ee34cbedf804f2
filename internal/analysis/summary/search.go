package summary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/knee"
)

// FindMax is the result of a search for the highest rate at which a condition holds.
type FindMax struct {
	Stage     string `json:"stage"` // stage or action that was repeated
	Condition string `json:"condition"`
	// Runs: each step is a run of its own, not a window of one run.
	Runs    bool   `json:"runs,omitempty"`
	Verdict string `json:"verdict"` // found, never, always, undecided, interrupted
	// PerSecond is the highest rate at which it held, AbovePerSecond the lowest at which
	// it did not; nil: none.
	PerSecond      *float64 `json:"perSecond"`
	AbovePerSecond *float64 `json:"abovePerSecond"`
	// Resolution is the width of that bracket, as a share of its lower end.
	Resolution *float64 `json:"resolution"`
	// Bound names what limited the rate, with Evidence.
	Bound    string     `json:"bound,omitempty"`
	Evidence string     `json:"evidence,omitempty"`
	Message  string     `json:"message,omitempty"`
	Steps    []FindStep `json:"steps"` // in order of time
}

// FindStep is one window of a search, or one run.
type FindStep struct {
	Stage string `json:"stage"` // name in the bundle: "main.find01"; of a run: its directory
	// PerSecond is 0 of a baseline without the searched action.
	PerSecond float64 `json:"perSecond"`
	// OfferedPerSecond and AchievedPerSecond are the operations that were due, and that succeeded; of a run those of
	// the second half of its window.
	OfferedPerSecond  float64            `json:"offeredPerSecond"`
	AchievedPerSecond float64            `json:"achievedPerSecond"`
	WindowNs          int64              `json:"windowNs"`
	Held              bool               `json:"held"`
	Undecided         bool               `json:"undecided,omitempty"`
	Observed          []expr.Observation `json:"observed"`
	Bound             string             `json:"bound"`
	Evidence          string             `json:"evidence"`
	Latency           Latency            `json:"latency"` // of all operations together
	// VisibleExcess is by how much, as a share, the rate must exceed the capacity so that a run of this length shows
	// the backlog; 0 of windows of one run, which count what was not started.
	VisibleExcess float64 `json:"visibleExcess,omitempty"`
}

// Scaling has the throughput of a stage by number of workers.
type Scaling struct {
	Stage string     `json:"stage"`
	Knee  *knee.Knee `json:"knee"` // nil: the rule cannot be applied
	Rows  []ScaleRow `json:"rows"` // from the fewest workers up
}

// ScaleRow is one number of workers. Latency is of all repetitions together.
type ScaleRow struct {
	Workers         int       `json:"workers"`
	PerSecond       []float64 `json:"perSecond"` // of each repetition
	MedianPerSecond float64   `json:"medianPerSecond"`
	// Gain of throughput over the row before for each doubling of workers, as a share,
	// with its interval if there are enough repetitions.
	GainPerDoubling *float64 `json:"gainPerDoubling"`
	GainLow         *float64 `json:"gainLow"`
	GainHigh        *float64 `json:"gainHigh"`
	Failed          int64    `json:"failed"`
	// ClientBound is the number of repetitions limited by the client.
	ClientBound int     `json:"clientBound"`
	Latency     Latency `json:"latency"`
}

// has reports whether a workload is a step that the search judged.
func (m *FindMax) has(action string) bool {
	return m != nil && slices.ContainsFunc(m.Steps, func(s FindStep) bool { return inStage(action, s.Stage) })
}

// has reports whether a workload is a repetition, such as main.w8.r1, of a row.
func (s *Scaling) has(action string) bool {
	return s != nil && slices.ContainsFunc(s.Rows, func(r ScaleRow) bool {
		return strings.HasPrefix(action, fmt.Sprintf("%s.w%d.r", s.Stage, r.Workers))
	})
}

// inStage reports whether an action is a stage or one of its works.
func inStage(action, stage string) bool {
	return action == stage || strings.HasPrefix(action, stage+".")
}

// maxFindings bounds a file of findings; a thousand steps take a tenth of it.
const maxFindings = 64 << 20

// readFindings reads a file of findings; false: it does not exist.
func readFindings(b *bundle.Bundle, name string, into any) (bool, error) {
	f, err := b.OpenFile("raw/cnsbench/" + name + "/" + name + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // only read
	if err := json.NewDecoder(io.LimitReader(f, maxFindings)).Decode(into); err != nil {
		return false, fmt.Errorf("raw/cnsbench/%s/%s.json: %w", name, name, err)
	}
	return true, nil
}

// lastFindings reads the last whole line of the findings that a run wrote as it went, which a killed run has in place
// of its file; false: there is none.
func lastFindings(b *bundle.Bundle, name string, into any) (bool, error) {
	file := "raw/cnsbench/" + name + "/" + name + ".jsonl"
	text, err := b.ReadFile(file, maxFindings)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	end := bytes.LastIndexByte(text, '\n')
	if end < 0 {
		return false, nil
	}
	line := text[bytes.LastIndexByte(text[:end], '\n')+1 : end]
	if err := json.Unmarshal(line, into); err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	return true, nil
}

func findMax(d *dataset.Data) (*FindMax, error) {
	var file struct {
		FindMax
		Above *float64 `json:"above"`
	}
	ok, err := readFindings(d.Bundle, "find-max", &file)
	if err == nil && !ok {
		ok, err = lastFindings(d.Bundle, "find-max", &file)
	}
	if !ok || err != nil {
		return nil, err
	}
	m := &file.FindMax
	m.AbovePerSecond = file.Above
	for i := range m.Steps {
		m.Steps[i].Latency = stageLatency(d, m.Steps[i].Stage)
		notNil(&m.Steps[i].Observed)
	}
	notNil(&m.Steps)
	return m, nil
}

// stageLatency returns the latency of all operations of a stage's works, including those
// that were due and never done.
func stageLatency(d *dataset.Data, stage string) Latency {
	var names []string
	for _, h := range d.Totals {
		if inStage(h.Action, stage) && !slices.Contains(names, h.Metric) {
			names = append(names, h.Metric)
		}
	}
	var all stats.Sample
	for _, h := range d.Totals {
		if inStage(h.Action, stage) && !slices.ContainsFunc(names,
			func(of string) bool { return partOf(h.Metric, of) }) {
			_ = all.AddHistogram(h.Hist) // counts of a run do not overflow
		}
	}
	for _, x := range d.Scalars {
		name, ok := strings.CutSuffix(x.Metric, metric.Lost)
		if _, _, part := metric.EndpointOf(name); ok && !part && inStage(x.Action, stage) &&
			slices.Contains(names, name) {
			all.AddInfinite(int64(x.Value))
		}
	}
	return ioLatency(&all)
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
	if ok, err := readFindings(b, "scale-workers", &file); !ok {
		return nil, err
	}
	s := &Scaling{Stage: file.Stage, Knee: file.Knee, Rows: []ScaleRow{}}
	if s.Knee != nil && (len(s.Knee.Levels) < 2 || len(s.Knee.Steps) != len(s.Knee.Levels)-1) {
		return nil, errors.New("raw/cnsbench/scale-workers/scale-workers.json: the knee does not match its levels")
	}
	for _, r := range file.Rows {
		row := r.ScaleRow
		row.MedianPerSecond = stats.Median(row.PerSecond)
		if r.Response != nil {
			var sample stats.Sample
			_ = sample.AddHistogram(r.Response) // counts of a run do not overflow
			row.Latency = ioLatency(&sample)
		}
		if s.Knee != nil {
			for _, step := range s.Knee.Steps {
				if step.To == row.Workers {
					row.GainPerDoubling, row.GainLow, row.GainHigh = &step.Gain, step.Low, step.High
				}
			}
		}
		notNil(&row.PerSecond)
		s.Rows = append(s.Rows, row)
	}
	return s, nil
}

// Line returns the knee in a sentence.
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
		text += fmt.Sprintf("; %d of %s were client-bound: limited by this client, not by the server", bound,
			plural(int64(all), "step"))
	}
	return text + "."
}
