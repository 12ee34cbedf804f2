package parser

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// cosbenchFigures are the columns that become figures, with their units. Times are in milliseconds.
var cosbenchFigures = []tableFigure{
	{"Throughput", "throughput", "op/s"}, {"Bandwidth", "bandwidth", "B/s"}, {"Avg-ResTime", "response time", "ms"},
	{"95%-ResTime", "response time p95", "ms"}, {"99%-ResTime", "response time p99", "ms"},
}

// cosbenchDecimal are the columns that COSBench writes with the decimal separator of the JVM's language, at most two
// decimals and none of a whole number; in a comma's language without quotes, so that a number is two cells.
var cosbenchDecimal = []string{"Avg-ResTime", "Avg-ProcTime", "Throughput", "Bandwidth", "Succ-Ratio"}

// cosbenchColumns are those before the status, without which decimal commas are not understood.
var cosbenchColumns = []string{"Stage", "Op-Name", "Op-Type", "Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime",
	"60%-ResTime", "80%-ResTime", "90%-ResTime", "95%-ResTime", "99%-ResTime", "100%-ResTime", "Throughput", "Bandwidth",
	"Succ-Ratio"}

// cosbenchStates are what COSBench and cnsbench object run write as Status.
var cosbenchStates = []string{"completed", "terminated", "failed", "cancelled", "aborted", "accomplished", "waiting",
	"launching", "submitting", "booting", "running", "closing", "authing", "queuing", "processing", "N/A"}

var (
	cosbenchNumber   = re(`^([0-9]+(\.[0-9]+)?(E[0-9]+)?|N/A|)$`)
	cosbenchPart     = re(`^[0-9]{1,2}$`)
	cosbenchLastPart = re(`^[0-9]{1,2}%$`)
	cosbenchRatio    = re(`^(?:([0-9.]+)%|N/A)$`)
	cosbenchText     = re(`^`)
)

func isCOSBench(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.Contains(first, "Stage") && strings.Contains(first, "Op-Count")
}

// readCOSBench reads the file of a workload: a row for each operation of each stage. Operations that did nothing,
// figures that are N/A, and the bandwidth of operations without bytes are left out. Several operations of one name in a
// stage are numbered: the file has no other name of their works.
func readCOSBench(text string) (*imported.Report, error) {
	in := csv.NewReader(strings.NewReader(text))
	in.FieldsPerRecord = -1
	rows, err := in.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("the file is empty")
	}
	c := &cosbench{}
	for _, name := range rows[0] {
		c.header = append(c.header, strings.TrimSpace(name))
	}
	for _, column := range columnsOf(cosbenchFigures, "Stage", "Op-Name", "Op-Count", "Byte-Count", "Status",
		"Succ-Ratio") {
		if !slices.Contains(c.header, column) {
			return nil, fmt.Errorf("no column %s: want the CSV file of a workload, with a row for each operation", column)
		}
	}
	named, count := map[[2]string]int{}, map[[2]string]int{}
	var all []cells
	for i, row := range rows[1:] {
		c.line = i + 2
		x := cellsOf(c.header, c.aligned(row))
		all = append(all, x)
		named[[2]string{x["Stage"], x["Op-Name"]}]++
	}
	for i, row := range all {
		c.line = i + 2
		name := [2]string{row["Stage"], row["Op-Name"]}
		var options map[string]string
		if count[name]++; named[name] > 1 {
			options = map[string]string{"operation": strconv.Itoa(count[name])}
		}
		c.row(row, name[0]+" "+name[1], options)
	}
	c.endOfText(text)
	return c.done()
}

// cosbench is the work on a file.
type cosbench struct {
	report
	header []string
}

// aligned returns a row whose cells are below the names of the header. The status says where the numbers end: numbers
// with a decimal comma make more cells before it.
func (c *cosbench) aligned(row []string) []string {
	status := slices.Index(c.header, "Status")
	at := slices.IndexFunc(row, func(cell string) bool {
		return cell != "N/A" && slices.Contains(cosbenchStates, strings.ToLower(strings.TrimSpace(cell)))
	})
	switch more := at - status; {
	case len(row) <= status:
		c.refuse("it has %d cells, the header %d: the file is cut off, or another file's line is in it", len(row),
			len(c.header))
	case at < 0:
		c.refuse("it has no status such as completed")
	case more == 0:
	case more < 0 || more > len(cosbenchDecimal) || !slices.Equal(c.header[:status], cosbenchColumns):
		c.refuse("its status is in column %d, that of the header in column %d", at+1, status+1)
	default:
		return c.joined(row, more)
	}
	return row
}

// joined puts numbers with a decimal comma together: more of the decimal columns are two cells. There must be only one
// way that leaves numbers in all columns of numbers.
func (c *cosbench) joined(row []string, more int) (found []string) {
	ways := 0
	for set := range uint(1) << len(cosbenchDecimal) {
		if bits.OnesCount(set) != more {
			continue
		}
		if joined, ok := c.join(row, set); ok {
			found = joined
			ways++
		}
	}
	if ways != 1 {
		c.refuse("its numbers have decimal commas and no quotes, and which cells belong together is not certain: "+
			"write them with points (COSBench: run it with -Duser.language=en); %s", strings.Join(row, ","))
	}
	return found
}

// join puts the cells of a set of the decimal columns together.
func (c *cosbench) join(row []string, set uint) (joined []string, ok bool) {
	for _, column := range cosbenchColumns {
		cell, part, number := strings.TrimSpace(row[0]), cosbenchPart, cosbenchNumber
		row = row[1:]
		switch column {
		case "Succ-Ratio":
			part, number = cosbenchLastPart, cosbenchRatio
		case "Stage", "Op-Name", "Op-Type":
			number = cosbenchText
		}
		if i := slices.Index(cosbenchDecimal, column); i >= 0 && set>>i&1 == 1 {
			if !part.MatchString(strings.TrimSpace(row[0])) {
				return nil, false
			}
			cell += "." + strings.TrimSpace(row[0])
			row = row[1:]
		}
		if !number.MatchString(cell) {
			return nil, false
		}
		joined = append(joined, cell)
	}
	joined = append(joined, row...)
	return joined, plausible(cellsOf(c.header, joined))
}

// plausible reports whether percentiles ascend.
func plausible(row cells) bool {
	var known []float64
	for _, p := range []string{"60%", "80%", "90%", "95%", "99%", "100%"} {
		if x, err := strconv.ParseFloat(row[p+"-ResTime"], 64); err == nil {
			known = append(known, x)
		}
	}
	return slices.IsSorted(known)
}

// row adds the figures of an operation.
func (c *cosbench) row(row cells, name string, options map[string]string) {
	if status := strings.ToLower(row["Status"]); status != "completed" {
		c.flag(imported.Invalid, "stageIncomplete", "%s: the stage is %s, not completed", name, status)
	}
	number := func(column string) float64 { // 0 if there is none
		if text := row[column]; text != "N/A" {
			return c.number(column, text)
		}
		return 0
	}
	operations, bytes := number("Op-Count"), number("Byte-Count")
	ratio := row["Succ-Ratio"]
	if m := cosbenchRatio.FindStringSubmatch(ratio); m == nil {
		c.refuse("invalid Succ-Ratio %q: want a share such as 99.5%%", ratio)
	} else if ratio != "N/A" && c.number("Succ-Ratio", m[1]) < 100 {
		c.flag(imported.Warning, "operationsFailed", "%s: %s of the operations succeeded; the figures are of those", name,
			ratio)
	}
	if operations == 0 {
		return
	}
	for _, f := range cosbenchFigures {
		switch text := row[f.column]; {
		case text == "N/A" || f.column == "Bandwidth" && bytes == 0:
		case text == "":
			c.missing("%s: %s is empty", name, f.column)
		default:
			c.figure(name+" "+f.name, f.unit, c.number(f.column, text), options)
		}
	}
}
