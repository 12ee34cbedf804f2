package run

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// sink implements engine.Sink. It passes the engine's reports to the record, and events that affect the
// duration of the run to the loop.
type sink struct{ *runner }

func (s *sink) Started(e op.InstanceStart) {
	s.instances.hasStarted(e)
	s.Live.Started(e)
	s.Record.Started(e)
}

func (s *sink) Ended(e op.InstanceEnd) {
	s.Record.Ended(e)
	s.Live.Ended(e)
	s.instances.hasEnded(e, func(err error) {
		s.log(e.Instance, err.Error())
		s.fail(err)
	})
}

func (s *sink) Sample(p op.Sample) {
	s.limitOverhead(p)
	s.Live.Sample(p)
	s.Record.Sample(p)
}

func (s *sink) Machine(m op.Machine) { s.keepMachine(m) }

// Volume counts a driver's reading as a sample of the level detailed.
func (s *sink) Volume(r op.VolumeReading) {
	s.limitOverhead(op.Sample{Instance: "driver " + r.Driver, At: r.At, Level: op.SampleDetailed,
		SamplerNanos: r.SamplerNanos})
	s.Record.Volume(r)
}

func (s *sink) Canary(instance, volume string, ios []op.CanaryIO) {
	s.Live.Canary(instance, volume, ios)
	s.Record.Canary(instance, volume, ios)
}

func (s *sink) CanaryOpen(instance, volume string, open []op.CanaryIO, at op.Time) {
	s.Live.CanaryOpen(instance, volume, open, at)
}

func (s *sink) Output(instance, container, file string, data []byte) int {
	kept := len(data)
	if instance != engine.DriverOutput {
		kept = s.takeOutput(outputFile{instance, container, file}, kept)
	}
	if kept < len(data) && kept == 0 {
		return 0
	}
	if err := s.Record.Raw(instance, container, file, data[:kept]); err != nil {
		s.log(instance+"/"+container, fmt.Sprintf("output %s is not kept: %v", file, err))
	}
	return kept
}

func (s *sink) Cut(instance, container, file string, discarded int64, final bool) {
	f := outputFile{instance, container, file}
	if s.outputs.discarded(f, discarded, final) {
		s.reportCut(f)
	}
}

// Log shows a line of the engine to the observer, and records it as long as the log has room.
func (s *sink) Log(source, line string) {
	switch ok, last := s.outputs.line(line); {
	case ok:
		s.Record.Log(s.Clock.Now(), source, line)
	case last:
		s.flag(info, "logCut", fmt.Sprintf("the platform, its drivers and the workloads had more lines for log.jsonl than %d MiB: the rest is left out", quota.AllSources>>20))
	}
	s.Observer.Log(source, line)
}

func (s *sink) Failed(err error) { s.fail(lost(err)) }
