package terminal

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// maxVolumes bounds the shown volumes; the report has the rest.
const maxVolumes = 5

// volumes shows what the CSI drivers reported of the fullest volumes.
func (p *printer) volumes(s *summary.Summary) {
	t := table{head: []string{"Volumes, by CSI", "used", "available", "inodes", "available", "abnormal", "n"}}
	for i := range s.Volumes[:min(maxVolumes, len(s.Volumes))] {
		v := &s.Volumes[i]
		row := []string{v.Volume}
		row = append(row, usage(v.Bytes, units.Bytes)...)
		row = append(row, usage(v.Inodes, units.Count)...)
		abnormal := "–"
		if v.Abnormal != nil {
			abnormal = fmt.Sprint(*v.Abnormal)
		}
		t.row(append(row, abnormal, fmt.Sprint(v.Readings))...)
	}
	if len(t.rows) > 0 {
		p.table(t)
	}
	if more := len(s.Volumes) - maxVolumes; more > 0 {
		p.note(fmt.Sprintf("%d less full volumes are in the report", more))
	}
}

// usage is what is used and available.
func usage(a *op.VolumeAmount, text func(float64) string) []string {
	if a == nil {
		return []string{"–", "–"}
	}
	cells := []string{text(float64(a.Used)), text(float64(a.Available))}
	if a.Available < 0 { // the driver passed on an unknown number, from which Used was computed, too
		return []string{"–", "–"}
	}
	if a.Used < 0 {
		cells[0] = "–"
	}
	return cells
}
