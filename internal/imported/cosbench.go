package imported

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cosbenchFigures are the columns that become figures, with their units. Times are in milliseconds.
var cosbenchFigures = []struct{ column, name, unit string }{
	{"Throughput", "throughput", "op/s"}, {"Bandwidth", "bandwidth", "B/s"}, {"Avg-ResTime", "response time", "ms"},
	{"95%-ResTime", "response time p95", "ms"}, {"99%-ResTime", "response time p99", "ms"},
}

// parseCOSBench reads the file of a workload: a row for each operation of each stage. Operations that did nothing,
// figures that are N/A, and the bandwidth of operations without bytes are left out.
func parseCOSBench(text string) ([]Figure, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("the file is empty")
	}
	at := func(column string) int { return slices.Index(rows[0], column) }
	for _, c := range []string{"Stage", "Op-Name", "Op-Count", "Throughput", "Bandwidth"} {
		if at(c) < 0 {
			return nil, fmt.Errorf("no column %s: want the CSV file of a workload, with a row for each operation", c)
		}
	}
	var list []Figure
	for i, row := range rows[1:] {
		cell := func(column string) string {
			if j := at(column); j >= 0 && j < len(row) {
				return strings.TrimSpace(row[j])
			}
			return ""
		}
		if n := cell("Op-Count"); n == "" || n == "0" || n == "N/A" {
			continue
		}
		for _, f := range cosbenchFigures {
			text := cell(f.column)
			if text == "" || text == "N/A" || f.column == "Bandwidth" && cell("Byte-Count") == "0" {
				continue
			}
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid %s %q: want a number", i+2, f.column, text)
			}
			list = append(list, figureOf(cell("Stage")+" "+cell("Op-Name")+" "+f.name, f.unit, x))
		}
	}
	return list, nil
}
