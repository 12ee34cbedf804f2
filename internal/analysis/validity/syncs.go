package validity

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// syncShare is the greatest accepted difference between the syncs that a tool counted and the calls of its processes.
const syncShare = 0.01

// syncsDiffer compares the syncs that a tool counted with the calls that the kernel saw. Fewer calls are a warning: the
// figures may be of data that was not synced. More calls are info: a tool may leave out some of its time.
func syncsDiffer(d *dataset.Data) []bundle.Flag {
	var flags []bundle.Flag
	for _, a := range d.Spec.Actions {
		s, ok := d.Syncs(a.Name)
		if !ok || s.NotObserved != "" || s.Tool == nil || *s.Tool == 0 {
			continue
		}
		calls, tool := s.Fsync+s.Msync, *s.Tool // fio does not count fdatasync and sync_file_range
		words := fmt.Sprintf("%s: the tool counted %d syncs, its processes made %d calls of fsync and %d of msync", a.Name,
			tool, s.Fsync, s.Msync)
		switch off := float64(calls) - float64(tool); {
		case off < -syncShare*float64(tool):
			flags = append(flags, flag("syncsDiffer", Warning, "%s", words))
		case off > syncShare*float64(tool):
			flags = append(flags, flag("syncsDiffer", Info, "%s; fio leaves out its ramp time", words))
		}
	}
	return flags
}
