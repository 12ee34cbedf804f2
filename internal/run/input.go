package run

import (
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// input returns the parser input of a container: its files, its start and its clock.
func (r *runner) input(instance, container string) parser.Input {
	return parser.Input{
		Files:      os.DirFS(filepath.Join(r.RawDir, instance, container)),
		Instance:   instance,
		Started:    r.instances.started(instance, container),
		Terminated: r.instances.phaseOver(instance, container),
		Earlier:    r.outputsOf(instance, r.instances.started(instance, container)),
		AtWall:     r.atWall(instance, container),
	}
}

// atWall converts the wall clock of a container's machine to the run's clock.
func (r *runner) atWall(instance, container string) func(int64) op.Time {
	ahead, machine, since := r.instances.wall(instance, container)
	zero := r.Clock.Start().UnixNano() + ahead.AheadNanos
	return func(unix int64) op.Time { return r.wallClocks.shown(machine, op.Time(unix-zero), since) }
}

// outputsOf returns the outputs of the containers of an instance that started before an instant, in the order of their
// starts.
func (r *runner) outputsOf(instance string, before op.Time) (list []parser.Outputs) {
	for _, name := range r.instances.startedBefore(instance, before) {
		dir := filepath.Join(r.RawDir, instance, name)
		if _, err := os.Stat(dir); err == nil { // it has written something
			list = append(list, parser.Outputs{Files: os.DirFS(dir), AtWall: r.atWall(instance, name)})
		}
	}
	return list
}
