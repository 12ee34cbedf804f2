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
	{"read_iops", metric.Read, dbenchIOPS("Random read IOPS", "random reads of 4 KiB at depth 64").Principal(1)},
	{"write_iops", metric.Write, dbenchIOPS("Random write IOPS", "random writes of 4 KiB at depth 64").Principal(2)},
	{"read_bw", metric.Read, dbenchBandwidth("Random read bandwidth", "random reads of 128 KiB at depth 64")},
	{"write_bw", metric.Write, dbenchBandwidth("Random write bandwidth", "random writes of 128 KiB at depth 64")},
	{"read_latency", metric.Read, dbenchLatency("Read latency", "random reads of 4 KiB at depth 4, the mean")},
	{"write_latency", metric.Write, dbenchLatency("Write latency", "random writes of 4 KiB at depth 4, the mean")},
	{"read_seq", metric.Read, dbenchBandwidth("Sequential read", "reads of 1 MiB at depth 16 by four jobs")},
	{"write_seq", metric.Write, dbenchBandwidth("Sequential write", "writes of 1 MiB at depth 16 by four jobs")},
	{"rwmix", metric.Read, dbenchIOPS("Mixed read IOPS", "reads of the mix of 75 % reads, 4 KiB at depth 64")},
	{"rwmix", metric.Write, dbenchIOPS("Mixed write IOPS", "writes of the mix of 75 % reads, 4 KiB at depth 64")},
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

func dbenchIOPS(name, meaning string) metric.Declaration {
	return declare(name, metric.PerSecond, metric.Rate, metric.Higher, meaning)
}

func dbenchBandwidth(name, meaning string) metric.Declaration {
	return declare(name, metric.BytesPerSecond, metric.Rate, metric.Higher, meaning)
}

func dbenchLatency(name, meaning string) metric.Declaration {
	return declare(name, metric.Nanoseconds, metric.Level, metric.Lower, meaning)
}

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
