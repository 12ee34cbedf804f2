package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// check has a process of this program read a volume that no workload uses, and keeps its report as an output of the op.
// A volume that is not attached is, for that time.
func (e *Engine) check(ctx context.Context, r engine.Request, tr *op.Trace) (err error) {
	v := e.findVolume(r.Target.Name)
	switch {
	case v == nil:
		return notFoundError(r.Target)
	case v.object.Owner != "":
		return &engine.Error{Code: "FailedPrecondition",
			Message: fmt.Sprintf("volume %s belongs to workload %s, which checks it itself", v.object.Name, v.object.Owner)}
	}
	tr.On(e.node, v.object.Name)
	ctx, done, err := v.ops.start(ctx, v.object.Name)
	if err != nil {
		return err
	}
	defer done()
	if !v.is(&v.published) {
		defer func() { err = errors.Join(err, v.detach(context.WithoutCancel(ctx))) }()
		if err := v.attach(ctx); err != nil {
			return err
		}
	}
	path, err := filepath.EvalSymlinks(v.targetPath)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer // a report is bounded, and so are its errors
	cmd := exec.CommandContext(ctx, e.program, "integrity", "check", path)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return &engine.Error{Code: "IO", Message: fmt.Sprintf("check of %s: %v: %s", v.object.Name, err,
			bytes.TrimSpace(stderr.Bytes())), Err: errors.Join(err, context.Cause(ctx))}
	}
	mark(ctx, op.Checked)
	e.session.Sink.Output(r.Name, engine.CheckOutput, engine.CheckFile, stdout.Bytes())
	return nil
}
