package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnsbench/cnsbench/internal/object/capacity"
	"github.com/cnsbench/cnsbench/test/servers"
)

// objectScaling runs the suites after COSBench's paper with shorter windows, each on a real server.
func objectScaling(ctx context.Context, e *env) (table, error) {
	var t table
	for _, s := range []struct {
		suite, name string
		start       func(ctx context.Context, dir string) (environment []string, stop func(), err error)
	}{
		{"read-scaling", "versitygw", func(ctx context.Context, dir string) ([]string, func(), error) {
			s, err := servers.StartVersity(ctx, dir)
			if err != nil {
				return nil, nil, err
			}
			return []string{"S3_ENDPOINT=" + s.Address, "AWS_ACCESS_KEY_ID=" + servers.VersityKey,
				"AWS_SECRET_ACCESS_KEY=" + servers.VersitySecret}, s.Stop, nil
		}},
		{"read-scaling-swift", "Swift", func(ctx context.Context, dir string) ([]string, func(), error) {
			s, err := servers.StartSwift(ctx, dir)
			if err != nil {
				return nil, nil, err
			}
			return []string{"SWIFT_AUTH_URL=" + s.AuthURL, "SWIFT_USER=" + servers.SwiftUser,
				"OS_PASSWORD=" + servers.SwiftPassword}, s.Stop, nil
		}},
	} {
		dir, err := e.dataDir()
		if err != nil {
			return t, err
		}
		err = e.scaling(ctx, &t, s.suite, s.name, dir, s.start)
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return t, fmt.Errorf("%s: %w", s.suite, err)
		}
	}
	return t, nil
}

// scaling runs one suite on one server.
func (e *env) scaling(ctx context.Context, t *table, suite, name, dir string,
	start func(context.Context, string) ([]string, func(), error)) error {
	environment, stop, err := start(ctx, dir)
	if errors.Is(err, servers.ErrMissing) {
		t.note("**suite:%s is not measured**: %v.", suite, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer stop()
	bundle := filepath.Join(e.tmp, suite)
	c := interruptible(ctx, e.cnsbench(), "object", "run", "suite:"+suite, "--window", pick(e, "5s", "1s"), "--warm-up",
		"1s", "--repetitions", pick(e, "5", "1"), "--out", bundle)
	c.Env = append(os.Environ(), environment...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cnsbench: %w: %s", err, lastLines(string(out), 12))
	}
	text, err := os.ReadFile(filepath.Join(bundle, "raw", "cnsbench", "scale-workers", "scale-workers.json"))
	if err != nil {
		return err
	}
	var found capacity.Scaling
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	for i := range found.Rows {
		r := &found.Rows[i]
		t.add(fmt.Sprintf("%s: %d workers: reads per second; p50, p99", name, r.Workers),
			spread(r.PerSecond)+"; "+quantiles(r.Response),
			"none fails", metIf(r.Failed == 0), int(r.Response.N()))
	}
	t.info(len(found.Rows), name+": what the tool says", "%s", found.Knee)
	return nil
}
