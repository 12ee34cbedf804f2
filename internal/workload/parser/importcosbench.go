package parser

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// cosbenchFigures are the columns that become figures, with their units. Times are in milliseconds.
var cosbenchFigures = []struct{ column, name, unit string }{
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
	cosbenchNumber   = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(E[0-9]+)?|N/A|)$`)
	cosbenchPart     = regexp.MustCompile(`^[0-9]{1,2}$`)
	cosbenchLastPart = regexp.MustCompile(`^[0-9]{1,2}%$`)
	cosbenchRatio    = regexp.MustCompile(`^([0-9.]+)%$`)
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
	c := &cosbench{header: rows[0], named: map[string]int{}}
	for i := range c.header {
		c.header[i] = strings.TrimSpace(c.header[i])
	}
	needed := []string{"Stage", "Op-Name", "Op-Count", "Byte-Count", "Status", "Succ-Ratio"}
	for _, f := range cosbenchFigures {
		needed = append(needed, f.column)
	}
	for _, column := range needed {
		if !slices.Contains(c.header, column) {
			return nil, fmt.Errorf("no column %s: want the CSV file of a workload, with a row for each operation", column)
		}
	}
	for i := range rows[1:] {
		row, err := c.aligned(rows[i+1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		rows[i+1] = row
		c.named[c.cell(row, "Stage")+"\x00"+c.cell(row, "Op-Name")]++
	}
	count := map[string]int{}
	for i, row := range rows[1:] {
		id := c.cell(row, "Stage") + "\x00" + c.cell(row, "Op-Name")
		count[id]++
		if err := c.row(row, count[id], c.named[id]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	c.endOfText(text)
	return &c.Report, nil
}

// cosbench is the work on a file.
type cosbench struct {
	report
	header []string
	named  map[string]int // rows by stage and operation
}

func (c *cosbench) cell(row []string, column string) string {
	if i := slices.Index(c.header, column); i >= 0 && i < len(row) {
		return strings.TrimSpace(row[i])
	}
	return ""
}

// aligned returns a row whose cells are below the names of the header. The status says where the numbers end: numbers
// with a decimal comma make more cells before it.
func (c *cosbench) aligned(row []string) ([]string, error) {
	status := slices.Index(c.header, "Status")
	if len(row) <= status {
		return nil, fmt.Errorf("it has %d cells, the header %d: the file is cut off, or another file's line is in it",
			len(row),
			len(c.header))
	}
	at := slices.IndexFunc(row, func(cell string) bool {
		return cell != "N/A" && slices.Contains(cosbenchStates, strings.ToLower(strings.TrimSpace(cell)))
	})
	switch more := at - status; {
	case at < 0:
		return nil, errors.New("it has no status such as completed")
	case more == 0:
		return row, nil
	case more < 0 || more > len(cosbenchDecimal) || !slices.Equal(c.header[:status], cosbenchColumns):
		return nil, fmt.Errorf("its status is in column %d, that of the header in column %d", at+1, status+1)
	default:
		return c.joined(row, more)
	}
}

// joined puts numbers with a decimal comma together: more of the decimal columns are two cells. There must be only one
// way that leaves numbers in all columns of numbers.
func (c *cosbench) joined(row []string, more int) ([]string, error) {
	var found []string
	ways := 0
	for set := range 1 << len(cosbenchDecimal) {
		var split []string
		for i, column := range cosbenchDecimal {
			if set>>i&1 == 1 {
				split = append(split, column)
			}
		}
		if len(split) != more {
			continue
		}
		if joined, ok := c.join(row, split); ok {
			found = joined
			ways++
		}
	}
	if ways != 1 {
		return nil, fmt.Errorf("its numbers have decimal commas and no quotes, and which cells belong together is not "+
			"certain: "+
			"write them with points (COSBench: run it with -Duser.language=en); %s", strings.Join(row, ","))
	}
	return found, nil
}

// join puts the cells of the given columns together.
func (c *cosbench) join(row, split []string) (joined []string, ok bool) {
	i := 0
	for _, column := range c.header[:slices.Index(c.header, "Status")] {
		cell := strings.TrimSpace(row[i])
		i++
		if slices.Contains(split, column) {
			part := strings.TrimSpace(row[i])
			i++
			if column == "Succ-Ratio" && !cosbenchLastPart.MatchString(part) || column != "Succ-Ratio" &&
				!cosbenchPart.MatchString(part) {
				return nil, false
			}
			cell += "." + part
		}
		switch {
		case column == "Succ-Ratio":
			if cell != "N/A" && !cosbenchRatio.MatchString(cell) {
				return nil, false
			}
		case slices.Contains([]string{"Stage", "Op-Name", "Op-Type"}, column):
		case !cosbenchNumber.MatchString(cell):
			return nil, false
		}
		joined = append(joined, cell)
	}
	return append(joined, row[i:]...), c.plausible(joined)
}

// plausible reports whether percentiles ascend.
func (c *cosbench) plausible(row []string) bool {
	last := 0.0
	for _, p := range []string{"60%", "80%", "90%", "95%", "99%", "100%"} {
		x, err := strconv.ParseFloat(c.cell(row, p+"-ResTime"), 64)
		if err == nil && x < last {
			return false
		}
		if err == nil {
			last = x
		}
	}
	return true
}

// row adds the figures of an operation, the number'th of several with its name in its stage.
func (c *cosbench) row(row []string, number, of int) error {
	name := c.cell(row, "Stage") + " " + c.cell(row, "Op-Name")
	if status := strings.ToLower(c.cell(row, "Status")); status != "completed" {
		c.flag(imported.Invalid, "stageIncomplete", "%s: the stage is %s, not completed", name, status)
	}
	counts := map[string]float64{}
	for _, column := range []string{"Op-Count", "Byte-Count"} {
		text := c.cell(row, column)
		x, err := strconv.ParseFloat(text, 64)
		if text != "N/A" && err != nil {
			return fmt.Errorf("invalid %s %q: want a number", column, text)
		}
		counts[column] = x
	}
	ratio := c.cell(row, "Succ-Ratio")
	if m := cosbenchRatio.FindStringSubmatch(ratio); m != nil {
		share, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return fmt.Errorf("invalid Succ-Ratio %q", ratio)
		}
		if share < 100 {
			c.flag(imported.Warning, "operationsFailed", "%s: %s of the operations succeeded; the figures are of those", name,
				ratio)
		}
	} else if ratio != "N/A" {
		return fmt.Errorf("invalid Succ-Ratio %q: want a share such as 99.5%%", ratio)
	}
	if counts["Op-Count"] == 0 {
		return nil
	}
	var options map[string]string
	if of > 1 {
		options = map[string]string{"operation": strconv.Itoa(number)}
	}
	for _, f := range cosbenchFigures {
		text := c.cell(row, f.column)
		if text == "N/A" || f.column == "Bandwidth" && counts["Byte-Count"] == 0 {
			continue
		}
		if text == "" {
			c.flag(imported.Warning, "figuresMissing", "%s: %s is empty", name, f.column)
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("invalid %s %q: want a number", f.column, text)
		}
		c.figure(name+" "+f.name, f.unit, x, options)
	}
	return nil
}
