package parser

import "github.com/cnsbench/cnsbench/internal/metric"

// dbenchTest is a figure that dbench prints of one of its jobs.
type dbenchTest struct {
	job       string
	direction string
	figure    metric.Declaration
}

// dbenchTests are the ten figures, with the names that imported summaries of dbench have.
var dbenchTests = []dbenchTest{
	{"read_iops", metric.Read, rateOf("Random read IOPS", "random reads of 4 KiB at depth 64").Principal(1)},
	{"write_iops", metric.Write, rateOf("Random write IOPS", "random writes of 4 KiB at depth 64").Principal(2)},
	{"read_bw", metric.Read, bandwidthOf("Random read bandwidth", "random reads of 128 KiB at depth 64")},
	{"write_bw", metric.Write, bandwidthOf("Random write bandwidth", "random writes of 128 KiB at depth 64")},
	{"read_latency", metric.Read, timeOf("Read latency", metric.Level, "random reads of 4 KiB at depth 4, the mean")},
	{"write_latency", metric.Write, timeOf("Write latency", metric.Level, "random writes of 4 KiB at depth 4, the mean")},
	{"read_seq", metric.Read, bandwidthOf("Sequential read", "reads of 1 MiB at depth 16 by four jobs")},
	{"write_seq", metric.Write, bandwidthOf("Sequential write", "writes of 1 MiB at depth 16 by four jobs")},
	{"rwmix", metric.Read, rateOf("Mixed read IOPS", "reads of the mix of 75 % reads, 4 KiB at depth 64")},
	{"rwmix", metric.Write, rateOf("Mixed write IOPS", "writes of the mix of 75 % reads, 4 KiB at depth 64")},
}

// dbenchMetrics are the ten figures, the latencies of the tests, and what fio reports over all jobs.
var dbenchMetrics = func() []metric.Declaration {
	var list []metric.Declaration
	for _, t := range dbenchTests {
		list = append(list, t.figure)
	}
	for _, t := range dbenchTests {
		list = append(list, latencyOf(t.job+"."+t.direction, "latency of "+t.direction+"s of the test "+t.job))
	}
	return append(list, fioMetrics...)
}()

// Dbench reads the output of fio with the job file of the entry dbench: what Fio reads, and the ten figures of dbench.
func Dbench(in Input) (Result, error) {
	f := fioRun{work: work{in: in}, inTurn: true}
	if err := f.parse(); err != nil {
		return f.res, err
	}
	for _, t := range dbenchTests {
		if v := f.dbenchFigure(t); v > 0 {
			f.res.Scalars = append(f.res.Scalars, t.figure.Scalar(v))
		}
	}
	return f.res, nil
}

// dbenchFigure sums a rate over the jobs of a test; a latency is that of one job. It is 0 if there was no I/O.
func (f *fioRun) dbenchFigure(t dbenchTest) (sum float64) {
	for _, j := range f.jobs {
		if j.Name != t.job {
			continue
		}
		d := j.directions[t.direction]
		switch t.figure.Unit {
		case metric.PerSecond:
			sum += d.IOPS
		case metric.BytesPerSecond:
			sum += d.BytesPS
		default:
			sum += d.Lat.Mean
		}
	}
	return sum
}
