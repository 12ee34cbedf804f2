package imported

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/decode"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/version"
)

// The files of an imported study.
const (
	DescriptionFile = "imported.json"
	ValuesFile      = "observations.csv"
)

// format is the version of DescriptionFile.
const format = 1

// Description is the content of DescriptionFile.
type Description struct {
	FormatVersion int `json:"format"`
	// Importer is what read the source: csv, or the name of a tool's format.
	Importer string   `json:"importer"`
	Sources  []Source `json:"sources"`
	// SHA256 is that of ValuesFile.
	SHA256 string `json:"sha256"`
	Format Format `json:"csv"`
	Counts Counts `json:"counts"`
	// Flags are validity flags that the importer raised.
	Flags []Flag `json:"flags,omitempty"`
	// Program is the version of the program that imported it.
	Program string `json:"program"`
}

// Source is a file that was imported.
type Source struct {
	Tool   string `json:"tool,omitempty"` // that wrote it
	Name   string `json:"name"`           // without its folder
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// CSV imports a CSV file into a new folder: it checks every row, copies the text, and describes it. The file may be
// compressed or in UTF-16 (package decode); the copy is UTF-8 text. It reads the file once, as a stream. The folder
// must not exist, or be empty; after an error it is as before.
func CSV(dir, name string, from io.Reader, f Format) (*Description, error) {
	d := &Description{FormatVersion: format, Importer: "csv", Format: f, Program: version.Version}
	err := create(dir, func(values io.Writer) error {
		of, size, sum := sha256.New(), &counter{}, sha256.New()
		whole := decode.Tee(from, io.MultiWriter(of, size))
		text, err := decode.NewReader(whole, maxText)
		if err != nil {
			return err
		}
		defer text.Close()
		check, err := scan(io.TeeReader(text, io.MultiWriter(values, sum)), f)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, whole); err != nil { // what follows a compressed stream
			return err
		}
		d.SHA256, d.Format, d.Counts = hex.EncodeToString(sum.Sum(nil)), check.format, check.counts
		d.Sources = []Source{{Name: filepath.Base(name), SHA256: hex.EncodeToString(of.Sum(nil)), Bytes: size.n}}
		return check.duplicate(func() (io.ReadCloser, error) { return bounded.Dir(dir).Open(ValuesFile) })
	}, d)
	return d, err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// create makes the folder: values writes ValuesFile, then d is written. After an error nothing of it is left.
func create(dir string, values func(io.Writer) error, d *Description) (err error) {
	folder := bounded.Dir(dir)
	entries, statErr := folder.ReadDir(".")
	switch {
	case statErr == nil && len(entries) > 0:
		return fmt.Errorf("%s is not empty: choose another --out", dir)
	case statErr != nil && !errors.Is(statErr, os.ErrNotExist):
		return statErr
	}
	existed := statErr == nil
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = folder.Remove(ValuesFile)
			_ = folder.Remove(DescriptionFile)
			if !existed {
				_ = os.Remove(dir)
			}
		}
	}()
	out, err := folder.Create(ValuesFile)
	if err != nil {
		return err
	}
	if err := errors.Join(values(out), out.Close()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return folder.WriteFile(DescriptionFile, append(text, '\n'))
}

// maxDescription limits DescriptionFile.
const maxDescription = 1 << 20

// Is says whether a folder is an imported study.
func Is(dir string) bool {
	return bounded.Dir(dir).Has(DescriptionFile)
}

// Open reads an imported study: its description and its values. It checks that the values are
// those that were imported.
func Open(dir string) (*Description, *observation.Table, error) {
	folder := bounded.Dir(dir)
	name := folder.Path(DescriptionFile)
	text, err := folder.ReadFile(DescriptionFile, maxDescription)
	if err != nil {
		return nil, nil, err
	}
	d := &Description{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.FormatVersion != format {
		return nil, nil, fmt.Errorf("%s has format %d: this program reads format %d", name, d.FormatVersion, format)
	}
	path := folder.Path(ValuesFile)
	f, err := folder.Open(ValuesFile)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	sum := sha256.New()
	plain, err := decode.NewReader(io.TeeReader(f, sum), maxText) // earlier versions left the mark of UTF-8 there
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	defer plain.Close()
	t, err := load(plain, d.Format)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.SHA256 {
		return nil, nil, fmt.Errorf("%s has changed since it was imported: import it again", path)
	}
	return d, t, nil
}

// load reads the values into a table.
func load(from io.Reader, f Format) (*observation.Table, error) {
	r, err := newReader(from, f)
	if err != nil {
		return nil, err
	}
	b := observation.NewBuilder(f.Columns.Factors, f.Columns.Occasion, f.Columns.Block)
	b.Numbered = f.Columns.Repetition != ""
	for {
		x, err := r.next()
		if errors.Is(err, io.EOF) {
			return b.Table(), nil
		}
		if err != nil {
			return nil, err
		}
		if f.Columns.aggregated() {
			b.AddAggregate(x.levels, x.values[0].metric, x.aggregate)
			continue
		}
		for _, v := range x.values {
			state := observation.Known
			if v.missing {
				state = observation.Missing
			}
			b.Add(observation.Row{Levels: x.levels, Occasion: x.occasion, Block: x.block, Repetition: x.repetition,
				Metric: v.metric, Value: v.value, State: state})
		}
	}
}
