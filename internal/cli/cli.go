// Package cli wires the rooms together behind the command line. It decides
// exit codes and nothing else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
)

// The exit codes that scripts can rely on.
const (
	exitOK          = 0
	exitUsage       = 1 // the file or the flags are wrong
	exitFailed      = 2 // the run failed
	exitSLO         = 3 // an SLO was missed or could not be judged
	exitInvalid     = 4 // a validity gate under --strict
	exitInterrupted = 130
)

// exit is an error with its exit code. Without a message nothing is printed:
// it was said already.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal func() bool // whether in is one; nil: found out
}

// safe is the standard error: much of what is said there is not ours, but of
// workloads, servers and files. What would steer a terminal is made visible.
type safe struct {
	mu  sync.Mutex
	to  terminal.Writer
	raw io.Writer
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}

// unescaped is the file behind a standard error.
func unescaped(w io.Writer) io.Writer {
	if s, ok := w.(*safe); ok {
		return s.raw
	}
	return w
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	errs = &safe{to: terminal.Writer{To: errs}, raw: errs}
	root := newRoot(&streams{in: in, out: out, err: errs})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var e *exit
	if errors.As(err, &e) {
		code = e.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(errs, "cnsbench:", text)
	}
	return code
}

func newRoot(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "cnsbench",
		Short: "Benchmark cloud native storage: control operations and I/O together",
		Long: `CNSBench benchmarks cloud native storage. One file says which volumes and
workloads to make, which control operations (snapshot, restore, clone, resize,
delete, …) to run beside them and at which rates. Every operation is measured
phase by phase; the result is a bundle, a summary and a report.

  cnsbench run examples/quickstart.yaml      needs root for real file systems
  cnsbench doctor                            what this machine can do`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDescriptions: false},
	}
	root.AddCommand(
		newRun(s), newStudy(s), newValidate(s), newRender(s), newShow(s), newReport(s), newCleanup(s),
		newWorkloads(s), newDriver(), newDoctor(s), newVersion(s), newServe(s), newPage(s), newExport(s),
		newProxy(s), newTrace(s),
		newOperator(s), newInstall(s), newUninstall(s), newObject(s), newConvert(s),
	)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, c.CommandPath())
	})
	for _, c := range root.Commands() {
		sayUsage(c)
	}
	calledAs(root)
	return root
}

// sayUsage adds to the message on wrong arguments which ones there are to be.
func sayUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w; usage: %s", err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		sayUsage(sub)
	}
}

// maxFile bounds a file of the user's: a Benchmark is some kilobytes.
const maxFile = 8 << 20

// readFiles reads the files of a Benchmark; "-" is the standard input.
func readFiles(s *streams, names []string) ([]plan.File, error) {
	var files []plan.File
	for _, name := range names {
		f := plan.File{Name: name}
		var err error
		suite, isSuite := strings.CutPrefix(name, suitePrefix)
		switch {
		case name == "-":
			f.Name = "<stdin>"
			f.Data, err = readAll(f.Name, s.in)
		case isSuite:
			f.Data, err = readSuite(suite)
		default:
			f.Data, err = readFile(name)
		}
		if err == nil {
			err = notBenchmark(f.Name, f.Data)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(name, f)
}

func readAll(name string, r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has more than %d MiB: that is no Benchmark", name, maxFile>>20)
	}
	return b, err
}

// driverCommand starts one of our CSI drivers.
func driverCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, "csi-driver"}, nil
}

// problemsError says that files have problems, which were printed.
type problemsError struct {
	files    string
	problems []plan.Problem
}

// Error names the files and how many problems there are.
func (e *problemsError) Error() string {
	return fmt.Sprintf("%s: %s", e.files, count(len(e.problems), "problem"))
}

func lines(problems []plan.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// terminalOptions fits the summary to where it is printed.
func terminalOptions(w io.Writer) terminal.Options {
	f, ok := w.(*os.File)
	if !ok {
		return terminal.Options{}
	}
	return terminal.OptionsFor(f)
}
