package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/integrity"
	"github.com/cnsbench/cnsbench/internal/integrity/volume"
)

// newIntegrity has the programs of the library's workload integrity and of checkSpec.
func newIntegrity(s *streams) *cobra.Command {
	c := &cobra.Command{
		Use: "integrity", Short: "Write and check blocks that describe themselves (the programs of workload: integrity)",
		Hidden: true,
	}
	c.AddCommand(newIntegrityWriter("fill", "Write each block once", (*volume.Writer).Fill),
		newIntegrityWriter("write", "Check what is there, continue, and check again", (*volume.Writer).Run),
		newIntegrityCheck(s))
	return c
}

func newIntegrityWriter(use, short string, do func(*volume.Writer, context.Context) error) *cobra.Command {
	var w volume.Writer
	var name string
	var size int64
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Stream.ID = integrity.IDOf(name)
			w.Stream.Blocks = size / int64(max(w.Stream.BlockSize, 1))
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return failed(do(&w, ctx))
		},
	}
	fl := c.Flags()
	fl.StringVar(&w.Path, "path", "", "directory on the volume, or its device")
	fl.StringVarP(&w.Out, "out", "o", "", "directory of the output, not on the volume")
	fl.StringVar(&name, "name", "", "name of the writer, in each block")
	fl.Int64Var(&size, "size", 0, "bytes of all blocks")
	fl.IntVar(&w.Stream.BlockSize, "block-size", 0, "bytes of a block")
	fl.Int64Var(&w.Stream.SyncEvery, "sync-every", 0, "writes between two syncs")
	fl.Uint64Var(&w.Stream.Seed, "seed", 0, "seed of the order")
	fl.BoolVar(&w.Direct, "direct", false, "bypass the page cache")
	fl.BoolVar(&w.Fsync, "fsync", false, "fsync in place of fdatasync")
	fl.Float64Var(&w.Rate, "rate", 0, "writes per second at most; 0: no limit")
	fl.DurationVar(&w.Duration, "duration", time.Minute, "time of the writes")
	return c
}

func newIntegrityCheck(s *streams) *cobra.Command {
	return &cobra.Command{
		Use: "check PATH", Short: "Judge the blocks in a directory or on a device", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			report, err := volume.Check(ctx, args[0])
			if err != nil {
				return failed(err)
			}
			return json.NewEncoder(s.out).Encode(report)
		},
	}
}
