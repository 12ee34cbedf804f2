package parser

import (
	"errors"
	"fmt"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// Histograms of etcd's server, in s.
const (
	etcdFsyncFamily  = "etcd_disk_wal_fsync_duration_seconds"
	etcdCommitFamily = "etcd_disk_backend_commit_duration_seconds"
)

var (
	etcdFsync  = latencyOf("fsync", "fsyncs of etcd's log, as its server measures them; one can serve several puts")
	etcdCommit = latencyOf("commit", "commits of etcd's database to the volume, as its server measures them")
)

var errEtcdNoMetrics = errors.New("there are no metrics of etcd's server")

// etcdDifference returns what a histogram of the server has more after than before: the values of each bucket spread
// evenly over it, their exact mean, and as minimum and maximum the bounds of the buckets. Those beyond the last bound
// count as that bound, and then capped is true.
func etcdDifference(before, after, family string) (h *hist.Histogram, capped bool, err error) {
	if before == "" || after == "" {
		return nil, false, errEtcdNoMetrics
	}
	old, err := etcdFamily(before, family)
	if err != nil {
		return nil, false, fmt.Errorf("before.prom: %w", err)
	}
	now, err := etcdFamily(after, family)
	if err != nil {
		return nil, false, fmt.Errorf("after.prom: %w", err)
	}
	if len(old.Bucket) != len(now.Bucket) {
		return nil, false, errors.New("before.prom and after.prom have different buckets")
	}
	h = hist.New()
	low, least, most, counted := 0.0, math.Inf(1), 0.0, uint64(0)
	for i, b := range now.Bucket {
		bound, was := b.GetUpperBound()*1e9, old.Bucket[i]
		n := b.GetCumulativeCount() - was.GetCumulativeCount()
		if was.GetUpperBound() != b.GetUpperBound() || b.GetCumulativeCount() < was.GetCumulativeCount() || n < counted ||
			n > maxNumber || !(bound > low) || bound > maxEtcdBound && !math.IsInf(bound, 1) {
			return nil, false, errors.New("its counts decrease or its buckets differ: did the server start anew?")
		}
		if n > counted {
			least = min(least, low)
			if math.IsInf(bound, 1) {
				capped, bound = true, low+1
			}
			most = bound
			if err := recordEvenly(h, low, bound, int64(n-counted), 0, math.MaxInt64); err != nil {
				return nil, false, err
			}
		}
		low, counted = bound, n
	}
	if sum := (now.GetSampleSum() - old.GetSampleSum()) * 1e9; h.N() > 0 && !capped && sum >= 0 && sum < math.MaxInt64 {
		err = h.SetExact(int64(sum), int64(least), int64(most))
	}
	return h, capped, err
}

// maxEtcdBound is the greatest accepted bound of a bucket, in ns.
const maxEtcdBound = 1e15

// etcdFamily returns the only histogram of a family.
func etcdFamily(text, name string) (*dto.Histogram, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	f := all[name]
	if f == nil || len(f.Metric) != 1 || f.Metric[0].Histogram == nil || len(f.Metric[0].Histogram.Bucket) == 0 {
		return nil, errors.New("it is missing, or no histogram")
	}
	return f.Metric[0].Histogram, nil
}

// recordEvenly records n values that are spread evenly over a bucket, but none below the least or above the most.
func recordEvenly(h *hist.Histogram, low, high float64, n, least, most int64) error {
	steps := min(n, dbSteps)
	for i := range steps {
		v := low + (high-low)*(float64(i)+0.5)/float64(steps)
		if err := h.RecordN(min(max(int64(v), least), most), n*(i+1)/steps-n*i/steps); err != nil {
			return err
		}
	}
	return nil
}
