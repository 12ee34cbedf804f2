package run

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/op"
)

// sink passes on what the engine reports: to the record, and to the loop what
// decides how long the run lasts.
type sink struct{ *runner }

func (s *sink) Started(e op.InstanceStart) {
	s.instances.hasStarted(e)
	s.Record.Started(e)
}

func (s *sink) Ended(e op.InstanceEnd) {
	s.Record.Ended(e)
	s.instances.hasEnded(e, func(err error) {
		s.log(e.Instance, err.Error())
		s.fail(err)
	})
}

func (s *sink) Sample(p op.Sample) { s.Record.Sample(p) }

func (s *sink) Machine(m op.Machine) { s.Record.Machine(m) }

func (s *sink) Canary(instance, volume string, ios []op.CanaryIO) {
	s.Record.Canary(instance, volume, ios)
}

func (s *sink) Output(instance, container, file string, data []byte) {
	if err := s.Record.Raw(instance, container, file, data); err != nil {
		s.log(instance+"/"+container, fmt.Sprintf("output %s is not kept: %v", file, err))
	}
}

func (s *sink) Log(source, line string) { s.log(source, line) }

func (s *sink) Failed(err error) { s.fail(lost(err)) }

func lost(err error) error { return fmt.Errorf("the platform was lost: %w", err) }
