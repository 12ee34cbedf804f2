package factor

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

func parse(t *testing.T, text string) *v1alpha1.Distribution {
	t.Helper()
	var f v1alpha1.Factor
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f.Distribution
}

func TestCheck(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"uniform":{"min":1,"max":2}}`, ""},
		{`{"loguniform":{"min":1,"max":64},"integer":true,"suffix":"k"}`, ""},
		{`{"normal":{"mean":10,"sd":2,"min":0,"max":20}}`, ""},
		{`{"choice":["a","b"],"weights":[3,1]}`, ""},
		{`{}`, "exactly one of"},
		{`{"uniform":{"min":1,"max":2},"choice":["a"]}`, "exactly one of"},
		{`{"uniform":{"min":2,"max":2}}`, "want min below max"},
		{`{"uniform":{"min":0.2,"max":0.8},"integer":true}`, "no integer"},
		{`{"loguniform":{"min":0,"max":2}}`, "want more than 0"},
		{`{"normal":{"mean":10,"sd":0,"min":0,"max":20}}`, "invalid sd"},
		{`{"normal":{"mean":10,"sd":1,"min":20,"max":30}}`, "less than"},
		{`{"choice":["a","a"]}`, "use weights"},
		{`{"choice":["a","b"],"weights":[1]}`, "1 weights for 2 values"},
		{`{"choice":["a","b"],"weights":[1,0]}`, "invalid weight"},
		{`{"choice":["a"],"integer":true}`, "not for choice"},
		{`{"uniform":{"min":1,"max":2},"weights":[1]}`, "for choice only"},
	}
	for _, tt := range tests {
		err := Check(parse(t, tt.text))
		if got := errorText(err); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestDraw compares draws with the distribution functions: the largest distance of the empirical one is below the
// critical value of Kolmogorov and Smirnov at 0.001, 1.95/√n.
func TestDraw(t *testing.T) {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	tests := []struct {
		text string
		cdf  func(float64) float64
	}{
		{`{"uniform":{"min":5,"max":15}}`, func(x float64) float64 { return (x - 5) / 10 }},
		{`{"loguniform":{"min":1,"max":1000}}`, func(x float64) float64 { return math.Log(x) / math.Log(1000) }},
		{`{"normal":{"mean":10,"sd":2,"min":9,"max":20}}`, func(x float64) float64 {
			return (phi((x-10)/2) - phi(-0.5)) / (phi(5) - phi(-0.5))
		}},
	}
	const n = 4000
	for _, tt := range tests {
		d, random := parse(t, tt.text), rand.New(rand.NewPCG(1, 2))
		var values []float64
		for range n {
			v, err := strconv.ParseFloat(Draw(d, random.Float64()), 64)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		slices.Sort(values)
		distance := 0.0
		for i, v := range values {
			distance = max(distance, math.Abs(tt.cdf(v)-(float64(i)+0.5)/n))
		}
		if limit := 1.95 / math.Sqrt(n); distance > limit {
			t.Errorf("%s: distance %.4f from the distribution function, want at most %.4f", tt.text, distance, limit)
		}
	}
}

func TestDrawOfFew(t *testing.T) {
	tests := []struct {
		text string
		want map[string]float64 // shares
	}{
		{`{"choice":["4k","64k"],"weights":[3,1]}`, map[string]float64{"4k": 0.75, "64k": 0.25}},
		{`{"choice":["a","b","c","d"]}`, map[string]float64{"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}},
		{`{"uniform":{"min":1,"max":4},"integer":true,"suffix":"Mi"}`,
			map[string]float64{"1Mi": 0.25, "2Mi": 0.25, "3Mi": 0.25, "4Mi": 0.25}},
	}
	const n = 4000
	for _, tt := range tests {
		d, random, got := parse(t, tt.text), rand.New(rand.NewPCG(3, 4)), map[string]int{}
		for range n {
			got[Draw(d, random.Float64())]++
		}
		for value, share := range tt.want {
			sd := math.Sqrt(share * (1 - share) * n)
			if math.Abs(float64(got[value])-share*n) > 4*sd {
				t.Errorf("%s: %d of %d are %s, want %g", tt.text, got[value], n, value, share*n)
			}
			delete(got, value)
		}
		if len(got) > 0 {
			t.Errorf("%s: also %v", tt.text, got)
		}
	}
	if got := Draw(parse(t, `{"loguniform":{"min":1,"max":64},"integer":true}`), 0.999999); got != "64" {
		t.Errorf("the upper end is %s", got)
	}
}
