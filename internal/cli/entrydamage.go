package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/entrycheck"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// damage has the parsers read the outputs of the whole run again, cut in half and empty.
func (t *entryTest) damage(ctx context.Context, p *plan.Plan, files []plan.File) error {
	wrote := slices.ContainsFunc(t.facts.Full.Raw, func(f bundle.RawFile) bool { return f.Bytes > 0 && t.isOutput(f) })
	if !wrote || !slices.ContainsFunc(t.facts.Outputs, func(o plan.Output) bool { return o.Parser != "" }) {
		return nil
	}
	var err error
	half := func(size int64) int64 { return size / 2 }
	if t.facts.Half, err = t.reparse(ctx, "half", half, p, files); err != nil {
		return err
	}
	t.facts.Empty, err = t.reparse(ctx, "empty", func(int64) int64 { return 0 }, p, files)
	return err
}

// isOutput reports whether a parser reads a file.
func (t *entryTest) isOutput(f bundle.RawFile) bool {
	return slices.ContainsFunc(t.facts.Outputs, func(o plan.Output) bool { return entrycheck.Matches(o, f) })
}

// reparse runs the parsers on cut outputs; length is that of a file of the given size. The result is a bundle, too.
func (t *entryTest) reparse(ctx context.Context, name string, length func(int64) int64, p *plan.Plan,
	files []plan.File) (*entrycheck.Run, error) {
	raw := filepath.Join(t.dir, name+"-output")
	for _, f := range t.facts.Full.Raw {
		if strings.HasSuffix(f.File, ".parsed") {
			continue
		}
		size := f.Bytes
		if t.isOutput(f) {
			size = length(size)
		}
		if err := copyPart(f.Path, filepath.Join(raw, f.Instance, f.Container, f.File), size); err != nil {
			return nil, failed(err)
		}
	}
	f := t.runFlags(name)
	options, err := f.localOptions(p)
	if err != nil {
		return nil, failed(err)
	}
	r, err := f.begin(t.streams, nil, p, files, "")
	if err != nil {
		return nil, failed(err)
	}
	within, cancel := context.WithTimeoutCause(ctx, t.flags.timeout, fmt.Errorf("it took longer than %v", t.flags.timeout))
	defer cancel()
	within, stop := untilInterrupt(within)
	defer stop()
	flags, broken := r.parseAgain(within, local.New(options), raw, t.facts.Full)
	err = errors.Join(r.writer.Close(func(b *bundle.Run) { b.State, b.Validity = bundle.Complete, flags }),
		r.unregister(nil))
	if err != nil {
		return nil, failed(err)
	}
	if len(t.signals) > 0 {
		return nil, &exit{exitInterrupted, errors.New("interrupted")}
	}
	again, err := entrycheck.Read(f.Out)
	if err != nil {
		return nil, failed(err)
	}
	again.Err = broken
	left, err := leftOf(f.RunID, t.flags.storage)
	again.Left = append(again.Left, left...)
	return again, failed(err)
}

// parseAgain parses the outputs below raw on an engine without volumes.
func (r *running) parseAgain(ctx context.Context, e engine.Engine, raw string, of *entrycheck.Run) (
	flags []bundle.Flag, err error) {
	scratch, err := r.scratch()
	if err != nil {
		return nil, err
	}
	session := engine.Session{RunID: r.id, Identity: r.identity, Clock: r.clock, Ledger: r.ledger, Dir: scratch,
		Sink: engine.DiscardSink{}}
	defer func() {
		err = errors.Join(err, e.Teardown(context.WithoutCancel(ctx), session.Ledger), e.Close())
	}()
	if err := e.Open(ctx, session); err != nil {
		return nil, err
	}
	return run.Reparse(ctx, run.Config{RunID: r.id, Plan: r.plan, Engine: e, Clock: r.clock, Session: session,
		Record: r.recorder(nil), RawDir: raw, Observer: silent{}, Parsers: parsers()}, of.Instance.Starts), nil
}

// copyPart copies the first bytes of a file.
func copyPart(from, to string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text[:min(size, int64(len(text)))], 0o644)
}
