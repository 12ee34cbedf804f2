package engine

import "github.com/cnsbench/cnsbench/internal/op"

// DiscardSink is a Sink that discards everything. Sinks that need a part of the reports embed it.
type DiscardSink struct{}

// Started discards s.
func (DiscardSink) Started(op.InstanceStart) {}

// Ended discards e.
func (DiscardSink) Ended(op.InstanceEnd) {}

// Sample discards s.
func (DiscardSink) Sample(op.Sample) {}

// Machine discards m.
func (DiscardSink) Machine(op.Machine) {}

// Volume discards r.
func (DiscardSink) Volume(op.VolumeReading) {}

// Canary discards ios.
func (DiscardSink) Canary(string, string, []op.CanaryIO) {}

// Output accepts and discards all bytes.
func (DiscardSink) Output(_, _, _ string, data []byte) int { return len(data) }

// Cut discards the report.
func (DiscardSink) Cut(string, string, string, int64, bool) {}

// Log discards the line.
func (DiscardSink) Log(string, string) {}

// Failed discards err.
func (DiscardSink) Failed(error) {}
