package parser

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

func isFioJSON(text string) bool {
	return strings.Contains(text, `"fio version"`) && fioDocument.MatchString(text)
}

// readFio reads the IOPS, the bandwidth and the latencies of each job and direction of JSON reports. Reports of
// separate runs in one file are trials. Jobs of one name and the same options in a report (numjobs) are added: rates,
// numbers, and histograms where fio wrote them; percentiles cannot be. Without clock readings (gtod_reduce) there are
// no latencies.
func readFio(text string) (*imported.Report, error) {
	out, err := decodeFio([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it %w: want JSON of fio (--output-format=json)", err)
	}
	r := &report{}
	if out.between != "" {
		r.flag(imported.Info, "fioMessages", "beside its reports: %s", out.between)
	}
	if out.partial > 0 {
		r.flag(imported.Info, "partialReports", "%d earlier reports of the same run (--status-interval) are left out",
			out.partial)
	}
	for _, what := range out.findings() {
		r.flag(imported.Warning, "fieldsUnread", "%s", what)
	}
	if len(out.reports) == 0 {
		return nil, errors.New("no JSON: run fio with --output-format=json")
	}
	if n := len(out.reports); n > 1 {
		r.flag(imported.Info, "severalRuns", "the file has %d reports of separate runs: each is a trial", n)
	}
	for _, x := range out.reports {
		if x.truncated {
			return nil, errors.New("invalid JSON: a report of fio is cut off or damaged; remove it, or run fio again")
		}
		if err := r.fio(x); err != nil {
			return nil, err
		}
	}
	return &r.Report, nil
}

// fio adds the figures of a report.
func (r *report) fio(x *fioReport) error {
	f := fioRun{reports: []*fioReport{x}}
	hosts := map[string]bool{}
	for i := range x.Jobs {
		j := &x.Jobs[i]
		f.jobs, hosts[j.Host] = append(f.jobs, j), true
		if j.Error != 0 && j.Errors == 0 {
			return fmt.Errorf("job %s failed with error %d: its figures are no trial", j.Name, j.Error)
		}
		if j.Errors > 0 {
			r.flag(imported.Warning, "fioErrors", "job %s: %d I/Os failed (the first with error %d); the figures count "+
				"those that succeeded", j.Name, j.Errors, j.Error)
		}
	}
	f.judge()
	for _, w := range f.res.Warnings {
		switch {
		case w.Invalid:
			r.flag(imported.Invalid, w.Code, "%s", w.Message)
		case slices.Contains([]string{"gtodReduce", "notDirect", "fioDiffers", "fioSaturated", "percentilesOff"}, w.Code):
			r.flag(imported.Warning, w.Code, "%s", w.Message)
		}
	}
	for _, same := range alike(f.jobs) {
		name, options := same[0].Name, same[0].comparable()
		if host := same[0].Host; host != "" && host != fioAllClients && len(hosts) > 1 {
			name += "@" + host
		}
		if len(same) > 1 {
			options["numjobs"] = strconv.Itoa(len(same))
		}
		for _, direction := range fioNames {
			r.direction(strings.TrimSpace(name+" "+direction), direction, same, options)
		}
	}
	return nil
}

// alike groups jobs that differ in nothing that is compared, in order.
func alike(jobs []*fioJob) (groups [][]*fioJob) {
	for _, j := range jobs {
		i := slices.IndexFunc(groups, func(g []*fioJob) bool {
			return g[0].Name == j.Name && g[0].Host == j.Host && g[0].Group == j.Group && maps.Equal(g[0].comparable(),
				j.comparable())
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], j)
	}
	return groups
}

// fioIrrelevant are the beginnings of names of options that say where files are, what is logged, and how it is
// reported.
var fioIrrelevant = []string{"name", "description", "directory", "filename", "opendir", "write_", "log_",
	"per_job_logs", "group_reporting", "percentile_list", "clat_percentiles", "lat_percentiles",
	"slat_percentiles", "disable_", "bwavgtime", "iopsavgtime", "status_interval", "unlink", "create_", "randseed",
	"rand_seed", "thread", "stonewall", "wait_for_previous",
	"exitall", "iolog", "uid", "gid"}

// fioDefaults are the values of the options that decide most, where a job file does not have them.
var fioDefaults = map[string]string{"rw": "read", "bs": "4096", "iodepth": "1", "ioengine": "psync"}

// comparable returns the options that decide whether two jobs can be compared, in one notation.
func (j *fioJob) comparable() map[string]string {
	list := maps.Clone(fioDefaults)
	for _, options := range []map[string]string{j.report.Global, j.Options} {
		for key, value := range options {
			if slices.ContainsFunc(fioIrrelevant, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
				continue
			}
			switch key {
			case "readwrite":
				key = "rw"
			case "blocksize":
				key = "bs"
			}
			if size, err := variable.ParseFioSize(value); err == nil && (key == "bs" || key == "size") {
				value = strconv.FormatFloat(size, 'f', -1, 64)
			}
			list[key] = value
		}
	}
	return list
}

// direction adds the figures of one direction of jobs that ran together.
func (r *report) direction(name, direction string, jobs []*fioJob, options map[string]string) {
	if direction != metric.Sync {
		sum := sumOf(jobs, direction)
		if sum.IOs == 0 {
			return
		}
		r.figure(name+" IOPS", "IOPS", sum.IOPS, options)
		r.figure(name+" bandwidth", "B/s", sum.BytesPS, options)
	}
	var lat, clat []*fioLatency
	for _, j := range jobs {
		if l := &j.directions[direction].Lat; l.N != 0 {
			lat = append(lat, l)
		}
		if l := &j.directions[direction].Clat; l.N != 0 {
			clat = append(clat, l)
		}
	}
	if n, sum := int64(0), 0.0; len(lat) > 0 {
		for _, l := range lat {
			n, sum = n+l.N, sum+l.Mean*float64(l.N)
		}
		r.figure(name+" latency", "ns", sum/float64(n), options)
	}
	r.percentiles(name+" latency", lat, options)
	r.percentiles(name+" completion latency", clat, options)
}

// percentiles adds the percentiles of a latency. Those of several jobs come from their bins.
func (r *report) percentiles(name string, jobs []*fioLatency, options map[string]string) {
	if len(jobs) == 0 {
		return
	}
	whole, bins := hist.New(), true
	for _, l := range jobs {
		h, err := l.exact()
		bins = bins && err == nil && h.N() > 0 && whole.Merge(h) == nil
	}
	for _, p := range []struct {
		key string
		q   float64
	}{{"50", 0.5}, {"99", 0.99}} {
		switch x, ok := jobs[0].Percentile[p.key+".000000"]; {
		case len(jobs) == 1 && ok:
			r.figure(name+" p"+p.key, "ns", x, options)
		case len(jobs) == 1 && len(jobs[0].Percentile) > 0:
			r.flag(imported.Info, "figuresMissing", "%s: there is no percentile %s", name, p.key)
		case len(jobs) > 1 && bins:
			if v, known := whole.Quantile(p.q); known {
				r.figure(name+" p"+p.key, "ns", float64(v), options)
			}
		case len(jobs) > 1 && ok:
			r.flag(imported.Info, "percentilesApart", "%s: percentiles of %d jobs cannot be put together: run fio with "+
				"group_reporting, or with --output-format=json+", name, len(jobs))
		}
	}
}
