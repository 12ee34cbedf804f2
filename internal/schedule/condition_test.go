package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// conditionStep is one evaluation, a second after the one before unless at is set.
type conditionStep struct {
	when, reset Truth
	at          time.Duration // 0: the next second
	measured    time.Duration // 0: at
}

// fires returns the times of the firings.
func fires(c Condition, steps []conditionStep) (at, since []time.Duration) {
	now := time.Duration(0)
	for _, s := range steps {
		if now += time.Second; s.at != 0 {
			now = s.at
		}
		measured := s.measured
		if measured == 0 {
			measured = now
		}
		if from, ok := c.Step(now, Reading{When: s.when, Reset: s.reset, Measured: measured}); ok {
			at, since = append(at, now), append(since, from)
		}
	}
	return at, since
}

// values makes steps of a text: t and f are the values of the condition, ? is unknown, R is false with reset true.
func values(text string) (steps []conditionStep) {
	for _, r := range text {
		steps = append(steps, map[rune]conditionStep{'t': {when: True, reset: False}, 'f': {when: False, reset: False},
			'?': {when: Unknown, reset: Unknown}, 'R': {when: False, reset: True}, 'B': {when: True, reset: True}}[r])
	}
	return steps
}

// TestCondition checks when a condition fires; its evaluations are at 1 s, 2 s, ….
func TestCondition(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct {
		name, steps string
		condition   Condition
		want        []time.Duration
	}{
		{"once for each crossing", "fttttfft", Condition{}, []time.Duration{2 * s, 8 * s}},
		{"true at the start", "tttf", Condition{}, []time.Duration{s}},
		{"never true", "ffff?f", Condition{}, nil},
		{"never known", "????", Condition{}, nil},
		{"for", "ftttf", Condition{For: 2 * s}, []time.Duration{4 * s}},
		{"not for long enough", "fttfttf", Condition{For: 2 * s}, nil},
		{"unknown ends for", "ftt?ttf", Condition{For: 2 * s}, nil},
		{"for counts again after an unknown value", "ft?ttt", Condition{For: 2 * s}, []time.Duration{6 * s}},
		{"unknown does not re-arm", "ft??tt", Condition{}, []time.Duration{2 * s}},
		{"within the cooldown", "ftftfffft", Condition{Cooldown: 5 * s}, []time.Duration{2 * s, 9 * s}},
		{"holds until the cooldown is over", "ftfttttt", Condition{Cooldown: 5 * s}, []time.Duration{2 * s, 7 * s}},
		{"not below the reset", "ftftftf", Condition{HasReset: true}, []time.Duration{2 * s}},
		{"below the reset", "ftftRft", Condition{HasReset: true}, []time.Duration{2 * s, 7 * s}},
		{"a reset beside the condition", "ftBtBt", Condition{HasReset: true}, []time.Duration{2 * s}},
		{"unknown reset", "ft?ft", Condition{HasReset: true}, []time.Duration{2 * s}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := fires(tt.condition, values(tt.steps)); !slices.Equal(got, tt.want) {
				t.Errorf("%s fires at %v, want %v", tt.steps, got, tt.want)
			}
		})
	}
}

// TestConditionClock checks steps of the clock: neither a time that goes back nor a sample of the future makes a
// condition fire earlier.
func TestConditionClock(t *testing.T) {
	t.Parallel()
	const s = time.Second
	got, since := fires(Condition{For: 3 * s, Cooldown: 4 * s}, []conditionStep{
		{when: True, at: 10 * s, measured: 60 * s}, // a sample of an agent whose clock is ahead
		{when: True, at: 2 * s},                    // the clock went back
		{when: True, at: 12 * s},
		{when: True, at: 13 * s},
		{when: False, at: 14 * s},
		{when: True, at: 3 * s, measured: -s},
		{when: True, at: 15 * s}, {when: True, at: 17 * s},
	})
	if want := []time.Duration{13 * s, 17 * s}; !slices.Equal(got, want) {
		t.Errorf("fires at %v, want %v", got, want)
	}
	if want := []time.Duration{10 * s, -s}; !slices.Equal(since, want) {
		t.Errorf("holds since %v, want %v", since, want)
	}
}

// TestConditionNeverWithoutCrossing checks on random sequences that before each firing the condition was known to be
// true for its time, without a gap; that between two firings it was false, and true of the reset; and that the
// cooldown passed.
func TestConditionNeverWithoutCrossing(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	fired := 0
	for range 2000 {
		c := Condition{For: time.Duration(rng.IntN(4)) * time.Second, Cooldown: time.Duration(rng.IntN(6)) * time.Second}
		c.HasReset = rng.IntN(2) == 0
		var steps []conditionStep
		for range 60 {
			if s := (conditionStep{when: Truth(rng.IntN(3)), reset: Truth(rng.IntN(3))}); len(steps) > 0 && rng.IntN(3) > 0 {
				steps = append(steps, steps[len(steps)-1])
			} else {
				steps = append(steps, s)
			}
		}
		at, _ := fires(c, steps)
		fired += len(at)
		for i, x := range at {
			n := int(x/time.Second) - 1
			for k := n; k >= n-int(c.For/time.Second); k-- {
				if k < 0 || steps[k].when != True {
					t.Fatalf("%+v fires at step %d, but step %d is %d", c, n, k, steps[k].when)
				}
			}
			if i == 0 {
				continue
			}
			before := int(at[i-1]/time.Second) - 1
			if x-at[i-1] < c.Cooldown {
				t.Fatalf("%+v fires at %v and %v", c, at[i-1], x)
			}
			if !slices.ContainsFunc(steps[before:n], func(s conditionStep) bool {
				return s.when == False && (!c.HasReset || s.reset == True)
			}) {
				t.Fatalf("%+v fires at steps %d and %d without a reset between", c, before, n)
			}
		}
	}
	if fired < 2000 {
		t.Errorf("%d firings of 2000 sequences", fired)
	}
}
