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
)

// maxModel bounds the file of a model; a ConfigMap has at most 1 MiB.
const maxModel = 1 << 20

// maxJobs is the largest number of fio jobs that replay a profile.
const maxJobs = 64

// newIotrace has the program of the entries that workloads profile makes.
func newIotrace(s *streams) *cobra.Command {
	var model, file, out string
	var duration time.Duration
	var speed int64
	var jobs int
	var o ioprofile.Limits
	c := &cobra.Command{
		Use: "iotrace", Short: "Make fio iologs of the model of a profile (the program of its entry)",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if speed < 1 || duration <= 0 {
				return fmt.Errorf("invalid --speed %d or --duration %v: want more than 0", speed, duration)
			}
			m, err := readModel(model)
			if err != nil {
				return err
			}
			o.LengthNs = int64(float64(duration) * float64(speed) / 100)
			o.Size = o.Size / fillBlock * fillBlock
			ios := m.Generate(o)
			fmt.Fprintf(s.out, "%s\n", count(len(ios), "operation"))
			return failed(writeLanes(ios, file, out, jobs))
		},
	}
	fl := c.Flags()
	fl.StringVar(&model, "model", "", "file with the model")
	fl.StringVar(&file, "file", "", "file that the operations are on")
	fl.StringVarP(&out, "out", "o", "", "directory for the logs")
	fl.Int64Var(&o.Size, "size", 0, "bytes of the file")
	fl.DurationVar(&duration, "duration", time.Minute, "time of the operations")
	fl.Int64Var(&speed, "speed", 100, "speed at which they are replayed, in percent")
	fl.Uint64Var(&o.Seed, "seed", 0, "seed of the operations")
	fl.IntVar(&jobs, "jobs", 1, "number of logs")
	return c
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
	if name == "-" {
		return iotrace.Parse(s.in, device)
	}
	f, err := os.Open(name)
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
