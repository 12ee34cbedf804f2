package local

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/agent/volumeprobe"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// probe makes the first write on the volume, which leaves nothing behind, or the first read if the volume has
// data, is a block device or is read-only.
func (v *volume) probe(ctx context.Context, hasData bool) error {
	name, do := op.FirstWrite, volumeprobe.FirstWrite
	if hasData || v.block() || v.readOnly {
		name, do = op.FirstRead, volumeprobe.FirstRead
	}
	path, err := filepath.EvalSymlinks(v.targetPath)
	if err == nil {
		err = do(path)
	}
	if err != nil {
		return &engine.Error{Code: "IO", Message: fmt.Sprintf("%s on %s: %v", name, v.object.Name, err), Err: err}
	}
	mark(ctx, name)
	return nil
}
