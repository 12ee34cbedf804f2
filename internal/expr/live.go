package expr

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// LiveProblem returns why a query has no value while a run is in progress, and what to ask for instead; empty: it has
// one. During a run there are ended ops, the I/Os of canaries, samples of the I/O of the workloads' processes, and
// answers of a Prometheus server.
func (q Query) LiveProblem() string {
	action := Metric{Action: q.Metric.Action}
	switch {
	case q.Func == Interference, q.AfterOps(), q.OfTenant(), q.Func == Elapsed, q.Func == FindMax, q.Func == Knee:
		return fmt.Sprintf("%s is computed after the run: use latencies, counts, iops or throughput", q)
	case len(q.Windows) > 0 || q.Phase != nil:
		return fmt.Sprintf("%s: a trigger has no windows and no phases: it sees the last interval", q)
	case q.Func == IOPS || q.Func == Throughput:
		if q.Metric.Name != metric.Read && q.Metric.Name != metric.Write {
			return fmt.Sprintf("%s: a run samples the reads and writes of processes: write %s(%s.read) or .write", q, q.Func,
				action)
		}
	case q.OfPrometheus():
		return ""
	case q.Func == ValueOf:
		return fmt.Sprintf("%s: the output of a workload's tool is parsed after the run: use throughput(%s.write), iops or "+
			"the canary", q, action)
	case q.Metric.From == "" && (q.Metric.Name == metric.Read || q.Metric.Name == metric.Write):
		return fmt.Sprintf("%s: latencies of a workload's tool are read after the run: use %s.canaryRead or .canaryWrite", q,
			action)
	}
	return ""
}
