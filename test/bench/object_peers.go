package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/test/servers"
)

// objectWorking is the maximum resident memory of the client in bytes.
const objectWorking = 96e6

// objectPeers compares CNSBench's client with other tools on one null server in one run.
func objectPeers(ctx context.Context, e *env, t *table) error {
	tools := append([]tool{ours}, e.peers(ctx, t)...)
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return err
	}
	defer func() { warn(stop()) }()
	length := pick(e, 8*time.Second, 2*time.Second)
	for _, method := range []string{methodGet, methodPut} {
		var arms []arm[metered]
		for _, k := range tools {
			arms = append(arms, arm[metered]{k.name, func(ctx context.Context) (metered, error) {
				return k.meter(ctx, e, address, method, length)
			}})
		}
		got, err := interleave(ctx, e, 8, arms...)
		if err == nil {
			err = t.smallObjects(method+" of 4 KiB: ", map[string]float64{methodGet: 25, methodPut: 35}[method], tools, got)
		}
		if err != nil {
			return err
		}
	}
	t.note("All tools meet one null server, which counts the requests; CPU is that of the client's process, over the "+
		"middle nine tenths of its requests. Client and server share %d CPUs, so requests a second are no ceiling of the "+
		"client's.", runtime.NumCPU())
	t.note("wrk asks for one key and neither signs nor checks anything; ours signs each request (version 4), takes " +
		"one of 10⁹ keys, checks every byte of a GET and makes a PUT of bytes that cannot be compressed; warp signs.")
	return nil
}

// smallObjects adds CPU, rate and memory of each tool, of which the first is CNSBench: limit is that of its CPU time of
// an operation in µs, signed and recorded, with GETs verified.
func (t *table) smallObjects(what string, limit float64, tools []tool, got [][]metered) error {
	micros := each(got, func(of []metered) []float64 { return each(of, func(m metered) float64 { return m.micros }) })
	for i, k := range tools {
		n := 0
		for _, m := range got[i] {
			n += m.requests
		}
		t.info(n, what+k.name+" per second", "%s", spread("%.0f", each(got[i],
			func(m metered) float64 { return m.perSecond })))
		working := most(got[i], func(m metered) float64 { return m.working })
		memory := what + "resident memory of " + k.name + " after its start; with its start; without pages of files"
		value := mb(working) + "; " + mb(most(got[i], func(m metered) float64 { return m.rss })) + "; " +
			mb(most(got[i], func(m metered) float64 { return m.own }))
		cpu := what + "CPU of " + k.name + " per operation in µs"
		if i == 0 {
			t.add(n, cpu, spread("%.1f", micros[i]), fmt.Sprintf("all ≤ %g", limit), slices.Max(micros[i]) <= limit)
			t.add(len(got[i]), memory, value, "≤ "+mb(objectWorking)+" after its start", working <= objectWorking)
			continue
		}
		t.info(n, cpu, "%s", spread("%.1f", micros[i]))
		t.info(len(got[i]), memory, "%s", value)
		most := map[string]float64{"wrk": 1.2, "warp": 1.0 / 3}[k.name]
		if err := t.ratio(what+"CPU of CNSBench / of "+k.name, micros[i], micros[0], 0, most); err != nil {
			return err
		}
	}
	return nil
}

// objectMemory measures the memory of CNSBench's client over ten minutes of GETs and PUTs of 4 KiB with 10⁹ keys.
func objectMemory(ctx context.Context, e *env, t *table) (err error) {
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return err
	}
	defer func() { warn(stop()) }()
	l := e.load(nullStore(address), "", fmt.Sprintf(get4K, 80)+fmt.Sprintf(put4K, 20),
		pick(e, 10*time.Minute, time.Minute))
	return e.objectRun(ctx, l, func(p *process, b *bundle.Bundle) error {
		_, read, err := figuresOf(b, "read")
		if err != nil || len(p.usages) < 100 {
			return fmt.Errorf("the client was watched %d times: %w", len(p.usages), err)
		}
		rss := each(p.usages, rssOf)
		peak := p.peak()
		t.add(len(rss), "resident memory at most; without pages of files, such as the program", mb(peak)+"; "+
			mb(most(p.usages, ownOf)), "≤ "+mb(objectWorking), peak <= objectWorking)
		steady := rss[len(rss)/20 : len(rss)*19/20] // without start and end
		tenth := len(steady) / 10
		early, late := stats.Median(steady[:tenth]), stats.Median(steady[len(steady)-tenth:])
		t.add(len(steady), "last tenth / first tenth, medians", fmt.Sprintf("× %.3f (%s, %s)", late/early, mb(early),
			mb(late)), "≤ × 1.1", late <= 1.1*early)
		t.info(int(read.N()), "GETs in that time", "%d", read.N())
		return nil
	})
}

// realServer is an object server that stores data.
type realServer struct {
	name, access, secret string
	start                func(ctx context.Context, dir string) (address string, stop func(), err error)
}

var realServers = []realServer{
	{"versitygw", servers.VersityKey, servers.VersitySecret, startVersity},
	{"Swift's s3api", servers.SwiftUser, servers.SwiftPassword, startSwift},
}

func startVersity(ctx context.Context, dir string) (string, func(), error) {
	s, err := servers.StartVersity(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	return s.Address, s.Stop, nil
}

func startSwift(ctx context.Context, dir string) (string, func(), error) {
	s, err := servers.StartSwift(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	return s.Address, s.Stop, nil
}

const (
	largeSize = 64000 // 64 KB
	prepared  = "objects=r(1,256);sizes=c(64)KB"
	get64K    = `<operation type="read" ratio="100" config="containers=c(1);objects=u(1,256);hashCheck=true"/>`
	// Each write creates a new object, as warp does, so that no write waits for another.
	put64K = `<operation type="write" ratio="100" config="containers=c(1);objects=s(1,1000000000);sizes=c(64)KB"/>`
)

// objectReal compares CNSBench's client with warp on real servers. Each run has a server of its own, with no data.
func objectReal(ctx context.Context, e *env, t *table) error {
	program := e.warp(ctx, t)
	if program == "" {
		return nil
	}
	for _, s := range realServers {
		for _, method := range []string{methodGet, methodPut} {
			r := &realRuns{e: e, server: s, method: method, length: pick(e, 8*time.Second, 4*time.Second), program: program,
				responses: hist.New()}
			if err := r.compare(ctx, t); errors.Is(err, servers.ErrMissing) {
				t.note("**%s of %s is not measured**: %v.", method, s.name, err)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// realRuns are runs of CNSBench and of warp at servers of one kind.
type realRuns struct {
	e         *env
	server    realServer
	method    string
	length    time.Duration
	program   string          // warp
	responses *hist.Histogram // of all runs of CNSBench, exact
}

func (r *realRuns) compare(ctx context.Context, t *table) error {
	got, err := interleave(ctx, r.e, 12, arm[warpFigures]{"warp", r.warp}, arm[warpFigures]{"CNSBench", r.ours})
	if err != nil {
		return err
	}
	of := func(i int, f func(warpFigures) float64) []float64 { return each(got[i], f) }
	perSecond := func(w warpFigures) float64 { return w.perSecond }
	what := fmt.Sprintf("%s of 64 KB, %s, %d workers: ", r.method, r.server.name, objectWorkers)
	p50, _ := r.responses.Quantile(0.5)
	p99, _ := r.responses.Quantile(0.99)
	t.info(int(r.responses.N()), what+"CNSBench: per second; p50, p99, exact", "%s; %s, %s", spread("%.0f",
		of(1, perSecond)), ms(p50), ms(p99))
	t.info(len(got[0]), what+"warp: per second; p50, p99 as it says them, medians of its runs", "%s; %.3f ms, %.3f ms",
		spread("%.0f", of(0, perSecond)), stats.Median(of(0, func(w warpFigures) float64 { return w.p50 })),
		stats.Median(of(0, func(w warpFigures) float64 { return w.p99 })))
	return t.ratio(what+"per second, CNSBench / warp", of(0, perSecond), of(1, perSecond), 1, 0)
}

func (r *realRuns) warp(ctx context.Context) (w warpFigures, err error) {
	err = r.atServer(ctx, func(address string) error {
		c, after, err := warp(r.program, largeSize, r.server.access, r.server.secret).command(ctx, r.e, address, r.method,
			r.length)
		if err != nil {
			return err
		}
		defer after()
		p, err := execute(c, nil)
		if err == nil {
			w, err = parseWarp(p.output, r.method)
		}
		return err
	})
	return w, err
}

func (r *realRuns) ours(ctx context.Context) (w warpFigures, err error) {
	operation, name := get64K, "read"
	if r.method == methodPut {
		operation, name = put64K, "write"
	}
	err = r.atServer(ctx, func(address string) error {
		l := r.e.load(s3Store(address, r.server.access, r.server.secret), prepared, operation, r.length)
		return r.e.objectRun(ctx, l, func(_ *process, b *bundle.Bundle) error {
			perSecond, h, err := figuresOf(b, name)
			if w.perSecond = perSecond; err != nil {
				return err
			}
			return r.responses.Merge(h)
		})
	})
	return w, err
}

// atServer calls do with the address of a new server, which keeps its data on the disk under test.
func (r *realRuns) atServer(ctx context.Context, do func(address string) error) (err error) {
	dir, err := os.MkdirTemp(r.e.storage, "server-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	address, stop, err := r.server.start(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	return do(address)
}
