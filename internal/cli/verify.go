package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// verified is the result for one bundle.
type verified struct {
	Bundle string `json:"bundle"`
	OK     bool   `json:"ok"`
	// Problem says why the bundle could not be compared at all; empty if it was.
	Problem string `json:"problem,omitempty"`
	*bundle.Verification
	// Left counts the entries of the ledger that are not marked as removed.
	Left int `json:"ledgerOpen"`
}

func newVerify(s *streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "verify {BUNDLE | STUDY}…", Short: "Check the files of bundles against their manifests",
		Long: `Compares each file of a bundle with its SHA-256 in manifest.json, and the ledger with
its state at the close. It names each file that is missing, changed, or was added.
Of a study, each trial is checked, and trials that are missing or not of the study
are named.

The manifest itself has no signature: keep the digest that is printed, where others
cannot change it, and compare it.

Exit status: 0 every file matches, 1 an argument is neither a bundle nor a study, 2 a
file does not match, or a bundle was never closed.`,
		Example: `  cnsbench verify cnsbench-quickstart-20260301-120000
  cnsbench verify --output json study`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var all []verified
			var problems []error // the other arguments are checked nevertheless
			for _, dir := range args {
				list, err := verifyAny(dir)
				if err != nil {
					problems = append(problems, err)
				}
				all = append(all, list...)
			}
			if len(all) == 0 {
				return errors.Join(problems...)
			}
			return errors.Join(append(problems, printVerified(s, output, all))...)
		},
	}
	outputFlag(c, &output, "csv")
	return c
}

// verifyAny checks a bundle, or the trials of a study.
func verifyAny(dir string) ([]verified, error) {
	if isBundle(dir) {
		return []verified{verifyBundle(dir)}, nil
	}
	if !hasFile(dir, studyFile) {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("no bundle or study at %s", dir)
		}
		return nil, fmt.Errorf("%s is neither a bundle nor a study: it has no %s and no %s", dir, runFile, studyFile)
	}
	d, err := study.Open(dir)
	if err != nil {
		return nil, err
	}
	var list []verified
	known := map[string]bool{}
	for _, t := range d.Trials {
		known[t.Name] = true
		if at := d.Of(t); isBundle(at) {
			list = append(list, verifyBundle(at))
		} else {
			problem := "the trial is missing, or has not run yet"
			if reason := d.Failure(t); reason != "" {
				problem = "the trial failed before it had a bundle: " + reason
			}
			list = append(list, verified{Bundle: at, Problem: problem})
		}
	}
	entries, err := bounded.Dir(dir).ReadDir(".")
	if err != nil {
		return nil, failed(err)
	}
	for _, e := range entries {
		if at := filepath.Join(dir, e.Name()); e.IsDir() && !known[e.Name()] && isBundle(at) {
			list = append(list, verified{Bundle: at, Problem: "it is not a trial of the study"})
		}
	}
	return list, nil
}

func verifyBundle(dir string) verified {
	v := verified{Bundle: dir}
	b, err := bundle.Open(dir)
	if err == nil {
		v.Verification, err = b.Check()
	}
	if err != nil {
		v.Problem = err.Error()
		return v
	}
	v.OK = len(v.Problems) == 0
	if open, err := b.Left(); err == nil {
		v.Left = len(open)
	}
	return v
}

// printVerified prints the results, and ends with an exit status of its own if one is bad.
func printVerified(s *streams, output string, all []verified) error {
	bad := 0
	for i := range all {
		if !all[i].OK {
			bad++
		}
	}
	err := s.print(output, all, func() *table.Table { return verifiedTable(all) }, func() error {
		w := &visible.Writer{To: s.out}
		for i := range all {
			all[i].print(w)
		}
		return nil
	})
	if err == nil && bad > 0 {
		return failed(fmt.Errorf("%s of %d not verified", count(bad, "bundle"), len(all)))
	}
	return err
}

// verifiedTable has a row for each bundle, and for each file that is not as in the manifest.
func verifiedTable(all []verified) *table.Table {
	var rows [][]any
	for i := range all {
		v := &all[i]
		row := []any{v.Bundle, v.OK, v.Problem, nil, nil, nil, nil, int64(v.Left)}
		if v.Verification == nil {
			rows = append(rows, row)
			continue
		}
		row[4], row[5], row[6] = int64(v.Files), v.Bytes, v.Manifest
		rows = append(rows, row)
		for _, p := range v.Problems {
			rows = append(rows, []any{v.Bundle, false, p.What, p.Path, nil, nil, nil, nil})
		}
	}
	return tableOf(rows, "bundle", "ok", "problem", "path", "files", "bytes", "manifest_sha256", "ledger_open")
}

func (v *verified) print(w io.Writer) {
	if v.Verification == nil {
		visible.Fprintf(w, "%s: not verified: %s\n", v.Bundle, v.Problem)
		return
	}
	word := "every file matches the manifest"
	if !v.OK {
		word = count(len(v.Problems), "file") + " not as in the manifest"
	}
	visible.Fprintf(w, "%s: %s (%s, %s; manifest sha256:%s)\n", v.Bundle, word, count(v.Files, "file"),
		units.Bytes(float64(v.Bytes)),
		v.Manifest)
	for _, p := range v.Problems {
		name := p.Path
		if p.What == bundle.FileUnread {
			name = p.Text // it says why
		}
		visible.Fprintf(w, "  %s: %s\n", p.What, name)
	}
	if v.Left > 0 {
		visible.Fprintf(w, "  note: %s in the ledger not marked as removed: run cnsbench cleanup\n", count(v.Left, "object"))
	}
}
