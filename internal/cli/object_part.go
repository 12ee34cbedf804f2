package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/agent/rendezvous"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/opfile"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/version"
)

// newObjectPart is the program of the library's workload object.
func newObjectPart() *cobra.Command {
	var order, out string
	c := &cobra.Command{
		Use: "part", Short: "Run one instance's shard of an object workload (the program of workload: object)",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := runShard(cmd.Context(), order, out); err != nil {
				return failed(err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&order, "order", "", "file with the workload, from the Benchmark's plan")
	c.Flags().StringVarP(&out, "out", "o", "", "file for the results")
	outIsFile(c)
	return c
}

func runShard(ctx context.Context, order, out string) (err error) {
	text, err := os.ReadFile(order)
	if err != nil {
		return err
	}
	todo, err := coordinator.ParseShardOrder(text)
	if err != nil {
		return fmt.Errorf("%s: %w", order, err)
	}
	c := coordinator.ShardConfig{Order: todo, Version: version.Version, Clock: op.NewClock(), Sleep: run.PreciseSleep}
	if err := shardOf(&c); err != nil {
		return err
	}
	if err := checkOpenFiles(&todo.Workload, c.Parts); err != nil {
		return err
	}
	company, err := rendezvous.FromEnv()
	if err != nil {
		return err
	}
	if company != nil {
		c.Rendezvous = company
	}
	opener := backend.Opener{Clock: c.Clock, Getenv: os.Getenv}
	c.Open = opener.Store
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	c.Out = file
	if todo.LogOperations {
		dir := filepath.Dir(out)
		c.Log = opfile.New(c.Clock, func(name string) (io.WriteCloser, error) {
			return os.Create(filepath.Join(dir, name))
		})
	}
	soft, hard, stop := signalled(ctx, func() error { return nil }, nil, nil)
	defer stop()
	return coordinator.RunShard(soft, hard, c)
}

// shardOf reads which shard this is: the instances of one trigger share a workload.
func shardOf(c *coordinator.ShardConfig) error {
	number := func(name string, least int) (n int, err error) {
		if n, err = strconv.Atoi(os.Getenv(name)); err != nil || n < least {
			return 0, fmt.Errorf("invalid %s=%q: want a number; runs start this command", name, os.Getenv(name))
		}
		return n, nil
	}
	i, err := number("INSTANCE_NUM", 0)
	if err != nil {
		return err
	}
	if c.Parts, err = number("NUM_INSTANCES", 1); err != nil {
		return err
	}
	c.Index, c.Group = i%c.Parts, fmt.Sprintf("%s/%d", os.Getenv("ACTION_NAME"), i/c.Parts)
	return nil
}
