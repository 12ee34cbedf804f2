// Package ioprofile fits a small model to a recorded trace of I/O, and makes operations of it by a seed.
//
// The model is a Markov chain. A state is a class of operation (kind, and whether it continues where the one before of
// its kind ended) together with one of 8 bins of the time since the operation before (gap). Gaps within a bin, sizes of
// a class and the offsets of operations that do not continue are empirical distributions. Bursts, the mix and runs are
// the chain's; nothing else of the order of the trace is kept.
package ioprofile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
)

// Limits of a model, which bound its size to about 100 KB.
const (
	// MinIOs is the smallest number of reads and writes that a model is fitted to.
	MinIOs   = 100
	gapBins  = 8
	perBin   = 32
	zones    = 256
	maxSizes = 64
	maxCount = 1 << 40 // of a size or transition, so that sums do not overflow
)

// Version is the version of the model's format.
const Version = 1

// Model is a fitted trace.
type Model struct {
	Version int `json:"version"`
	// IOs is the number of operations of the trace, and LengthNs the time from its first to its last one.
	IOs      int   `json:"ios"`
	LengthNs int64 `json:"lengthNs"`
	// Span is the end of the highest transfer, and Align what divides all offsets and sizes, in bytes.
	Span  int64 `json:"spanBytes"`
	Align int64 `json:"alignBytes"`
	// GapsNs has the bins of gaps in ascending order. Each value stands for an equal share of its bin's gaps: their mean.
	GapsNs  [][]int64 `json:"gapsNs"`
	Classes []Class   `json:"classes"`
	States  []State   `json:"states"` // the first is where the trace begins
}

// Class is a class of operations.
type Class struct {
	Op iotrace.Op `json:"op"`
	// Continues: the operation begins where the one before of its kind ended; or at 0 after the highest end.
	Continues bool   `json:"continues,omitempty"`
	Sizes     []Size `json:"sizes,omitempty"`
	// Zones are ranges of offsets with equally many operations each.
	Zones []Zone `json:"zones,omitempty"`
}

// Size is a size in bytes and how often it occurs.
type Size struct {
	Bytes int64 `json:"bytes"`
	N     int64 `json:"n"`
}

// Zone is a range of offsets in bytes, both inclusive.
type Zone struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// State is a state of the chain.
type State struct {
	Class int    `json:"class"`
	Bin   int    `json:"bin"`
	Next  []Next `json:"next"`
}

// Next is a transition to a state and how often it occurs.
type Next struct {
	State int   `json:"state"`
	N     int64 `json:"n"`
}

// classKey identifies a class, stateKey a state.
type (
	classKey struct {
		op        iotrace.Op
		continues bool
	}
	stateKey struct {
		classKey
		bin int
	}
)

// Fit fits a model to a trace.
func Fit(t *iotrace.Trace) (*Model, error) {
	m := &Model{Version: Version, IOs: len(t.IOs), LengthNs: t.Length(), Span: t.Span(), Align: t.Align()}
	transfers := 0
	for _, x := range t.IOs {
		if x.Op.Transfers() {
			transfers++
		}
	}
	switch {
	case transfers < MinIOs:
		return nil, fmt.Errorf("the trace has %d reads and writes: want at least %d", transfers, MinIOs)
	case m.LengthNs <= 0:
		return nil, errors.New("all operations of the trace are at the same time: want times, which an iolog of version 2 " +
			"has with the action wait only (fio 3.31 or later records version 3)")
	}
	binOf := m.fitGaps(t.IOs)
	f := fitting{m: m, classes: map[classKey]int{}, states: map[stateKey]int{},
		sizes: map[classKey][]int64{}, starts: map[classKey][]int64{}}
	f.walk(t.IOs, binOf)
	for key, i := range f.classes {
		m.Classes[i].Sizes = sizesOf(f.sizes[key], m.Align)
		m.Classes[i].Zones = zonesOf(f.starts[key])
	}
	return m, nil
}

// fitGaps sets the bins of gaps, and returns a function that finds the bin of a gap.
func (m *Model) fitGaps(ios []iotrace.IO) func(gap int64) int {
	gaps := Gaps(ios)
	slices.Sort(gaps)
	var tops []int64
	for from := 0; from < len(gaps); {
		to := from + max(1, (len(gaps)-from)/(gapBins-len(m.GapsNs)))
		for to < len(gaps) && gaps[to] == gaps[to-1] {
			to++
		}
		var bin []int64
		for _, chunk := range chunks(gaps[from:to], perBin) {
			bin = append(bin, mean(chunk))
		}
		m.GapsNs, tops = append(m.GapsNs, bin), append(tops, gaps[to-1])
		from = to
	}
	return func(gap int64) int {
		i, _ := slices.BinarySearch(tops, gap)
		return min(i, len(tops)-1)
	}
}

// fitting is the state of Fit.
type fitting struct {
	m       *Model
	classes map[classKey]int
	states  map[stateKey]int
	sizes   map[classKey][]int64
	starts  map[classKey][]int64
}

// walk counts classes, states and transitions.
func (f *fitting) walk(ios []iotrace.IO, binOf func(int64) int) {
	ends := map[iotrace.Op]int64{}
	next := map[int]map[int]int64{}
	last := -1
	for i, x := range ios {
		gap := int64(0)
		if i > 0 {
			gap = x.At - ios[i-1].At
		}
		key := classKey{op: x.Op}
		if x.Op.Transfers() {
			end, ok := ends[x.Op]
			key.continues = ok && (x.Offset == end || x.Offset == 0 && end == f.m.Span)
			ends[x.Op] = x.Offset + x.Size
			f.sizes[key] = append(f.sizes[key], x.Size)
			if !key.continues {
				f.starts[key] = append(f.starts[key], x.Offset)
			}
		}
		s := f.state(stateKey{key, binOf(gap)})
		if last >= 0 {
			if next[last] == nil {
				next[last] = map[int]int64{}
			}
			next[last][s]++
		}
		last = s
	}
	for from, counts := range next {
		for _, to := range slices.Sorted(maps.Keys(counts)) {
			f.m.States[from].Next = append(f.m.States[from].Next, Next{to, counts[to]})
		}
	}
}

func (f *fitting) state(key stateKey) int {
	if i, ok := f.states[key]; ok {
		return i
	}
	class, ok := f.classes[key.classKey]
	if !ok {
		class = len(f.m.Classes)
		f.classes[key.classKey] = class
		f.m.Classes = append(f.m.Classes, Class{Op: key.op, Continues: key.continues})
	}
	f.states[key] = len(f.m.States)
	f.m.States = append(f.m.States, State{Class: class, Bin: key.bin})
	return f.states[key]
}

// sizesOf counts sizes. Of more than maxSizes, each stands for an equal share of the sorted ones: their median.
func sizesOf(sizes []int64, align int64) (list []Size) {
	counts := map[int64]int64{}
	for _, s := range sizes {
		counts[s]++
	}
	if len(counts) > maxSizes {
		clear(counts)
		slices.Sort(sizes)
		for _, chunk := range chunks(sizes, maxSizes) {
			counts[max(chunk[len(chunk)/2]/align*align, align)] += int64(len(chunk))
		}
	}
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, Size{s, counts[s]})
	}
	return list
}

func zonesOf(offsets []int64) (list []Zone) {
	slices.Sort(offsets)
	for _, chunk := range chunks(offsets, zones) {
		list = append(list, Zone{chunk[0], chunk[len(chunk)-1]})
	}
	return list
}

// chunks divides sorted values into at most n parts of nearly equal length.
func chunks(sorted []int64, n int) (list [][]int64) {
	n = min(n, len(sorted))
	for i := range n {
		list = append(list, sorted[len(sorted)*i/n:len(sorted)*(i+1)/n])
	}
	return list
}

func mean(values []int64) int64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return int64(sum / float64(len(values)))
}

// Gaps returns the times between operations in nanoseconds.
func Gaps(ios []iotrace.IO) []int64 {
	gaps := make([]int64, 0, len(ios))
	for i := 1; i < len(ios); i++ {
		gaps = append(gaps, ios[i].At-ios[i-1].At)
	}
	return gaps
}

// Check returns an error if operations cannot be made of the model, such as one that was edited.
func (m *Model) Check() error {
	switch {
	case m.Version != Version:
		return fmt.Errorf("the model has format %d, this program reads format %d", m.Version, Version)
	case len(m.States) == 0 || len(m.Classes) == 0 || len(m.GapsNs) == 0:
		return fmt.Errorf("the model has no states, classes or gaps")
	case m.Span <= 0 || m.Align <= 0 || m.Span%m.Align != 0 || m.IOs < 1:
		return fmt.Errorf("invalid model: spanBytes %d, alignBytes %d, ios %d", m.Span, m.Align, m.IOs)
	}
	for i, bin := range m.GapsNs {
		if len(bin) == 0 || slices.Min(bin) < 0 {
			return fmt.Errorf("invalid bin %d of gapsNs", i)
		}
	}
	for i, c := range m.Classes {
		sized := len(c.Sizes) > 0 && !slices.ContainsFunc(c.Sizes, func(s Size) bool {
			return s.Bytes <= 0 || s.Bytes > m.Span || s.N <= 0 || s.N > maxCount
		})
		placed := c.Continues || len(c.Zones) > 0 && !slices.ContainsFunc(c.Zones, func(z Zone) bool {
			return z.From < 0 || z.To < z.From
		})
		if c.Op.Transfers() && !(sized && placed) || !slices.Contains(ops, c.Op) {
			return fmt.Errorf("invalid class %d", i)
		}
	}
	for i, s := range m.States {
		wrong := slices.ContainsFunc(s.Next, func(n Next) bool {
			return n.State < 0 || n.State >= len(m.States) || n.N <= 0 || n.N > maxCount
		})
		if wrong || s.Class < 0 || s.Class >= len(m.Classes) || s.Bin < 0 || s.Bin >= len(m.GapsNs) {
			return fmt.Errorf("invalid state %d", i)
		}
	}
	return nil
}

var ops = []iotrace.Op{iotrace.Read, iotrace.Write, iotrace.Sync, iotrace.DataSync}

// PerSecond returns the operations of one kind per second; of all if op is empty.
func PerSecond(ios []iotrace.IO, op iotrace.Op) float64 {
	n := 0
	for _, x := range ios {
		if op == "" || x.Op == op {
			n++
		}
	}
	return float64(n) / max(1e-9, float64(ios[len(ios)-1].At)/1e9)
}
