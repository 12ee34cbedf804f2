package study

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// failureFile says in the directory of a trial that its run failed before it had a bundle.
const failureFile = "failure.json"

// maxReason limits the recorded error, in bytes.
const maxReason = 4 << 10

// failure is the content of failureFile.
type failure struct {
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error"`
}

// failed reports whether the run of a trial ended by itself and failed. study run repeats it.
func (d *Dir) failed(t Trial) bool {
	b, err := d.open(t)
	if err == nil {
		return b.Complete && b.Run.State == bundle.Failed
	}
	return d.failedEarly(t)
}

// failedEarly reports whether the run of a trial failed before it had a bundle.
func (d *Dir) failedEarly(t Trial) bool {
	return bounded.Dir(d.Path).Has(path.Join(t.Name, failureFile))
}

// Failure returns the recorded reason why the run of a trial failed before it had a bundle; "" if there is none.
func (d *Dir) Failure(t Trial) string {
	if !d.failedEarly(t) {
		return ""
	}
	text, err := bounded.Dir(d.Path).ReadFile(path.Join(t.Name, failureFile), 8*maxReason)
	var f failure
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return err.Error()
	}
	return f.Error
}

// whyFailed is why the run of a trial failed, with or without a bundle.
func (d *Dir) whyFailed(t Trial) string {
	b, err := d.open(t)
	if err != nil {
		return d.Failure(t)
	}
	return cmp.Or(b.Run.Reason, fmt.Sprintf("exit code %d", b.Run.ExitCode))
}

// recordFailure keeps the reason why the run of a trial ended without a bundle. A run that has a bundle, also an
// incomplete one, leaves it there.
func (d *Dir) recordFailure(t Trial, code int, reason error) error {
	if _, err := bundle.ReadRun(d.Of(t)); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	words := reason.Error()
	text, err := json.Marshal(failure{code, words[:min(len(words), maxReason)]})
	if err == nil {
		err = bounded.Dir(d.Path).WriteFile(path.Join(t.Name, failureFile), text)
	}
	if err != nil {
		return fmt.Errorf("record that trial %s failed: %w", d.Of(t), err)
	}
	return nil
}
