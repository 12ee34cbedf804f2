package study

import (
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCoverage: occasions count by local time, each kind once.
func TestCoverage(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, time.UTC).In(berlin) }
	for _, tt := range []struct {
		name   string
		starts [][]time.Time
		want   Coverage
	}{
		{"none", nil, Coverage{Missing: []string{"weekdays", "weekends", "office hours", "outside office hours"}}},
		// 07:30 UTC on a Tuesday is 08:30 in Berlin.
		{"weekday in office hours", [][]time.Time{{at(24, 7), at(24, 8)}},
			Coverage{Weekdays: 1, InOffice: 1, Missing: []string{"weekends", "outside office hours"}}},
		{"into the evening", [][]time.Time{{at(24, 16), at(24, 17)}},
			Coverage{Weekdays: 1, InOffice: 1, OutOfOffice: 1, Missing: []string{"weekends"}}},
		{"weekend at noon is outside", [][]time.Time{{at(28, 11)}},
			Coverage{Weekends: 1, OutOfOffice: 1, Missing: []string{"weekdays", "office hours"}}},
		// 23:30 UTC on a Friday is Saturday in Berlin.
		{"two occasions", [][]time.Time{{at(27, 23)}, {at(24, 9)}},
			Coverage{Weekdays: 1, Weekends: 1, InOffice: 1, OutOfOffice: 1, Missing: []string{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.OfficeHours = officeHours
			if diff := cmp.Diff(tt.want, coverageOf(tt.starts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStatus injects durations, dates and variances, and expects them back: one cell whose occasions differ by a factor
// needs occasions, one whose trials differ needs blocks, one that is constant needs nothing.
func TestStatus(t *testing.T) {
	text := strings.NewReplacer("blocks: 3", "blocks: 8", "occasions: 2", "occasions: 4",
		"[slow, fast]", "[shifts, noisy, constant]", "storageClass: fast", "storageClass: noisy").Replace(occasions)
	random := rand.New(rand.NewPCG(1, 2))
	occasion := 0
	blocks := map[string]int{} // by seed, which each block has its own of
	x := &platform{t: t, left: -1}
	x.value = func(j Job) (float64, time.Duration) {
		seed := j.Set[len(j.Set)-1]
		if _, known := blocks[seed]; !known {
			blocks[seed] = len(blocks)
		}
		switch j.Set[0] {
		case "vars.storageClass=shifts":
			return 100 * []float64{1, 1.5}[occasion] * math.Exp(0.01*random.NormFloat64()), time.Minute
		case "vars.storageClass=noisy":
			// Both occasions have the same eight values.
			return 100 + 10*float64(blocks[seed]%8), 2 * time.Minute
		}
		return 100, 3 * time.Minute
	}
	dir, err := Begin(filepath.Join(t.TempDir(), "s"), designOf(t, text),
		Occasion{Begun: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	x.now = dir.Occasions[0].Begun
	if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	occasion, x.now = 1, time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC) // a Saturday
	if _, err := dir.AddOccasion(Occasion{Begun: x.now, Zone: "UTC"}); err != nil {
		t.Fatal(err)
	}
	if s, err := dir.Status(); err != nil || s.Done != 32 || s.Of != 64 || s.PlannedTrials != 128 ||
		time.Duration(*s.LeftNs) != 8*(1+2+2+3)*time.Minute ||
		time.Duration(*s.PlannedLeftNs) != 3*8*(1+2+2+3)*time.Minute {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	s, err := dir.Status()
	if err != nil {
		t.Fatal(err)
	}
	if s.Done != 64 || *s.LeftNs != 0 || len(s.Coverage.Missing) > 0 || s.Coverage.Weekends != 1 ||
		s.Occasions[1].Weekday != "Saturday" {
		t.Errorf("%+v", s)
	}
	checkPrecision(t, s)
}

func checkPrecision(t *testing.T, s *Status) {
	t.Helper()
	m := s.Metrics[0]
	if m.Wanted != 0.1 || m.Direction != higher || len(m.Cells) != 4 {
		t.Fatalf("%+v", m)
	}
	want := map[string]string{"shifts": addOccasions, "noisy": addBlocks, "constant": "", "noisy (A/A)": addBlocks}
	for _, c := range m.Cells {
		level := ""
		if c.Needed != nil {
			level = c.Needed.Level
		}
		if name := c.Levels[0].Value; level != want[name] || c.N != 16 || c.HalfWidth == nil {
			t.Errorf("%s needs %q, want %q: %+v", name, level, want[name], c)
		}
	}
	// The half-width of two occasions is 12.7 · (ln 1.5)/2, that of Student's t with one degree of freedom.
	if w := math.Log1p(*m.Cells[0].OccasionHalfWidth); math.Abs(w-12.706*math.Log(1.5)/2) > 0.1 {
		t.Errorf("the half-width of the occasions is %g", w)
	}
	if b := *m.Cells[0].Between; math.Abs(math.Sqrt(2*b)-math.Log(1.5)) > 0.02 {
		t.Errorf("the variance between occasions is %g, want that of two values ln 1.5 apart", b)
	}
}

// TestStatusOfFew: without trials, with infinite values, and of a study of an earlier version, nothing is made up.
func TestStatusOfFew(t *testing.T) {
	dir := &Dir{Path: t.TempDir(), Design: designOf(t, occasions)}
	s, err := dir.Status()
	if err != nil || s.LeftNs != nil || s.Done != 0 || s.Of != 9 || len(s.Occasions) != 1 ||
		!s.Occasions[0].Begun.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	if c := s.Metrics[0].Cells[0]; c.N != 0 || c.Problem != "no values" || c.Needed != nil {
		t.Errorf("%+v", c)
	}
	value := func(v float64) *float64 { return &v }
	for _, tt := range []struct {
		name   string
		trials []TrialValue
		want   string
		needed bool
	}{
		{"infinite", []TrialValue{{Value: value(1)}, {Infinite: true}}, "infinite", false},
		{"only infinite", []TrialValue{{Infinite: true}}, "1 infinite", false},
		{"lower bound", []TrialValue{{Value: value(1), AtLeast: true}, {Value: value(2)}}, "1 of 2 values are lower", true},
		{"negative", []TrialValue{{Value: value(-1)}, {Value: value(1)}}, "not positive", false},
		{"two", []TrialValue{{Value: value(1), Occasion: 1}, {Value: value(2), Occasion: 1}}, "", true},
	} {
		c := cellStatus(nil, tt.trials, 0.05)
		if infinite := strings.Contains(tt.name, "infinite"); infinite != (c.Median == nil) {
			t.Errorf("%s: the median is %v, want none if it is infinite", tt.name, c.Median)
		}
		if !strings.Contains(c.Problem, tt.want) || (c.Needed != nil) != tt.needed || c.HalfWidth != nil {
			t.Errorf("%s: %+v", tt.name, c)
		}
		if tt.needed && (c.Needed.Level != addBlocks || c.Needed.N != 4 || c.Needed.Method != "minimum") {
			t.Errorf("%s: %+v, want four more for an interval", tt.name, c.Needed)
		}
	}
}

// TestDays: a failed trial that was repeated on a later day adds that day only.
func TestDays(t *testing.T) {
	x := &platform{t: t, left: -1, fails: "vars.storageClass=slow", now: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC),
		value: func(Job) (float64, time.Duration) { return 1, time.Second }}
	dir, err := Begin(filepath.Join(t.TempDir(), "s"), designOf(t, occasions), Occasion{Begun: x.now, Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, day := range []int{23, 28} {
		x.now = time.Date(2026, 11, day, 10, 0, 0, 0, time.UTC)
		if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
			t.Fatal(err)
		}
		x.fails = ""
	}
	s, err := dir.Status()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2026-11-23", "2026-11-28"}, s.Occasions[0].Days); diff != "" {
		t.Error(diff)
	}
}

// TestNothingIsNeeded: where nothing more is needed, each width that decides is at most the wanted one, and where the
// interval of the values is wider, the status says why. Samples of ten and more values, of one occasion and of several.
func TestNothingIsNeeded(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const wanted = 0.05
	for _, tt := range []struct {
		occasions, blocks int
		within, between   float64
	}{{1, 12, 0.06, 0}, {1, 30, 0.1, 0}, {3, 8, 0.06, 0}, {3, 8, 0.03, 0.02}, {6, 5, 0.05, 0.02}} {
		content, wider := 0, 0
		for range 400 {
			var trials []TrialValue
			for o := range tt.occasions {
				shift := tt.between * random.NormFloat64()
				for range tt.blocks {
					v := math.Exp(shift + tt.within*random.NormFloat64())
					trials = append(trials, TrialValue{Value: &v, Occasion: o + 1})
				}
			}
			c := cellStatus(nil, trials, wanted)
			if c.Needed != nil {
				continue
			}
			content++
			if *c.MeanHalfWidth > wanted || c.OccasionHalfWidth != nil && *c.OccasionHalfWidth > wanted {
				t.Fatalf("%+v: nothing is needed, with %g and, of occasions, %v", tt, *c.MeanHalfWidth, c.OccasionHalfWidth)
			}
			if *c.HalfWidth > wanted {
				wider++
			}
			if says := c.Wider(wanted); (says != "") != (*c.HalfWidth > wanted) {
				t.Fatalf("%+v: the half-width is %g, the status says %q", tt, *c.HalfWidth, says)
			}
		}
		t.Logf("%+v: nothing is needed in %d of 400; the interval is wider in %d of them", tt, content, wider)
		if content == 0 {
			t.Errorf("%+v: something is always needed", tt)
		}
	}
}
