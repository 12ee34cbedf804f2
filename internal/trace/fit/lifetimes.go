package fit

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// life is the observed part of an object's life: from one age to another, and whether it ended there. An
// object that exists at the start is observed from its age at the start (left truncation), one that exists at
// the end up to its age at the end (right censoring).
type life struct {
	from, to int64 // ns
	ended    bool
}

// Lifetimes is the distribution of lifetimes by the product-limit estimator for truncated and censored data
// (Kaplan & Meier 1958; with late entry: Klein & Moeschberger, Survival Analysis, 2nd ed., section 4.6).
type Lifetimes struct {
	Ended    int           `json:"ended"`    // observed ends
	Censored int           `json:"censored"` // existing when the trace ended
	Unknown  int           `json:"unknown"`  // not used: time of creation unknown
	Mean     time.Duration `json:"meanNs"`
	Median   time.Duration `json:"medianNs"`
	// Tail is the share of lives that exceed the observation. Mean assumes the mean hazard of all lives for
	// them, and is unreliable if Tail is large.
	Tail  float64 `json:"tail"`
	curve []point
	rate  float64 // ends per ns of observed life
}

// point is a point of the survival curve: the share left of the lives exceeds the age at.
type point struct {
	at   int64
	left float64
}

// estimate computes the survival curve.
func estimate(lives []life) Lifetimes {
	l := Lifetimes{curve: []point{{0, 1}}}
	enter, leave := make([]int64, len(lives)), make([]int64, len(lives))
	var ends []int64
	exposure := 0.0
	for i, x := range lives {
		enter[i], leave[i] = x.from, x.to
		exposure += float64(x.to - x.from)
		if x.ended {
			ends = append(ends, x.to)
		}
	}
	l.Ended, l.Censored = len(ends), len(lives)-len(ends)
	slices.Sort(enter)
	slices.Sort(leave)
	slices.Sort(ends)
	left, entered, gone := 1.0, 0, 0
	for i := 0; i < len(ends); {
		at, n := ends[i], 0
		for ; i < len(ends) && ends[i] == at; i++ {
			n++
		}
		for ; entered < len(enter) && (enter[entered] < at || enter[entered] == 0); entered++ {
		}
		for ; gone < len(leave) && leave[gone] < at; gone++ {
		}
		if risk := entered - gone; risk > 0 {
			left *= 1 - float64(min(n, risk))/float64(risk)
		}
		l.curve = append(l.curve, point{at, left})
	}
	l.Tail = left
	if exposure > 0 {
		l.rate = float64(len(ends)) / exposure
	}
	l.Mean, l.Median = time.Duration(l.meanAbove(0)), l.Quantile(0.5)
	return l
}

// Quantile returns the age that a share q of the lives does not exceed. Beyond the observation it
// extrapolates exponentially.
func (l *Lifetimes) Quantile(q float64) time.Duration {
	i, found := slices.BinarySearchFunc(l.curve, 1-q, func(p point, left float64) int {
		return -cmp.Compare(p.left, left)
	})
	if found || i < len(l.curve) {
		return time.Duration(l.curve[i].at)
	}
	if l.rate == 0 || q >= 1 {
		return time.Duration(l.curve[len(l.curve)-1].at)
	}
	last := l.curve[len(l.curve)-1]
	return time.Duration(float64(last.at) + math.Log(last.left/(1-q))/l.rate)
}

// meanAbove returns the mean of the lifetimes above quantile q.
func (l *Lifetimes) meanAbove(q float64) float64 {
	from := float64(l.Quantile(q))
	if q == 0 {
		from = 0
	}
	area, last := 0.0, l.curve[len(l.curve)-1]
	for i, p := range l.curve {
		to := float64(last.at)
		if i+1 < len(l.curve) {
			to = float64(l.curve[i+1].at)
		}
		if to > from {
			area += (to - max(from, float64(p.at))) * min(p.left, 1-q)
		}
	}
	if last.left > 0 && l.rate > 0 {
		area += last.left / l.rate
	}
	return from + area/(1-q)
}

// quantiles returns n+1 equally spaced quantiles for linear interpolation. The last one is chosen so that the
// mean is exact.
func (l *Lifetimes) quantiles(n int) []time.Duration {
	list := []time.Duration{0}
	if len(l.curve) > 1 {
		list[0] = time.Duration(l.curve[1].at)
	}
	for i := 1; i < n; i++ {
		list = append(list, l.Quantile(float64(i)/float64(n)))
	}
	q := float64(n-1) / float64(n)
	before := list[n-1]
	return append(list, max(before, time.Duration(2*l.meanAbove(q))-before))
}
