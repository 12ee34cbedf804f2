package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// Limits of a workload.
const (
	maxWorkers         = 100_000
	maxListed          = 10_000  // keys in a response; stores answer with 1000 to 10 000 at most
	maxPartConcurrency = 64      // greatest number of connections of a worker
	maxContainers      = 100_000 // each is read before a stage, for the marker of CNSBench
	maxRuntime         = 365 * 24 * time.Hour
	largestObject      = int64(5) << 40 // limit of S3
)

// hostLetters are the characters of host names.
const hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

// Check validates a parsed workload. It reports contradictions, works without an end, and sizes outside of
// the limits. Messages use words.
func Check(w *Workload, words Words, kinds Kinds) Problems {
	ps := checker{words: words, kinds: kinds}
	if len(w.Stages) == 0 {
		ps.Fail(0, "add a "+words.Stage, "the workload has no stages")
	}
	for i := range w.Stages {
		s := &w.Stages[i]
		if len(s.Works) == 0 {
			ps.Fail(s.Line, "add a work", "stage %q has no works", s.Name)
		}
		names := map[string]bool{}
		for j := range s.Works {
			work := &s.Works[j]
			if names[work.Name] {
				ps.Fail(work.Line, "give each work a name", "stage %q has two works %q", s.Name, work.Name)
			}
			names[work.Name] = true
			ps.work(s, work)
		}
	}
	ps.Sort()
	return ps.Problems
}

func (ps *checker) work(s *Stage, w *Work) {
	if w.Kind == Delay {
		if s.Closure == 0 {
			ps.warn(w.Line, "closuredelay", "set "+ps.words.Key("closuredelay"), "stage %q has no delay", s.Name)
		}
		return
	}
	switch {
	case w.Workers < 1:
		ps.fail(w.Line, "workers", "such as "+ps.words.Set("workers", "8"), "work %q has no workers", w.Name)
		return
	case w.Workers > maxWorkers:
		ps.fail(w.Line, "workers", fmt.Sprintf("at most %d", maxWorkers), "%d workers are too many", w.Workers)
		return
	case w.Runtime > maxRuntime || w.RampUp > maxRuntime || w.RampDown > maxRuntime:
		ps.fail(w.Line, "runtime", "at most a year", "the runtime or a ramp is too long")
	case len(w.Ops) == 0:
		ps.Fail(w.Line, "add an operation", "work %q has no operations", w.Name)
		return
	}
	if w.Kind == Normal {
		ps.normal(w)
	}
	for i := range w.Ops {
		ps.op(w, &w.Ops[i])
	}
	ps.checked(s, w)
}

func (ps *checker) normal(w *Work) {
	if w.Runtime == 0 && w.TotalOps == 0 && w.TotalBytes == 0 {
		ps.Fail(w.Line, "give runtime, totalOps or totalBytes", "work %q never ends", w.Name)
	}
	if w.Runtime == 0 && (w.RampUp > 0 || w.RampDown > 0) {
		ps.Warn(w.Line, "give a runtime", "work %q has ramps but no runtime: %s has no effect, and operations "+
			"that end within %s are not measured", w.Name, ps.words.Key("rampdown"), ps.words.Key("rampup"))
	}
	if w.UntilSteady && (w.Runtime == 0 || w.Rate != nil) {
		ps.Fail(w.Line, "give a runtime, which bounds it, and no rate, whose throughput is given",
			"work %q cannot end when it is steady", w.Name)
	}
	sum, moves := 0, false
	for _, o := range w.Ops {
		sum += o.Weight
		moves = moves || o.Weight > 0 && (o.Type == Read || o.Type.Sized() || o.Type == FileWrite)
	}
	if sum != 100 {
		ps.fail(w.Ops[0].Line, "ratio", "make them add up to 100", "the ratios of work %q add up to %d", w.Name, sum)
	}
	if w.Runtime == 0 && w.TotalOps == 0 && w.TotalBytes > 0 && !moves {
		ps.Fail(w.Line, "give a runtime or totalOps", "work %q never ends: none of its operations moves bytes", w.Name)
	}
}

func (ps *checker) op(w *Work, o *Op) {
	if n := o.Containers.Size(); n > maxContainers {
		ps.fail(o.Line, "containers", fmt.Sprintf("at most %d", maxContainers), "%d containers are too many", n)
	}
	hostNames := ps.kinds(w.Store.Kind).HostNames
	if in := o.ContainerName.Prefix + o.ContainerName.Suffix; hostNames != nil && hostNames(&w.Store) &&
		strings.Trim(in, hostLetters) != "" {
		ps.fail(o.Line, "cprefix", "leave the bucket in the path",
			"a bucket whose name has %q in it cannot be part of a host's name", in)
	}
	if o.Sizes.Unit > 0 && o.Sizes.Max() > largestObject {
		ps.fail(o.Line, "sizes", "at most 5 TiB", "an object of %d bytes is larger than any store accepts",
			o.Sizes.Max())
	}
	if o.PartConcurrency > maxPartConcurrency {
		ps.fail(o.Line, "partconcurrency", fmt.Sprintf("at most %d", maxPartConcurrency),
			"%d parts in flight are too many", o.PartConcurrency)
	}
	if o.InParts() && o.Type.Sized() && o.Sizes.Max() > 10000*o.PartSize {
		ps.fail(o.Line, "partsize", "make "+ps.words.Key("partsize")+" larger",
			"%d bytes in parts of %d are more than 10000 parts", o.Sizes.Max(), o.PartSize)
	}
	if o.Type == List && (o.MaxKeys < 1 || o.MaxKeys > maxListed) {
		ps.fail(o.Line, "maxkeys", fmt.Sprintf("1 to %d", maxListed), "a list cannot have %d keys", o.MaxKeys)
	}
	if o.Keys.Given() && (o.Type.Writes() || o.Containers.Size() > 1) {
		ps.fail(o.Line, "keys", "", "keys are for operations that read existing objects of one container, not for a %s "+
			"of %d containers", o.Type, o.Containers.Size())
	}
	if o.Containers.Kind == 0 && o.Type.Writes() {
		ps.fail(o.Line, "container", "give "+ps.words.Key("containers"),
			"a %s may not go to a container by its whole name: only those that a work of type init made are changed", o.Type)
	}
	ps.ranges(o)
	ps.chunked(w, o)
	ps.shaped(o)
	if w.Special() {
		for key, s := range map[string]selector.Spec{"containers": o.Containers, "objects": o.Objects} {
			if s.Kind != 0 && s.Kind != selector.Range && s.Kind != selector.Constant && s.Kind != selector.Sequential {
				ps.warn(o.Line, key, "write it as r(a,b)",
					"%s goes once through all numbers from %d to %d and ignores the distribution", w.Kind, s.Low,
					s.High)
			}
		}
		return
	}
	ps.divided(w, o)
}

// ranges reports several ranges in one request that have no room: each is drawn in a section of the object of its own.
func (ps *checker) ranges(o *Op) {
	n := int64(o.Options.RangeCount())
	blocks := (o.Length + payload.Block - 1) / payload.Block
	switch {
	case n == 1:
	case o.Length == 0:
		ps.fail(o.Line, "ranges", "give length and within", "%d ranges have no length", n)
	case o.Within/n/payload.Block < blocks:
		ps.fail(o.Line, "ranges", "at least "+ps.words.Set("within", fmt.Sprint(n*blocks*payload.Block)),
			"%d ranges of %d bytes do not fit into %d bytes: each is in a section of its own, of a multiple of %d bytes",
			n, o.Length, o.Within, payload.Block)
	}
}

// shaped reports contents that cannot be reduced as the file asks.
func (ps *checker) shaped(o *Op) {
	s := o.Shape
	for key, percent := range map[string]uint8{"compressible": s.Compressible, "dedupable": s.Dedupable} {
		switch {
		case percent > 100:
			ps.fail(o.Line, key, "a percentage from 0 to 100", "%s is %d", ps.words.Key(key), percent)
		case percent > 0 && o.Zero:
			ps.fail(o.Line, key, "leave it or "+ps.words.Set("content", "zero")+" out", "zeros have no %s",
				ps.words.Key(key))
		}
	}
	if s.Dedupable > 0 && o.Sizes.Unit > 0 && o.Sizes.Low*o.Sizes.Unit < 2*payload.Block {
		ps.warn(o.Line, "dedupable", "write objects of 8 KiB or more",
			"the first 4 KiB of an object identify its write: smaller objects are never alike")
	}
	if o.ObjectName.Hash > MaxHash {
		ps.fail(o.Line, "hashprefix", fmt.Sprintf("at most %d", MaxHash), "%d digits are too many", o.ObjectName.Hash)
	}
}

// chunked reports bodies that are not sent in chunked transfer encoding although the file asks for it.
func (ps *checker) chunked(w *Work, o *Op) {
	set, sends := ps.words.Set("chunked", "true"), o.Type.Sized() || o.Type == FileWrite
	switch chunked := ps.kinds(w.Store.Kind).Chunked; {
	case !o.Chunked || !sends || chunked == ChunkedAccepted:
	case chunked == ChunkedRefused && !o.InParts():
		ps.fail(o.Line, "chunked", "leave "+set+" out",
			"storage %s refuses chunked transfer encoding: each %s would fail", w.Store.Kind, o.Type)
	default:
		ps.warn(o.Line, "chunked", "", "%s has no effect on a %s to storage %s", set, o.Type, w.Store.Kind)
	}
}

// divided reports workers without anything to do, and selectors that cannot be divided.
func (ps *checker) divided(w *Work, o *Op) {
	owned := w.Owns(o)
	if owned {
		ps.idle(w, o, o.Objects, "with an object for one worker each", "objects")
	}
	switch o.Division {
	case ByContainer:
		ps.idle(w, o, o.Containers, "divided by container", "division")
	case ByObject:
		if !owned {
			ps.idle(w, o, o.Objects, "divided by object", "division")
		}
	}
}

// idle reports workers without any number of s when s is divided among them.
func (ps *checker) idle(w *Work, o *Op, s selector.Spec, divided, key string) {
	const hint = "use fewer workers or a wider range"
	switch n := int64(w.Workers) - s.Size(); {
	case s.Kind == 0:
	case !s.Divisible():
		if key == "division" { // for works with checks, this has already been reported as an error
			ps.warn(o.Line, key, "", "a selector by histogram or s(a,b) cannot be divided by %s: all workers "+
				"share it", o.Division)
		}
	case n <= 0:
	case w.Rate != nil: // each worker has its turn, on any host
		ps.fail(o.Line, key, hint, "%s, %d of %d workers have nothing to %s, but the rate gives each its turn",
			divided, n, w.Workers, o.Type)
	default:
		ps.warn(o.Line, key, hint, "%s, %d of %d workers have nothing to %s", divided, n, w.Workers, o.Type)
	}
}
