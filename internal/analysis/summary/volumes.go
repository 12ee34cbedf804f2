package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// VolumeStats are what the CSI driver of a volume reported of it over the run (NodeGetVolumeStats).
type VolumeStats struct {
	Volume   string `json:"volume"`
	Driver   string `json:"driver"`
	Readings int64  `json:"readings"` // those that succeeded
	Failed   int64  `json:"failed"`
	// Bytes and Inodes are as of the last reading; nil: the driver did not report them.
	Bytes  *op.VolumeAmount `json:"bytes"`
	Inodes *op.VolumeAmount `json:"inodes"`
	// Abnormal counts the readings in which the driver said that the volume is abnormal; nil: it reports no condition.
	Abnormal *int64 `json:"abnormal"`

	firstProblem, firstAbnormal string
}

// UsedShare is the used share of the volume's bytes or inodes, whichever is greater; 0: not reported.
func (v *VolumeStats) UsedShare() float64 {
	bytes, _ := v.Bytes.UsedShare()
	inodes, _ := v.Inodes.UsedShare()
	return max(bytes, inodes)
}

// volumeStats summarises the drivers' readings of each volume, the fullest first.
func volumeStats(d *dataset.Data) []VolumeStats {
	var list []VolumeStats
	index := map[string]int{}
	for _, r := range d.Volumes {
		if r.Volume == "" {
			continue
		}
		i, known := index[r.Volume]
		if !known {
			i = len(list)
			index[r.Volume] = i
			list = append(list, VolumeStats{Volume: r.Volume, Driver: r.Driver})
		}
		list[i].add(r)
	}
	slices.SortStableFunc(list, func(a, b VolumeStats) int {
		return cmp.Or(cmp.Compare(b.UsedShare(), a.UsedShare()), strings.Compare(a.Volume, b.Volume))
	})
	return list
}

func (v *VolumeStats) add(r op.VolumeReading) {
	if r.Problem != "" {
		v.Failed++
		v.firstProblem = cmp.Or(v.firstProblem, fmt.Sprintf("at %s: %s: %s", Instant(r.At), r.Problem, r.Message))
		return
	}
	v.Readings++
	v.Bytes, v.Inodes = r.Bytes, r.Inodes
	if r.Abnormal == nil {
		return
	}
	if v.Abnormal == nil {
		v.Abnormal = new(int64)
	}
	if *r.Abnormal {
		*v.Abnormal++
		v.firstAbnormal = cmp.Or(v.firstAbnormal, fmt.Sprintf("at %s: %s", Instant(r.At), r.Message))
	}
}

// volumeFlags are the flags of volumes in an abnormal condition, and of statistics that are missing.
func volumeFlags(d *dataset.Data, list []VolumeStats) (flags []bundle.Flag) {
	var abnormal, missing []string
	for _, r := range d.Volumes {
		if r.Volume == "" {
			missing = append(missing, fmt.Sprintf("driver %s: %s", r.Driver, r.Message))
		}
	}
	for i := range list {
		v := &list[i]
		if v.Failed > 0 {
			missing = append(missing, fmt.Sprintf("volume %s: %d of %d readings failed, the first %s", v.Volume, v.Failed,
				v.Failed+v.Readings, OneLine(v.firstProblem)))
		}
		if v.Abnormal != nil && *v.Abnormal > 0 {
			abnormal = append(abnormal, fmt.Sprintf("volume %s: in %d of %d readings, the first %s", v.Volume, *v.Abnormal,
				v.Readings, OneLine(v.firstAbnormal)))
		}
	}
	if len(abnormal) > 0 {
		flags = append(flags, bundle.Flag{Name: "volumeAbnormal", Severity: validity.Warning,
			Evidence: "the driver reports an abnormal condition: " + firstOf(abnormal)})
	}
	if len(missing) > 0 {
		flags = append(flags, bundle.Flag{Name: "volumeStatsMissing", Severity: validity.Info,
			Evidence: "statistics of volumes by their drivers are missing: " + firstOf(missing)})
	}
	return flags
}

// firstOf joins the first entries of a list, and says how many more there are.
func firstOf(list []string) string {
	const most = 5
	if more := len(list) - most; more > 0 {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
