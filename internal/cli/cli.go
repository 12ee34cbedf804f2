// Package cli is the command line: it parses flags, connects packages, prints results, and decides exit codes.
package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// The exit codes, a contract with scripts.
const (
	exitOK          = 0
	exitUsage       = 1 // the file or the flags are wrong
	exitFailed      = 2 // the run failed
	exitSLO         = 3 // an SLO was missed or could not be judged
	exitInvalid     = 4 // a validity gate under --strict
	exitVerdict     = 5 // a verdict of compare is one of --fail-on
	exitUnjudged    = 6 // --fail-on of compare had nothing to judge
	exitLeft        = 7 // something that the run created could not be removed
	exitInterrupted = 130
)

// exit is an error with an exit code. Without an error nothing is printed: the command has printed it.
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
	terminal func() bool // says whether in is one; nil: detect
	maxSize  size
	stdin    []byte // what readFiles has read of in: each trial of a study reads its files
}

// maxFile limits a Benchmark's file.
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
			if s.stdin == nil {
				s.stdin, err = readAll(f.Name, s.in)
			}
			f.Data = s.stdin
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
		err = fmt.Errorf("%s is too large for a Benchmark: want at most %d MiB", name, maxFile>>20)
	}
	return b, err
}

// driverCommand is the command of the built-in CSI drivers.
func driverCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, "csi", "driver"}, nil
}

// problemsError says that files have problems, which the command has printed.
type problemsError struct {
	files    string
	problems []plan.Problem
}

// Error names the files and the number of problems.
func (e *problemsError) Error() string {
	return fmt.Sprintf("%s: %s", e.files, count(len(e.problems), "problem"))
}

func lines(problems []plan.Problem) string {
	var b strings.Builder
	for _, line := range parse.Collapsed(problems) {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// paragraph prints a text: on a terminal over as many lines as it needs, elsewhere as one.
func paragraph(w io.Writer, format string, args ...any) error {
	_, err := io.WriteString(w, terminal.Fold(fmt.Sprintf(format, args...), terminalOptions(w).Width))
	return err
}

// terminalOptions adapts the summary to its output.
func terminalOptions(w io.Writer) terminal.Options {
	f, ok := visible.Raw(w).(*os.File)
	if !ok {
		return terminal.Options{}
	}
	return terminal.OptionsFor(f)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneOf reports a value that is not one of a list.
func oneOf(flag, value string, of []string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return fmt.Errorf("invalid %s %q: want %s", flag, value, orList(of))
}

// orList joins values: "text, json or csv".
func orList(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
