package keep

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// workloadColumns and the two rows of a stage's header are COSBench's.
var workloadColumns = []string{"Stage", "Op-Name", "Op-Type", "Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime", "60%-ResTime", "80%-ResTime",
	"90%-ResTime", "95%-ResTime", "99%-ResTime", "100%-ResTime", "Throughput", "Bandwidth", "Succ-Ratio", "Status", "Detailed Status"}

// stageMetrics are the groups of columns of a stage's file.
var stageMetrics = []string{"Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime", "Throughput", "Bandwidth", "Succ-Ratio"}

// stageHeader is the two rows above those of a work.
func stageHeader(w *model.Work) [][]string {
	head, names := []string{"Timestamp"}, []string{""}
	for _, m := range stageMetrics {
		for i, o := range w.Ops {
			if i > 0 {
				m = ""
			}
			head, names = append(head, m), append(names, o.Name)
		}
	}
	return [][]string{append(head, "Version-Info", "", ""), append(names, "Min-Version", "Version", "Max-Version")}
}

// stageRow is what a work did in about a second.
func stageRow(figures []load.Figures, at time.Time, version int) []string {
	cells := []string{at.Format("15:04:05")}
	for _, m := range stageMetrics {
		for i := range figures {
			cells = append(cells, stageCell(m, &figures[i]))
		}
	}
	v := strconv.Itoa(version)
	return append(cells, v, v, v)
}

func stageCell(metric string, f *load.Figures) string {
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

func quantile(h *hist.Histogram, q float64) string {
	v, ok := h.Quantile(q)
	if !ok {
		return "N/A"
	}
	return number(float64(v) / 1e6)
}

// WorkloadCSV is COSBench's file of a whole workload. Its response times are
// in ms; the processing time is that to the first byte.
func WorkloadCSV(result *load.Result, start time.Time) ([]byte, error) {
	rows := [][]string{workloadColumns}
	for i := range result.Stages {
		s := &result.Stages[i]
		id, status := fmt.Sprintf("s%d-%s", i+1, s.Name), "completed"
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

func stamp(start time.Time, at op.Time) string {
	return start.Add(time.Duration(at)).Format("2006-01-02 15:04:05")
}

func workloadRow(id string, w *load.WorkResult, f *load.Figures) []string {
	h := f.Cell.Response
	ratio := "N/A"
	if v, ok := f.SuccessRatio(); ok {
		ratio = number(100*v) + "%"
	}
	return []string{id, f.Name, string(w.Work.Ops[f.Op].Type), strconv.FormatInt(f.OK, 10), strconv.FormatInt(f.Bytes, 10),
		millis(h.Sum(), h.N()), millis(f.Cell.First.Sum(), f.Cell.First.N()),
		quantile(h, 0.6), quantile(h, 0.8), quantile(h, 0.9), quantile(h, 0.95), quantile(h, 0.99), quantile(h, 1),
		number(f.PerSecond()), number(f.Bandwidth()), ratio}
}
