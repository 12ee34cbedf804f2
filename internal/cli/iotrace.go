package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/trace/ioprofile"
	"github.com/cnsbench/cnsbench/internal/trace/iotrace"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// maxModel bounds the file of a model; a ConfigMap has at most 1 MiB.
const maxModel = 1 << 20

// maxJobs is the largest number of fio jobs that replay a profile.
const maxJobs = 64

// iotraceFlags are those of cnsbench iotrace.
type iotraceFlags struct {
	model, trace, file, out string
	duration                time.Duration
	speed                   int64
	jobs                    int
	direct                  bool
	limits                  ioprofile.Limits
}

// newIotrace has the program of the entry fio-iolog, and of those that workloads profile makes.
func newIotrace(s *streams) *cobra.Command {
	var f iotraceFlags
	c := &cobra.Command{
		Use: "iotrace", Short: "Make fio iologs of the model of a profile, or of a trace (the program of their entries)",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			operations := f.generate
			if f.trace != "" {
				operations = f.recorded
			}
			ios, err := operations(s)
			if err != nil {
				return err
			}
			return failed(writeLanes(ios, f.file, f.out, f.jobs))
		},
	}
	maxSizeFlag(c, s)
	fl := c.Flags()
	fl.StringVar(&f.model, "model", "", "file with the model")
	fl.StringVar(&f.trace, "trace", "", "file with a trace, in place of a model")
	fl.StringVar(&f.file, "file", "", "file that the operations are on")
	fl.StringVarP(&f.out, "out", "o", "", "directory for the logs")
	fl.Int64Var(&f.limits.Size, "size", 0, "bytes of the file; of a trace they are written to the file size")
	fl.DurationVar(&f.duration, "duration", time.Minute, "time of the operations of a model")
	fl.Int64Var(&f.speed, "speed", 100, "speed at which they are replayed, in percent")
	fl.Uint64Var(&f.limits.Seed, "seed", 0, "seed of the operations of a model")
	fl.IntVar(&f.jobs, "jobs", 1, "number of logs")
	fl.BoolVar(&f.direct, "direct", false, "check that direct I/O can do the operations of a trace")
	return c
}

// generate makes operations of the model.
func (f *iotraceFlags) generate(s *streams) ([]iotrace.IO, error) {
	if f.speed < 1 || f.duration <= 0 {
		return nil, fmt.Errorf("invalid --speed %d or --duration %v: want more than 0", f.speed, f.duration)
	}
	m, err := readModel(f.model)
	if err != nil {
		return nil, err
	}
	f.limits.LengthNs = int64(float64(f.duration) * float64(f.speed) / 100)
	f.limits.Size = f.limits.Size / fillBlock * fillBlock
	ios := m.Generate(f.limits)
	visible.Fprintf(s.out, "%s\n", count(len(ios), "operation"))
	return ios, nil
}

// fillBlock is the block size with which files are filled. fio fills whole blocks only.
const fillBlock = 1 << 20

// minDirect is the unit of direct I/O on most devices.
const minDirect = 512

// recorded returns the operations of the trace, and writes the size of the file that they need.
func (f *iotraceFlags) recorded(s *streams) ([]iotrace.IO, error) {
	t, err := readIotrace(s, f.trace, "")
	if err != nil {
		return nil, err
	}
	if align := t.Align(); f.direct && align < minDirect {
		return nil, fmt.Errorf("%s: offsets or sizes are multiples of %d bytes, and direct I/O needs %d: set direct to 0",
			f.trace, align, minDirect)
	}
	visible.Fprintf(s.out, "%s: %s, %s; %s left out\n", t.Format, count(len(t.IOs), "operation"), count(t.Files, "file"),
		count(t.Trims, "trim"))
	size := (max(t.Span(), 1) + fillBlock - 1) / fillBlock * fillBlock
	return t.IOs, os.WriteFile(filepath.Join(f.out, "size"), fmt.Appendln(nil, size), 0o644)
}

func readModel(path string) (*ioprofile.Model, error) {
	text, err := bounded.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), maxModel)
	if err != nil {
		return nil, err
	}
	var m ioprofile.Model
	if err = json.Unmarshal(text, &m); err == nil {
		err = m.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &m, nil
}

// writeLanes writes the logs 0, 1, … to a directory.
func writeLanes(ios []iotrace.IO, file, dir string, jobs int) (err error) {
	if jobs < 1 || jobs > maxJobs {
		return fmt.Errorf("invalid number of jobs %d: want 1 to %d", jobs, maxJobs)
	}
	var lanes []io.Writer
	for i := range jobs {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // closed below; this one is for errors
		lanes = append(lanes, f)
	}
	err = iotrace.WriteIolog(ios, file, lanes)
	for _, f := range lanes {
		err = errors.Join(err, f.(io.Closer).Close())
	}
	return err
}

// readIotrace reads a recorded trace; "-" is the standard input.
func readIotrace(s *streams, name, device string) (*iotrace.Trace, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	t, err := iotrace.Parse(f, device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}
