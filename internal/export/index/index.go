// Package index makes an SQLite database of many bundles, for queries over runs. It is
// derived: it can be made again at any time. schema.sql has the tables, docs/reference/export.md
// explains them with examples.
package index

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Format is the version of the tables.
const Format = 4 // trials and levels since 2, searches since 3, stalls since 4

//go:embed schema.sql
var schema string

// Source is a bundle to index. Study is the path of its study, Trial its place in that; empty and nil: none.
type Source struct {
	Path, Study string
	Trial       *Trial
}

// Trial is the place of a run in a study. Its numbers count from 1; Block is within the occasion, Repetition in the
// whole study. AA says that it is of an A/A arm.
type Trial struct {
	Occasion, Block, Repetition int
	AA                          bool
	Levels                      []Level
}

// Level is a value of a factor; Drawn: the factor is a distribution.
type Level struct {
	Factor, Value string
	Drawn         bool
}

// Searches are the results of searches whose steps are runs of their own, by the directory of these.
type Searches map[string]*summary.FindMax

// Result counts what an index has.
type Result struct {
	Runs, Ops int64
	// Unreadable has the reason of each bundle that is not in the index, by path.
	Unreadable map[string]string
}

// Make makes an index of bundles at path, which must not exist. A bundle that cannot be read
// is a row of the table unreadable, and nothing of it is in the others.
func Make(ctx context.Context, path string, sources []Source, searches Searches, broken map[string]string) (r Result,
	err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // pragmas are of a connection
	// A crash may damage the file: it is made beside its place and renamed at the end. OFF would be faster than
	// MEMORY, but leaves undefined what a rollback does, which add needs.
	for _, text := range []string{"PRAGMA journal_mode = MEMORY", "PRAGMA synchronous = OFF", schema} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return r, err
		}
	}
	x := &builder{db: db, result: Result{Unreadable: map[string]string{}}}
	if err := x.meta(ctx); err != nil {
		return r, err
	}
	for p, why := range broken {
		if err := x.unreadable(ctx, p, why); err != nil {
			return r, err
		}
	}
	for _, s := range sources {
		if err := x.add(ctx, s); err != nil {
			return r, err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(searches)) {
		if err := search(ctx, db, dir, nil, searches[dir]); err != nil {
			return r, err
		}
	}
	_, err = db.ExecContext(ctx, "CREATE INDEX spans_of_op ON spans (run, op); "+
		"CREATE INDEX figures_by_metric ON figures (metric, statistic); ANALYZE")
	return x.result, err
}

// builder fills an index.
type builder struct {
	db     *sql.DB
	result Result
}

func (x *builder) meta(ctx context.Context) error {
	_, err := x.db.ExecContext(ctx, "INSERT INTO meta VALUES ('format', ?), ('cnsbench', ?), ('made', ?)",
		strconv.Itoa(Format), version.Version, time.Now().UTC().Format(time.RFC3339))
	return err
}

func (x *builder) unreadable(ctx context.Context, path, why string) error {
	x.result.Unreadable[path] = why
	_, err := x.db.ExecContext(ctx, "INSERT INTO unreadable VALUES (?, ?)", path, why)
	return err
}

// readError is an error of reading a bundle, as opposed to one of the database.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// add adds a bundle whole or, if it cannot be read, not at all.
func (x *builder) add(ctx context.Context, s Source) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	n, err := (&filler{ctx: ctx, tx: tx, run: x.result.Runs + 1}).bundle(s)
	var bad *readError
	switch {
	case errors.As(err, &bad):
		if err := tx.Rollback(); err != nil {
			return err
		}
		return x.unreadable(ctx, s.Path, bad.Error())
	case err != nil:
		return errors.Join(err, tx.Rollback())
	}
	x.result.Runs++
	x.result.Ops += n
	return tx.Commit()
}

// search adds the result of a search. run is nil if each step is a run.
func search(ctx context.Context, to interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, path string, run any, m *summary.FindMax) error {
	_, err := to.ExecContext(ctx, "INSERT INTO searches VALUES (?, ?, ?, ?, ?, ?, ?)", path, run, m.Stage, m.Condition,
		m.Verdict, m.PerSecond, m.AbovePerSecond)
	return err
}

// filler adds one bundle in a transaction.
type filler struct {
	ctx context.Context
	tx  *sql.Tx
	run int64
}

// bundle adds all of a bundle and returns the number of its ops.
func (f *filler) bundle(s Source) (ops int64, err error) {
	b, err := bundle.Open(s.Path)
	if err != nil {
		return 0, &readError{err}
	}
	if b.Live {
		return 0, &readError{errors.New("the run is in progress")}
	}
	sum, err := summary.Make(b)
	if err != nil {
		return 0, &readError{err}
	}
	if err := f.runRow(s, b, sum); err != nil {
		return 0, err
	}
	if err := f.trial(s.Trial); err != nil {
		return 0, err
	}
	if err := f.judgements(sum); err != nil {
		return 0, err
	}
	if err := f.figures(sum); err != nil {
		return 0, err
	}
	for row, err := range table.StallRows(sum) {
		if err == nil {
			err = f.exec("INSERT INTO stalls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", append([]any{f.run}, row...)...)
		}
		if err != nil {
			return 0, err
		}
	}
	if sum.FindMax != nil {
		if err := search(f.ctx, f.tx, s.Path, f.run, sum.FindMax); err != nil {
			return 0, err
		}
	}
	return f.ops(b)
}

func (f *filler) exec(statement string, values ...any) error {
	_, err := f.tx.ExecContext(f.ctx, statement, values...)
	return err
}

func (f *filler) runRow(s Source, b *bundle.Bundle, sum *summary.Summary) error {
	r := &b.Run
	var host, kernel any
	if e, err := b.Environment(); err == nil { // none if the run ended early
		host, kernel = e.Hostname, e.Kernel.Release
	}
	var study any
	if s.Study != "" {
		study = s.Study
	}
	spec := string(r.Spec)
	if spec == "" {
		spec = "null"
	}
	return f.exec("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", f.run, s.Path, study,
		r.ID, r.Name, r.Engine, sum.Badge(), r.Reason, r.ExitCode, r.Clock.Start.UTC().Format(time.RFC3339Nano),
		known(r.BarrierAt), known(r.EndedAt), strconv.FormatUint(r.Seed, 10), r.Versions["cnsbench"],
		host, kernel, spec)
}

// trial adds the place of the run in its study, if it is a trial.
func (f *filler) trial(t *Trial) error {
	if t == nil {
		return nil
	}
	if err := f.exec("INSERT INTO trials VALUES (?, ?, ?, ?, ?)", f.run, t.Occasion, t.Block, t.Repetition,
		t.AA); err != nil {
		return err
	}
	for _, l := range t.Levels {
		if err := f.exec("INSERT INTO levels VALUES (?, ?, ?, ?)", f.run, l.Factor, l.Value, l.Drawn); err != nil {
			return err
		}
	}
	return nil
}

func known(t op.Time) any {
	if !t.Known() {
		return nil
	}
	return int64(t)
}

func (f *filler) judgements(sum *summary.Summary) error {
	for _, v := range sum.Verdicts {
		observed, err := json.Marshal(v.Observed)
		if err != nil {
			return err
		}
		if err := f.exec("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?)", f.run, v.Name, v.Expr, string(v.Status),
			string(observed), v.Message); err != nil {
			return err
		}
	}
	for _, flag := range sum.Validity {
		if err := f.exec("INSERT INTO flags VALUES (?, ?, ?, ?)", f.run, flag.Name, flag.Severity,
			flag.Evidence); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) figures(sum *summary.Summary) error {
	insert, err := f.tx.PrepareContext(f.ctx, "INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, g := range table.Figures(sum) {
		if _, err := insert.ExecContext(f.ctx, f.run, g.Scope, g.Subject, g.Phase, g.Metric, g.Statistic, g.Value,
			g.Unit, g.Bound, g.N, g.Low, g.High, g.Confidence); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) ops(b *bundle.Bundle) (n int64, err error) {
	insert, err := f.tx.PrepareContext(f.ctx,
		"INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return 0, err
	}
	defer insert.Close()
	spans, err := f.tx.PrepareContext(f.ctx, "INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return 0, err
	}
	defer spans.Close()
	latency := func(ns int64, ok bool) any {
		if !ok {
			return nil
		}
		return ns
	}
	for o, err := range b.Ops() {
		if err != nil {
			return n, &readError{err}
		}
		n++
		if _, err := insert.ExecContext(f.ctx, f.run, o.ID, o.Episode, o.Action, o.Instance, string(o.Kind), o.Target,
			o.Object, o.Node, string(o.Outcome), o.Code, o.Message, o.Attempts, known(o.Intended), known(o.Started),
			known(o.Ended), latency(o.Response()), latency(o.Service()), latency(o.Lateness())); err != nil {
			return n, fmt.Errorf("%s: op %d: %w", b.Dir, o.ID, err)
		}
		for _, s := range span.Of(&o) {
			if _, err := spans.ExecContext(f.ctx, f.run, o.ID, s.Name, s.From, s.Volume, int64(s.At), s.Ns,
				s.Err); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
