package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/test/servers"
)

// realServer is an object server that stores data.
type realServer struct {
	name, access, secret string
	start                func(ctx context.Context, dir string) (address string, stop func(), err error)
}

func (e *env) realServers() []realServer {
	return []realServer{
		{"versitygw", servers.VersityKey, servers.VersitySecret,
			func(ctx context.Context, dir string) (string, func(), error) {
				s, err := servers.StartVersity(ctx, dir)
				if err != nil {
					return "", nil, err
				}
				return s.Address, s.Stop, nil
			}},
		{"Swift's s3api", servers.SwiftUser, servers.SwiftPassword,
			func(ctx context.Context, dir string) (string, func(), error) {
				s, err := servers.StartSwift(ctx, dir)
				if err != nil {
					return "", nil, err
				}
				return s.Address, s.Stop, nil
			}},
	}
}

// dataDir creates a directory for a server's data, on the disk under test if there is one.
func (e *env) dataDir() (string, error) {
	if e.storage != "" {
		return os.MkdirTemp(e.storage, "server-")
	}
	return os.MkdirTemp(e.tmp, "server-")
}

const (
	largeSize = 64000 // 64 KB
	prepared  = "objects=r(1,256);sizes=c(64)KB"
	get64K    = `<operation type="read" ratio="%d" config="containers=c(1);objects=u(1,256);hashCheck=true"/>`
	// Each write creates a new object, as warp does, so that no write waits for another.
	put64K = `<operation type="write" ratio="%d" config="containers=c(1);oprefix=%s;objects=s(1,1000000000);sizes=c(64)KB"/>`
)

// newNames returns the prefix of the objects of one run.
func newNames() string { return fmt.Sprintf("new-%d-", time.Now().UnixNano()) }

// objectReal compares CNSBench's client with warp on real servers in one run.
func objectReal(ctx context.Context, e *env) (table, error) {
	var t table
	if path := e.warpPath(); path == "" {
		t.note("**warp is missing**, so nothing is compared with it: make object-peers.")
	} else {
		t.note("warp: module github.com/minio/warp %s", moduleVersion(ctx, path))
	}
	for _, s := range e.realServers() {
		for _, method := range []string{methodGet, methodPut} {
			if err := e.atServer(ctx, &t, s, method); err != nil {
				return t, fmt.Errorf("%s: %s: %w", s.name, method, err)
			}
		}
	}
	t.note("Each pair of runs, one of each tool in turns, has a server of its own, which keeps its data on %s.",
		filesystemOf(e.storage))
	return t, nil
}

// atServer compares one operation, as far as warp supports it.
func (e *env) atServer(ctx context.Context, t *table, s realServer, method string) error {
	c := comparison{method: method, length: pick(e, 8*time.Second, 4*time.Second), ours: tally{response: hist.New()}}
	what := fmt.Sprintf("%s of 64 KB, %s, %d workers", method, s.name, objectWorkers)
	for i := range max(5, e.blocks) + 1 { // an interval needs five
		err := e.block(ctx, s, &c, i)
		if errors.Is(err, servers.ErrMissing) {
			t.note("**%s is not measured**: %v.", what, err)
			return nil
		}
		if err != nil {
			return err
		}
		if i == 0 { // discarded
			c.ours, c.warp = tally{response: hist.New()}, nil
		}
	}
	return c.show(t, what)
}

// comparison has the figures of both tools for one operation, with one value per block.
type comparison struct {
	method string
	length time.Duration
	ours   tally
	warp   []warpFigures
}

// block runs both tools in turn on a new server.
func (e *env) block(ctx context.Context, s realServer, c *comparison, i int) error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	address, stop, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	for turn := range 2 {
		if turn == i%2 {
			err = e.largerOurs(ctx, s3Store(address, s.access, s.secret), c.method, c.length, &c.ours)
		} else {
			err = e.largerWarp(ctx, address, s, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) show(t *table, what string) error {
	c.ours.show(t, what+": CNSBench")
	if len(c.warp) == 0 {
		return nil
	}
	speed := each(c.warp, func(w warpFigures) float64 { return w.perSecond })
	t.info(len(c.warp), what+": warp: per second", "%s", spread(speed))
	t.info(len(c.warp), what+": warp: p50, p99 as it says them, medians of its runs", "%.3f ms, %.3f ms",
		stats.Median(each(c.warp, func(w warpFigures) float64 { return w.p50 })), stats.Median(each(c.warp,
			func(w warpFigures) float64 { return w.p99 })))
	ratio, err := pairedRatio(speed, c.ours.perSecond)
	if err != nil {
		return err
	}
	t.add(what+": per second, CNSBench / warp", ratio.times(), "90 % interval ≥ × 1", metIf(ratio.low >= 1), len(speed))
	return nil
}

func (e *env) largerOurs(ctx context.Context, store, method string, length time.Duration, into *tally) error {
	operation, name := fmt.Sprintf(get64K, 100), "read"
	if method == methodPut {
		operation, name = fmt.Sprintf(put64K, 100, newNames()), "write"
	}
	dir, err := e.ourRun(ctx, store, prepared, operation, length)
	if err != nil {
		return err
	}
	return errors.Join(into.add(dir, name), os.RemoveAll(dir))
}

// ourRun runs cnsbench to its end.
func (e *env) ourRun(ctx context.Context, store, prepared, operations string, length time.Duration) (dir string,
	err error) {
	c, dir, err := e.objectCommand(ctx, store, prepared, operations, length)
	if err != nil {
		return "", err
	}
	if out, err := c.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cnsbench: %w: %s", err, lastLines(string(out), 6)), os.RemoveAll(dir))
	}
	return dir, nil
}

// largerWarp runs warp on a real server if warp is installed.
func (e *env) largerWarp(ctx context.Context, address string, s realServer, into *comparison) error {
	path := e.warpPath()
	if path == "" {
		return nil
	}
	c, after, err := warp(path, largeSize, s.access, s.secret).command(ctx, e, address, into.method, into.length)
	if err != nil {
		return err
	}
	defer after()
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("warp: %w: %s", err, lastLines(out.String()+stderr.String(), 4))
	}
	w, err := parseWarp(out.Bytes(), into.method)
	into.warp = append(into.warp, w)
	return err
}

func quantiles(h *hist.Histogram) string {
	p50, _ := h.Quantile(0.5)
	p99, _ := h.Quantile(0.99)
	return ms(p50) + ", " + ms(p99)
}

// objectProtocols runs one workload on one Swift server by S3 and by Swift.
func objectProtocols(ctx context.Context, e *env) (table, error) {
	var t table
	return t, e.twoProtocols(ctx, &t)
}

func (e *env) twoProtocols(ctx context.Context, t *table) error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	s, err := servers.StartSwift(ctx, dir)
	if errors.Is(err, servers.ErrMissing) {
		t.note("**S3 and Swift of one server are not compared**: %v.", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Stop()
	stores := []struct{ name, store string }{
		{"S3", s3Store(s.Address, servers.SwiftUser, servers.SwiftPassword)},
		{"Swift", fmt.Sprintf(`<auth type="tempauth" config="auth_url=%s;username=%s;password=%s"/><storage type="swift"/>`, s.AuthURL, servers.SwiftUser, servers.SwiftPassword)},
	}
	tallies := map[string]*tally{}
	for _, order := range mirrored(len(stores), e.rounds(), e.seed) {
		for _, i := range order {
			run, err := e.ourRun(ctx, stores[i].store, prepared,
				fmt.Sprintf(get64K, 80)+fmt.Sprintf(put64K, 20, newNames()), pick(e, 8*time.Second, 4*time.Second))
			if err != nil {
				return fmt.Errorf("%s: %w", stores[i].name, err)
			}
			for _, o := range mixed {
				if tallies[stores[i].name+o] == nil {
					tallies[stores[i].name+o] = &tally{response: hist.New()}
				}
				err = errors.Join(err, tallies[stores[i].name+o].add(run, o))
			}
			if err = errors.Join(err, os.RemoveAll(run)); err != nil {
				return err
			}
		}
	}
	for _, o := range mixed {
		what := fmt.Sprintf("one Swift server, 80 %% reads and 20 %% writes of 64 KB, %d workers: %s", objectWorkers, o)
		for _, s := range stores {
			tallies[s.name+o].show(t, what+" by "+s.name)
		}
		ratio, err := pairedRatio(tallies["S3"+o].perSecond, tallies["Swift"+o].perSecond)
		if err != nil {
			return err
		}
		t.info(e.rounds(), what+"s per second, Swift / S3", "%s", ratio.times())
	}
	return nil
}

// mixed lists the operations of twoProtocols by their names in a bundle.
var mixed = []string{"read", "write"}

// tally collects the figures of one operation over several runs.
type tally struct {
	perSecond []float64
	response  *hist.Histogram // of all runs, exact
}

func (k *tally) add(dir, operation string) error {
	f, err := figuresOf(dir, operation)
	if err != nil {
		return err
	}
	k.perSecond = append(k.perSecond, f.perSecond)
	return k.response.Merge(f.response)
}

func (k *tally) show(t *table, what string) {
	n := int(k.response.N())
	t.info(n, what+": per second", "%s", spread(k.perSecond))
	t.info(n, what+": p50, p99 of all responses, exact", "%s", quantiles(k.response))
}

// spread formats the median of the runs with their minimum and maximum.
func spread(values []float64) string {
	return fmt.Sprintf("%.0f (%.0f to %.0f)", stats.Median(values), slices.Min(values), slices.Max(values))
}
