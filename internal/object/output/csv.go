package output

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// workloadColumns and the two rows of a stage's header are COSBench's.
var workloadColumns = []string{"Stage", "Op-Name", "Op-Type", "Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime",
	"60%-ResTime", "80%-ResTime",
	"90%-ResTime", "95%-ResTime", "99%-ResTime", "100%-ResTime", "Throughput", "Bandwidth", "Succ-Ratio", "Status",
	"Detailed Status"}

// stageMetrics are the groups of columns of a stage's file.
var stageMetrics = []string{"Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime", "Throughput", "Bandwidth",
	"Succ-Ratio"}

// opOf is what COSBench calls an operation, and its type: what a special work
// does is of the work's own type, and named by both; a normal one's without names of their own are
// called by their types, also where there are several of one.
func opOf(w *model.Work, o *model.Op) (name, kind string) {
	kind = string(w.Kind)
	switch {
	case !w.Special():
		return cmp.Or(o.GivenName(), string(o.Type)), string(o.Type)
	case o.Type == model.MakeContainer:
		return kind + "-write", kind
	case o.Type == model.RemoveContainer:
		return kind + "-delete", kind
	}
	return kind + "-" + string(o.Type), kind
}

// stageHeader is the two rows above those of a stage.
func stageHeader(works []*model.Work) [][]string {
	head, names := []string{"Timestamp"}, []string{""}
	for _, m := range stageMetrics {
		for _, w := range works {
			for i := range w.Ops {
				name, _ := opOf(w, &w.Ops[i])
				head, names = append(head, m), append(names, name)
				m = ""
			}
		}
	}
	return [][]string{append(head, "Version-Info", "", ""), append(names, "Min-Version", "Version", "Max-Version")}
}

// stageRow is what a stage did in about a second.
func stageRow(figures []loadgen.Figures, at time.Time, version int) []string {
	cells := []string{at.Format("15:04:05")}
	for _, m := range stageMetrics {
		for i := range figures {
			cells = append(cells, stageCell(m, &figures[i]))
		}
	}
	v := strconv.Itoa(version)
	return append(cells, v, v, v)
}

func stageCell(metric string, f *loadgen.Figures) string {
	switch metric {
	case "Op-Count":
		return strconv.FormatInt(f.OK, 10)
	case "Byte-Count":
		return strconv.FormatInt(f.Bytes, 10)
	case "Avg-ResTime":
		return millis(f.Cell.Response.Sum(), f.Cell.Response.N())
	case "Avg-ProcTime":
		return millis(f.Cell.First.Sum(), f.Cell.First.N())
	case "Throughput":
		return number(f.PerSecond())
	case "Bandwidth":
		return number(f.Bandwidth())
	}
	if v, ok := f.SuccessRatio(); ok {
		return number(100*v) + "%"
	}
	return "N/A"
}

// csvText is rows as a file has them.
func csvText(rows ...[]string) []byte {
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(rows) // to memory
	return b.Bytes()
}

// number as COSBench writes it: at most two decimals.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// millis of a sum over n; "N/A" where there are none.
func millis(sum, n int64) string {
	if n == 0 {
		return "N/A"
	}
	return number(float64(sum) / float64(n) / 1e6)
}

// quantile of the responses in whole ms, as COSBench writes them, rounded up as its steps are; what was lost never
// came.
func quantile(f *loadgen.Figures, q float64) string {
	ns, infinite, ok := f.Response(q)
	switch {
	case !ok:
		return "N/A"
	case infinite:
		return "Infinity"
	}
	return strconv.FormatInt((ns+999_999)/1_000_000, 10)
}

// WriteCSV writes COSBench's two files of a whole workload, of that name.
func WriteCSV(w *bundle.Writer, name string, result *loadgen.Result, start time.Time) error {
	rows, err := workloadCSV(result, start)
	if err == nil {
		err = w.Raw("cosbench", "csv", name+".csv", rows)
	}
	times, bad := histogramCSV(result)
	if bad == nil {
		bad = w.Raw("cosbench", "csv", name+"-rt-histogram.csv", times)
	}
	return errors.Join(err, bad)
}

// workloadCSV is COSBench's file of a whole workload. Its response times are
// in ms; the processing time is that to the first byte.
func workloadCSV(result *loadgen.Result, start time.Time) ([]byte, error) {
	rows := [][]string{workloadColumns}
	for i := range result.Stages {
		s := &result.Stages[i]
		id, status := stageID(i+1, s.Name), "completed"
		switch {
		case s.Skipped:
			status = "cancelled"
		case s.Err != nil:
			status = "failed"
		}
		tail := []string{status}
		if !s.Skipped {
			tail = append(tail, "launching @ "+stamp(start, s.Began), status+" @ "+stamp(start, s.Ended))
		}
		before := len(rows)
		for j := range s.Works {
			figures, err := s.Works[j].Figures()
			if err != nil {
				return nil, err
			}
			for k := range figures {
				rows = append(rows, append(workloadRow(id, &s.Works[j], &figures[k]), tail...))
			}
		}
		if len(rows) == before {
			none := []string{id}
			for range len(workloadColumns) - 3 {
				none = append(none, "N/A")
			}
			rows = append(rows, append(none, tail...))
		}
	}
	return csvText(rows...), nil
}

// stageID is what COSBench calls the n-th stage.
func stageID(n int, name string) string { return fmt.Sprintf("s%d-%s", n, name) }

func stamp(start time.Time, at op.Time) string {
	return start.Add(time.Duration(at)).Format("2006-01-02 15:04:05")
}

func workloadRow(id string, w *loadgen.WorkResult, f *loadgen.Figures) []string {
	h := f.Cell.Response
	ratio := "N/A"
	if v, ok := f.SuccessRatio(); ok {
		ratio = number(100*v) + "%"
	}
	name, kind := opOf(w.Work, &w.Work.Ops[f.Op])
	return []string{id, name, kind, strconv.FormatInt(f.OK, 10), strconv.FormatInt(f.Bytes, 10),
		millis(h.Sum(), h.N()), millis(f.Cell.First.Sum(), f.Cell.First.N()),
		quantile(f, 0.6), quantile(f, 0.8), quantile(f, 0.9), quantile(f, 0.95), quantile(f, 0.99), quantile(f, 1),
		number(f.PerSecond()), number(f.Bandwidth()), ratio}
}

// COSBench's steps of response times: of 10 ms, up to 500 s.
const (
	resTimeStep = 10 * time.Millisecond
	resTimeMax  = 500 * time.Second
)

// histogramCSV is COSBench's file of response times: how many operations took so
// many ms, and which share took that or less, for each operation of the works of
// type normal. COSBench goes on to 500 s in any case; this ends with the slowest,
// below 100 % where operations were lost.
func histogramCSV(result *loadgen.Result) ([]byte, error) {
	var counts [][]int64 // by operation and step
	var all []int64      // by operation
	rows := [][]string{{"ResTime"}}
	for i := range result.Stages {
		s := &result.Stages[i]
		for j := range s.Works {
			w := &s.Works[j]
			if w.Work.Special() {
				continue
			}
			figures, err := w.Figures()
			if err != nil {
				return nil, err
			}
			for k := range figures {
				name, _ := opOf(w.Work, &w.Work.Ops[k])
				rows[0] = append(rows[0], fmt.Sprintf("%s-w%d-%s-%s", stageID(i+1, s.Name), j+1, w.Work.Name, name),
					"(%)")
				counts, all = append(counts, steps(figures[k].Cell.Response)),
					append(all, figures[k].Cell.Response.N()+figures[k].Lost)
			}
		}
	}
	last := 0
	for _, c := range counts {
		last = max(last, len(c))
	}
	upTo := make([]int64, len(counts))
	for step := range last {
		row := []string{resTime(step)}
		for i, c := range counts {
			n := int64(0)
			if step < len(c) {
				n = c[step]
			}
			upTo[i] += n
			row = append(row, strconv.FormatInt(n, 10), number(100*float64(upTo[i])/float64(max(1, all[i])))+"%")
		}
		rows = append(rows, row)
	}
	return csvText(rows...), nil
}

// steps are how many values are in each of COSBench's steps, up to the last.
func steps(h *hist.Histogram) (n []int64) {
	h.Buckets(func(b hist.Bucket) bool {
		step := int(min(b.High, h.Max(), int64(resTimeMax)) / int64(resTimeStep))
		n = append(n, make([]int64, max(0, step+1-len(n)))...)
		n[step] += b.Count
		return true
	})
	return n
}

// resTime is what COSBench calls a step.
func resTime(step int) string {
	from := time.Duration(step) * resTimeStep
	if from >= resTimeMax {
		return fmt.Sprintf("%d~+INF", from.Milliseconds())
	}
	return fmt.Sprintf("%d~%d", from.Milliseconds(), (from + resTimeStep).Milliseconds())
}
