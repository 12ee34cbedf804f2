package imported

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Tool is a format of output of another program.
type Tool struct {
	Name string // of the subcommand
	What string // the format, in a sentence
	// Parse reads one file: the figures of one trial, or of several, one after another, where a figure repeats.
	Parse func(text string) ([]Figure, error)
	// Flags are validity flags of one file; nil: there are none.
	Flags func(text string) []Flag
}

// Tools lists the formats.
func Tools() []Tool {
	return []Tool{
		{"fio", "JSON output of fio (--output-format=json or json+), one file for each run", parseFio, flagsOfFio},
		{"dbench", "the summary that dbench prints at its end", parseDbench, nil},
		{"kubestr", "the text output of kubestr fio", parseKubestr, nil},
		{"cosbench", "the CSV file of a workload of COSBench, or of cnsbench object run", parseCOSBench, nil},
		{"warp", "the operations that warp writes with --full, FILE.csv.zst or FILE.csv", parseWarp, nil},
		{"benchstat", "output of Go benchmarks, the input of benchstat", parseBenchmarks, nil},
	}
}

// Input is a file of a tool's output.
type Input struct {
	Level    string // of the factor
	Default  bool   // Level is from the name of the file: one in the tool's output has precedence
	Occasion string // ""; or for all inputs the time of measurement
	Name     string
	Open     func() (io.ReadCloser, error)
}

// maxOutput limits a file of a tool's output.
const maxOutput = 64 << 20

// Names of the columns of values that were written by a tool's importer.
const (
	occasionColumn   = "occasion"
	repetitionColumn = "repetition"
	metricColumn     = "metric"
	unitColumn       = "unit"
	valueColumn      = "value"
)

var valueColumns = []string{occasionColumn, repetitionColumn, metricColumn, unitColumn, valueColumn}

// noLevel is the level of a factor that a figure does not have, but others.
const noLevel = "none"

// Outputs imports the output of a tool into a new folder. Inputs of the same level and occasion are repetitions, in
// their order.
func Outputs(dir string, t Tool, factor string, inputs []Input) (*Description, error) {
	d := &Description{FormatVersion: format, Importer: t.Name, Program: version.Version, Format: Format{Columns: Columns{
		Factors: []string{factor}, Repetition: repetitionColumn, Metric: metricColumn, Unit: unitColumn, Value: valueColumn}}}
	for i, in := range inputs {
		if (in.Occasion == "") != (inputs[0].Occasion == "") {
			return nil, fmt.Errorf("%s: give an occasion to every file or to none", inputs[i].Name)
		}
	}
	if inputs[0].Occasion != "" {
		d.Format.Columns.Occasion = occasionColumn
	}
	if err := d.Format.Columns.check(); err != nil {
		return nil, err
	}
	err := create(dir, func(values io.Writer) error {
		sum := sha256.New()
		var text strings.Builder
		if err := d.convert(&text, t, inputs); err != nil {
			return err
		}
		check, err := scan(strings.NewReader(text.String()), d.Format)
		if err != nil {
			return err
		}
		d.Counts = check.counts
		if _, err := io.WriteString(io.MultiWriter(values, sum), text.String()); err != nil {
			return err
		}
		d.SHA256 = hex.EncodeToString(sum.Sum(nil))
		return nil
	}, d)
	return d, err
}

// inputFigure is a figure of an input.
type inputFigure struct {
	Figure
	input *Input
}

// convert writes the figures of inputs as CSV.
func (d *Description) convert(to io.Writer, t Tool, inputs []Input) error {
	var all []inputFigure
	for i := range inputs {
		figures, err := d.figures(t, &inputs[i])
		if err != nil {
			return fmt.Errorf("%s: %w", inputs[i].Name, err)
		}
		last := d.Sources[i]
		if j := slices.IndexFunc(d.Sources, func(x Source) bool { return x.SHA256 == last.SHA256 }); j < i {
			return fmt.Errorf("%s and %s have the same content (SHA-256 %.12s): want each run once", inputs[j].Name,
				inputs[i].Name, last.SHA256)
		}
		for _, f := range figures {
			all = append(all, inputFigure{f, &inputs[i]})
		}
	}
	out := csv.NewWriter(to)
	header := append(slices.Clone(d.Format.Columns.Factors), repetitionColumn, metricColumn, unitColumn, valueColumn)
	if d.Format.Columns.Occasion != "" {
		header = append(header, occasionColumn)
	}
	_ = out.Write(header)
	seen := map[string]int{} // repetitions by levels, occasion and metric
	for _, f := range all {
		row := f.row(d.Format.Columns.Factors)
		k := fmt.Sprintf("%q", append(slices.Clone(row), f.input.Occasion, f.Name))
		seen[k]++
		row = append(row, strconv.Itoa(seen[k]), f.Name, f.Unit, strconv.FormatFloat(f.Value, 'g', -1, 64))
		if d.Format.Columns.Occasion != "" {
			row = append(row, f.input.Occasion)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// figures reads the figures of an input, and adds their factors to the columns.
func (d *Description) figures(t Tool, in *Input) ([]Figure, error) {
	text, source, err := readInput(*in)
	if err != nil {
		return nil, err
	}
	figures, err := t.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("it has no figures: want %s", t.What)
	}
	d.Sources = append(d.Sources, source)
	if t.Flags != nil {
		for _, f := range t.Flags(text) {
			f.Level, f.Source = in.Level, source.Name
			d.Flags = append(d.Flags, f)
		}
	}
	c := &d.Format.Columns
	for _, f := range figures {
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			return nil, fmt.Errorf("%s is %v: want a finite number", f.Name, f.Value)
		}
		for _, l := range f.Levels {
			if l.Factor == c.Factors[0] && !in.Default && l.Level != in.Level {
				return nil, fmt.Errorf("%s has %s %s, but the file is given as %s: leave out the level of the file, or name "+
					"its factor otherwise (--factor)", f.Name, l.Factor, l.Level, in.Level)
			}
			if !slices.Contains(c.Factors, l.Factor) {
				c.Factors = append(c.Factors, l.Factor)
			}
		}
		if len(c.Factors) > maxFactors {
			return nil, fmt.Errorf("%s: more than %d factors", f.Name, maxFactors)
		}
	}
	return figures, nil
}

// row has the level of each factor.
func (f *inputFigure) row(factors []string) []string {
	row := append([]string{f.input.Level}, slices.Repeat([]string{noLevel}, len(factors)-1)...)
	for _, l := range f.Levels {
		row[slices.Index(factors, l.Factor)] = l.Level
	}
	return row
}

// readInput reads a whole file.
func readInput(in Input) (string, Source, error) {
	f, err := in.Open()
	if err != nil {
		return "", Source{}, err
	}
	defer f.Close()
	text, err := bounded.ReadAll(f, maxOutput)
	if err != nil {
		return "", Source{}, err
	}
	sum := sha256.Sum256(text)
	return string(text), Source{Name: filepath.Base(in.Name), SHA256: hex.EncodeToString(sum[:]),
		Bytes: int64(len(text))}, nil
}
