package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	words "github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// falsePositives is how many of 20 tests at α = 0.05 may be below it: the probability of more is 0.26 %.
const falsePositives = 4

// studyAA runs studies whose two variants have the same settings, and counts how many of their comparisons say that the
// two differ.
func studyAA(ctx context.Context, e *env) (table, error) {
	var t table
	studies, blocks := pick(e, 20, 2), pick(e, 10, 6)
	raw, verdicts, least := 0, 0, 1.0
	for i := range studies {
		r, err := e.aaStudy(ctx, i, blocks)
		if err != nil {
			return t, err
		}
		if len(r.Comparisons) != 1 || r.Comparisons[0].P == nil {
			return t, fmt.Errorf("study %d: want one comparison with a p, got %d: %v", i, len(r.Comparisons), r.Sentences)
		}
		c := r.Comparisons[0]
		least = min(least, *c.P)
		if *c.P < 0.05 {
			raw++
		}
		switch c.Verdict {
		case words.Better, words.Worse, words.Different:
			verdicts++
		}
	}
	for _, f := range []struct {
		what string
		n    int
	}{{"p < 0.05 without a difference", raw}, {"verdict of a difference without one", verdicts}} {
		if e.quick {
			t.info(studies, f.what, "%d", f.n)
			continue
		}
		t.add(f.what, fmt.Sprintf("%d of %d studies", f.n, studies), fmt.Sprintf("≤ %d", falsePositives),
			metIf(f.n <= falsePositives), studies)
	}
	t.note("Each has %d blocks of both variants in random order; the response is the median time to create a volume. The "+
		"least p is %.3g.", blocks, least)
	return t, nil
}

// aaStudy runs one study and compares its variants.
func (e *env) aaStudy(ctx context.Context, i, blocks int) (*compare.Result, error) {
	dir, err := os.MkdirTemp(e.tmp, "study-")
	if err != nil {
		return nil, err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: same}
spec:
  seed: %d
  blocks: %d
  comparedFactor: variant
  variants:
    - {name: a, set: {spec.runtime: 400ms}}
    - {name: b, set: {spec.runtime: 400ms}}
  metrics:
    - {response: p50(volumes)}
  benchmark:
    actions:
      - name: volumes
        rateName: loop
        createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
    rates:
      - name: loop
        concurrencySpec: {parallelism: 1}
`, e.seed+uint64(i), blocks), 0o644); err != nil {
		return nil, err
	}
	return e.study(ctx, filepath.Join(dir, "study"), file, nil)
}

// study runs a study into dir and compares its variants.
func (e *env) study(ctx context.Context, dir, file string, flags []string, compared ...string) (
	*compare.Result, error) {
	storage := e.storage
	if storage == "" {
		storage = filepath.Join(e.tmp, "storage")
	}
	args := append([]string{"study", "run", file, "--out", dir, "--storage-dir", storage}, flags...)
	if text, err := interruptible(ctx, e.cnsbench(), args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("study %s: %w: %s", file, err, lastLines(string(text), 5))
	}
	args = append([]string{"compare", dir, "--output", "json"}, compared...)
	text, err := exec.CommandContext(ctx, e.cnsbench(), args...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, lastLines(string(failed.Stderr), 5))
		}
		return nil, fmt.Errorf("compare study %s: %w", file, err)
	}
	r := &compare.Result{}
	return r, json.Unmarshal(text, r)
}
