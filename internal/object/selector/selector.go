// Package selector implements selectors: pure descriptions of the container, object or size that an operation
// takes next. They have the notation of COSBench and a few extensions. The memory use does not depend on the
// number of keys: a selector over 10⁹ keys takes no more than one over ten.
package selector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// Kind is how a selector draws numbers.
type Kind uint8

// The kinds. Zipf and Hotspot are extensions of CNSBench.
const (
	Constant   Kind = iota + 1 // c(n)
	Uniform                    // u(a,b): each draw independent
	Range                      // r(a,b) or a-b: incrementing and wrapping
	Sequential                 // s(a,b): the same, one cursor for the whole driver
	Histogram                  // h(lo|hi|weight,…): a bucket by weight, uniform within it
	Zipf                       // zipf(a,b,exponent): rank k with probability ∝ k^−exponent
	Hotspot                    // hot(a,b,keys,draws): keys % of the keys get draws % of the draws
)

// Spec is a selector of the integers from Low to High. It is passed by value.
type Spec struct {
	Kind      Kind
	Low, High int64
	Buckets   []Bucket // Histogram
	Exponent  float64  // Zipf, > 0
	HotKeys   float64  // Hotspot: share of the keys, in (0, 1]
	HotDraws  float64  // Hotspot: share of the draws, in [0, 1]
}

// Bucket is a bucket of a histogram: Low to High with a weight.
type Bucket struct{ Low, High, Weight int64 }

// Size returns the number of integers that s selects from. For a histogram it is the span of its buckets.
func (s Spec) Size() int64 { return s.High - s.Low + 1 }

// Divisible reports whether each worker can have its own part of s.
func (s Spec) Divisible() bool {
	return s.Kind != Histogram && s.Kind != Sequential
}

// Part is the Index-th (from 0) of Count parts; the zero Part is the whole.
type Part struct{ Index, Count int }

// Slice returns the offset and the length of p in n items. The division is that of COSBench: worker i (from
// 1) of W gets ⌊n/W⌋ items, and one of the remainder if n mod W ≥ i, at offset ⌊n/W⌋(i−1) + min(n mod W,
// i−1).
func (p Part) Slice(n int64) (offset, length int64) {
	if p.Count <= 1 {
		return 0, n
	}
	i, w := int64(p.Index), int64(p.Count)
	each, rest := n/w, n%w
	length = each
	if rest > i {
		length++
	}
	return each*i + min(rest, i), length
}

// Of returns the part p of s: a selector of the same kind over fewer integers. It returns false if the part
// is empty. A selector that is not Divisible is returned unchanged.
func (p Part) Of(s Spec) (Spec, bool) {
	if p.Count <= 1 || !s.Divisible() {
		return s, true
	}
	offset, length := p.Slice(s.Size())
	s.Low += offset
	s.High = s.Low + length - 1
	return s, length > 0
}

// Stride returns a Picker of the numbers of s that are p.Index modulo p.Count, with its own cursor. Unlike
// with Slice, the owner of a number does not depend on the range. It returns false if there is no such
// number. A selector that is not Divisible is an error.
func (p Part) Stride(s Spec, rng *rand.Rand) (Picker, bool, error) {
	if err := s.Check(); err != nil {
		return nil, false, err
	}
	if !s.Divisible() {
		return nil, false, errors.New("a histogram or s(a,b) cannot be divided")
	}
	step := int64(max(1, p.Count))
	first := s.Low + ((int64(p.Index)-s.Low)%step+step)%step
	if first > s.High {
		return nil, false, nil
	}
	s.Low, s.High = 0, (s.High-first)/step
	inner, err := s.Picker(nil, rng)
	return &strided{inner, first, step}, true, err
}

type strided struct {
	inner       Picker
	first, step int64
}

func (s *strided) Next() int64 { return s.first + s.step*s.inner.Next() }

// Cursor is the position that the workers of a driver share in a sequential selector. Its methods are safe
// for concurrent use.
type Cursor struct{ n atomic.Int64 }

// Begin sets the next number, which is 0 initially.
func (c *Cursor) Begin(n int64) { c.n.Store(n) }

// Next returns the next number, from 0.
func (c *Cursor) Next() int64 { return c.n.Add(1) - 1 }

// Picker draws integers of one Spec for one worker.
type Picker interface{ Next() int64 }

// Picker returns a Picker of s. A Range draws from cursor, or from its own if cursor is nil (a worker with
// its own part). A Sequential requires a cursor. rng belongs to the worker and is not shared.
func (s Spec) Picker(cursor *Cursor, rng *rand.Rand) (Picker, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	switch s.Kind {
	case Constant:
		return constant(s.Low), nil
	case Uniform:
		return &uniform{s.Low, s.Size(), rng}, nil
	case Range, Sequential:
		if cursor == nil {
			if s.Kind == Sequential {
				return nil, errors.New("a sequential selector needs the driver's cursor")
			}
			cursor = new(Cursor)
		}
		return &ordered{s.Low, s.Size(), cursor}, nil
	case Histogram:
		return newHistogram(s, rng), nil
	case Zipf:
		return &zipf{low: s.Low, ranks: newRanks(s.Size(), s.Exponent), scatter: NewScatter(s.Size()), rng: rng}, nil
	}
	return newHotspot(s, rng), nil
}

// Check returns an error if s is invalid.
func (s Spec) Check() error {
	switch {
	case s.Kind < Constant || s.Kind > Hotspot:
		return errors.New("there is no selector")
	case s.Low < 0 || s.High < s.Low:
		return fmt.Errorf("invalid range from %d to %d: the first number must not be negative or above the second",
			s.Low, s.High)
	case s.Size() <= 0:
		return fmt.Errorf("the range from %d to %d is too large", s.Low, s.High)
	case s.Kind == Histogram && len(s.Buckets) == 0:
		return errors.New("a histogram needs buckets")
	case s.Kind == Zipf && !(s.Exponent > 0 && s.Exponent <= 10):
		return fmt.Errorf("the exponent %g of zipf is not in (0, 10]", s.Exponent)
	case s.Kind == Hotspot && !(s.HotKeys > 0 && s.HotKeys <= 1 && s.HotDraws >= 0 && s.HotDraws <= 1):
		return errors.New("the shares of a hotspot are not in (0 %, 100 %]")
	}
	return nil
}

type constant int64

func (c constant) Next() int64 { return int64(c) }

type uniform struct {
	low, n int64
	rng    *rand.Rand
}

func (u *uniform) Next() int64 { return u.low + u.rng.Int64N(u.n) }

type ordered struct {
	low, n int64
	cursor *Cursor
}

func (o *ordered) Next() int64 { return o.low + o.cursor.Next()%o.n }

type histogram struct {
	buckets []Bucket
	upTo    []int64 // cumulative weights
	rng     *rand.Rand
}

func newHistogram(s Spec, rng *rand.Rand) *histogram {
	h := &histogram{buckets: s.Buckets, rng: rng}
	sum := int64(0)
	for _, b := range s.Buckets {
		sum += b.Weight
		h.upTo = append(h.upTo, sum)
	}
	return h
}

func (h *histogram) Next() int64 {
	draw := h.rng.Int64N(h.upTo[len(h.upTo)-1])
	i := 0
	for draw >= h.upTo[i] {
		i++
	}
	b := h.buckets[i]
	return b.Low + h.rng.Int64N(b.High-b.Low+1)
}

type hotspot struct {
	low, n, hot int64
	draws       float64
	scatter     Scatter
	rng         *rand.Rand
}

func newHotspot(s Spec, rng *rand.Rand) *hotspot {
	n := s.Size()
	hot := min(max(1, int64(s.HotKeys*float64(n)+0.5)), n)
	return &hotspot{low: s.Low, n: n, hot: hot, draws: s.HotDraws, scatter: NewScatter(n), rng: rng}
}

func (h *hotspot) Next() int64 {
	if h.hot == h.n || h.rng.Float64() < h.draws {
		return h.low + h.scatter.At(h.rng.Int64N(h.hot))
	}
	return h.low + h.scatter.At(h.hot+h.rng.Int64N(h.n-h.hot))
}
