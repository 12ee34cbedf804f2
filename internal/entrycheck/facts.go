// Package entrycheck judges an entry of a workload library by what short runs of it left: a list of checks, each with
// what is wrong and what to do. It makes no runs itself.
package entrycheck

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// Facts are what is known of an entry.
type Facts struct {
	Entry *workload.Entry // nil: it could not be read
	// Problems are those of the entry itself. Nothing was run if there are any.
	Problems []Problem
	Vars     map[string]string // values of its variables in the runs
	Instance engine.Workload   // rendered
	Outputs  []plan.Output
	Missing  []string      // programs that this machine lacks
	Timeout  time.Duration // of the set-up, and of the measured time
	Grace    time.Duration // between SIGTERM and SIGKILL
	// StopAfter is when Stopped was ended, from its barrier on.
	StopAfter time.Duration

	// The runs; nil: not made.
	Full    *Run // until the workload ends by itself, or for Timeout
	Stopped *Run // ended early
	Half    *Run // not a run: the parser on the first half of each output of Full
	Empty   *Run // likewise, on empty outputs
}

// Problem is an error in an entry. The hint says what to do; it may be empty.
type Problem struct{ Message, Hint string }

// Run is what one run left.
type Run struct {
	Err        error // of the command, or the reading of the bundle; nil: none
	Run        bundle.Run
	Create     *op.Op // that made the instance; nil: none was recorded
	Instance   bundle.Instance
	Counters   op.Sample // of the instance's processes from the start to the end
	Raw        []bundle.RawFile
	Histograms []bundle.HistogramSlice
	Series     []bundle.Series
	Scalars    []bundle.Scalar
	Volume     Usage
	Left       []string // processes, mounts, directories and entries of the ledger that are left
}

// Usage is what was seen on the volumes during a run.
type Usage struct {
	Bytes   int64 // the most that its files had
	Files   int   // likewise
	Changed bool  // files were made or removed, or bytes were seen
}

// Read reads the bundle of a run of one instance.
func Read(dir string) (*Run, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Run: b.Run}
	instances, err := b.Instances()
	if err != nil {
		return nil, err
	}
	if len(instances) > 0 {
		r.Instance = instances[0]
	}
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if r.Create == nil {
			r.Create = &o
		}
	}
	for s, err := range b.Samples() {
		if err != nil {
			return nil, err
		}
		r.Counters = s
	}
	var failed [3]error
	r.Histograms, failed[0] = all(b.Histograms())
	r.Series, failed[1] = all(b.Series())
	r.Scalars, failed[2] = all(b.Scalars())
	if r.Raw, err = b.RawFiles(); err != nil {
		return nil, err
	}
	open, err := b.Left()
	for _, entry := range open {
		r.Left = append(r.Left, fmt.Sprintf("%s %s", entry.Kind, entry.Name))
	}
	return r, errors.Join(err, errors.Join(failed[:]...))
}

// all collects a stream up to its first error.
func all[T any](stream iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range stream {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}

// barrier returns when the barrier opened; false: it did not.
func (r *Run) barrier() (op.Time, bool) { return r.Run.BarrierAt, r.Run.BarrierAt.Known() }

// lasted returns the time from the barrier to the end of the instance; 0: unknown.
func (r *Run) lasted() time.Duration {
	at, ok := r.barrier()
	if !ok || r.Instance.End == nil || !r.Instance.End.At.Known() {
		return 0
	}
	return time.Duration(r.Instance.End.At - at)
}
