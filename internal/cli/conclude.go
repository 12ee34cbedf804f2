package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// conclude closes the bundle, adds verdicts, prints the summary, delivers the results, and returns an error with the
// exit code.
func (r *running) conclude(result *run.Result) error {
	defer heap.SetGrowth(growthOfReader)()
	r.unmap()
	same, err := bundle.SameFilesystem(r.writer.Dir(), r.flags.StorageDir)
	if err == nil && same && r.flags.usesStorageDir(r.plan) {
		result.Flags = append(result.Flags, bundle.Flag{Name: "bundleOnStorageUnderTest", Severity: validity.Info,
			Evidence: fmt.Sprintf("the bundle and the volumes share a file system (%s): writing the bundle adds to the load; "+
				"use --out or --storage-dir to separate them", r.flags.StorageDir)})
	}
	closed := r.writer.Close(func(b *bundle.Run) {
		b.State, b.Reason = result.State, result.Reason
		b.BarrierAt, b.EndedAt = result.BarrierAt, result.EndedAt
		b.Rates, b.Validity, b.Distributions = result.RateStats(), result.Flags, result.Distributions
		b.Bounds, b.Outages = result.Bounds, result.Outages
		b.Sampling.Steps = result.Samplings
		b.ExitCode = exitOf(result)
		if r.writer.Ledger() == nil {
			b.Left = withoutData(r.ledger.Open())
		}
	})
	if err := r.unregister(result.Leftovers); err != nil {
		visible.Fprintln(r.err, "warning: the registry of runs:", err)
	}
	if closed != nil {
		return failed(errors.Join(reasonOf(result), fmt.Errorf("close the bundle: %w", closed)))
	}
	s, code, err := r.judge(result)
	if err != nil {
		return failed(errors.Join(reasonOf(result), err))
	}
	page, err := r.report(s)
	if forPrograms(r.flags.output) || os.Getenv(podrunner.NoSummaryVariable) == "" {
		err = errors.Join(err, printResult(r.streams, r.flags.output, s, page))
	}
	err = errors.Join(err, r.deliver(s))
	if err != nil && code != exitInterrupted {
		code = exitFailed
	}
	if result.Leftovers != nil {
		err = errors.Join(err, fmt.Errorf("not everything was removed: %w; run: cnsbench cleanup %s",
			result.Leftovers, shellWord(r.flags.Out)))
	}
	if code == exitOK {
		return nil
	}
	return &exit{code, errors.Join(reasonOf(result), err)}
}

// maxLeft bounds the list of what a run has left in its bundle.
const maxLeft = 1000

func withoutData(entries []op.LedgerEntry) (list []op.LedgerEntry) {
	for _, e := range entries[:min(len(entries), maxLeft)] {
		list = append(list, op.LedgerEntry{Kind: e.Kind, Name: e.Name})
	}
	return list
}

// reportInto writes the HTML page into the bundle's directory. The manifest does not list it.
func reportInto(b *bundle.Bundle, s *summary.Summary) (path string, err error) {
	return filepath.Join(b.Dir, bundle.ReportFile), bounded.Dir(b.Dir).Replace(bundle.ReportFile,
		func(w io.Writer) error { return html.Write(w, b, s) })
}

// present writes the report of a bundle into it, and prints its summary in the form of --output.
func (s *streams) present(dir, output string) error {
	b, sum, err := summarise(dir)
	if err != nil {
		return err
	}
	page, err := reportInto(b, sum)
	return errors.Join(err, printResult(s, output, sum, page))
}

// summarise makes the summary of the bundle in a directory.
func summarise(dir string) (*bundle.Bundle, *summary.Summary, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := summary.Make(b)
	return b, s, err
}

// report writes the page with the verdicts that are now in the bundle.
func (r *running) report(s *summary.Summary) (path string, err error) {
	b, err := bundle.Open(r.writer.Dir())
	if err != nil {
		return "", err
	}
	return reportInto(b, s)
}

// judge makes the summary, and writes verdicts and flags into the bundle.
func (r *running) judge(result *run.Result) (*summary.Summary, int, error) {
	_, s, err := summarise(r.writer.Dir())
	if err != nil {
		return nil, 0, err
	}
	code := exitOf(result)
	if code == exitOK && !slo.Met(s.Verdicts) {
		code = exitSLO
	}
	if code == exitOK && r.flags.Strict && doubtful(s.Validity) {
		code = exitInvalid
	}
	return s, code, bundle.Amend(r.writer.Dir(), func(b *bundle.Run) {
		b.Verdicts, b.Validity, b.ExitCode = slo.Record(s.Verdicts), s.Validity, code
	})
}

// exitOf is the exit code for the state of a run.
func exitOf(result *run.Result) int {
	switch result.State {
	case bundle.Interrupted:
		return exitInterrupted
	case bundle.Failed:
		return exitFailed
	}
	if result.Leftovers != nil {
		return exitLeft
	}
	return exitOK
}

func reasonOf(result *run.Result) error {
	if result.State != bundle.Failed {
		return nil
	}
	return errors.New(result.Reason)
}

// doubtful says whether a flag is more than information.
func doubtful(flags []bundle.Flag) bool {
	for _, f := range flags {
		if f.Severity != validity.Info {
			return true
		}
	}
	return false
}

// clockInfo describes the clock that orders all events.
func clockInfo(c op.Clock) bundle.ClockInfo {
	info := bundle.ClockInfo{Start: c.Start(), Source: "CLOCK_MONOTONIC", Resolution: 1}
	var ts unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC, &ts) == nil {
		info.Resolution = ts.Nano()
	}
	return info
}
