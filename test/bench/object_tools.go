package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/nullserver"
)

// Names of the operations that are compared.
const (
	methodGet = "GET"
	methodPut = "PUT"
)

// tool is a load generator: CNSBench or a peer. command returns the command of one run, and a
// function that removes what the run leaves.
type tool struct {
	name    string
	command func(ctx context.Context, e *env, address, method string, length time.Duration) (c *exec.Cmd, after func(),
		err error)
}

var ours = tool{"CNSBench", func(ctx context.Context, e *env, address, method string, length time.Duration) (*exec.Cmd,
	func(), error) {
	operation := get4K
	if method == methodPut {
		operation = put4K
	}
	c, dir, err := e.objectCommand(ctx, s3Store(address, "bench", "benchbench"), "", fmt.Sprintf(operation, 100),
		length)
	return c, func() { warn(os.RemoveAll(dir)) }, err
}}

// objectPeers finds wrk and warp. Missing tools are listed in the table.
func (e *env) objectPeers(ctx context.Context, t *table) (found []tool) {
	if path, err := exec.LookPath("wrk"); err != nil {
		t.note("**wrk is missing**, so nothing is compared with it: make object-peers.")
	} else {
		found = append(found, wrk(path))
		t.note("wrk: %s", versionOf(ctx, path, "-v"))
	}
	if path := e.warpPath(); path == "" {
		t.note("**warp is missing**, so nothing is compared with it: make object-peers.")
	} else {
		found = append(found, warp(path, 4096, "bench", "benchbench"))
		t.note("warp: module github.com/minio/warp %s", moduleVersion(ctx, path))
	}
	return found
}

func (e *env) warpPath() string {
	path := filepath.Join(e.root, "out", "peers", "warp")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// versionOf returns the first line of a program's output, at any exit code.
func versionOf(ctx context.Context, program string, flag string) string {
	out, _ := exec.CommandContext(ctx, program, flag).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// moduleVersion returns the version of warp's module, which go version -m prints as the main module
// or as a dependency.
func moduleVersion(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, "go", "version", "-m", program).Output()
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "github.com/minio/warp" &&
			(f[0] == "mod" || f[0] == "dep") {
			return f[2]
		}
	}
	return "?"
}

// wrk requests one key and neither signs nor checks anything. It shows the cost of a plain loop in
// C.
func wrk(path string) tool {
	return tool{"wrk", func(ctx context.Context, e *env, address, method string, length time.Duration) (*exec.Cmd,
		func(), error) {
		args := []string{"-t1", fmt.Sprintf("-c%d", objectWorkers), fmt.Sprintf("-d%ds", int(length.Seconds())+1)}
		if method == methodPut {
			script := filepath.Join(e.tmp, "put.lua")
			if err := os.WriteFile(script, []byte("wrk.method = \"PUT\"\nwrk.body = string.rep(\"x\", 4096)\n"),
				0o644); err != nil {
				return nil, nil, err
			}
			args = append(args, "-s", script)
		}
		return interruptible(ctx, path, append(args, address+"/mycontainers1/myobjects1")...), func() {}, nil
	}}
}

// warp signs requests with an SDK as CNSBench does, and does not hash the payload either.
func warp(path string, size int, access, secret string) tool {
	return tool{"warp", func(ctx context.Context, e *env, address, method string, length time.Duration) (*exec.Cmd,
		func(), error) {
		u, err := url.Parse(address)
		if err != nil {
			return nil, nil, err
		}
		data := filepath.Join(e.tmp, "warp")
		args := []string{strings.ToLower(method), "--json", "--no-color", "--host", u.Host, "--access-key", access,
			"--secret-key", secret, "--region", "us-east-1",
			"--lookup", "path", "--disable-sha256-payload", // as CNSBench does, and required by Swift
			"--bucket", "warp-bench", "--obj.size", fmt.Sprint(size), "--concurrent", fmt.Sprint(objectWorkers),
			"--duration", fmt.Sprintf("%ds", int(length.Seconds())+1), "--benchdata", data}
		if method == methodGet {
			args = append(args, "--objects", "256")
		}
		return interruptible(ctx, path, args...), func() {
			warn(errors.Join(removeIfThere(data+".json.zst"),
				removeIfThere(data+".csv.zst")))
		}, nil
	}}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// metered has the results of a tool's run over the middle nine tenths of its requests, as counted
// by the server.
type metered struct {
	perOp     time.Duration // CPU time of the process
	perSecond float64
	requests  int64
	rss, own  int64 // bytes, maxima of the whole run; own: without pages of files
	working   int64 // bytes, maximum of rss over the middle
}

// sampled is the state at one instant.
type sampled struct {
	usage
	requests int64
}

// meter runs a command and samples the client and the server every 50 ms.
func meter(ctx context.Context, c *exec.Cmd, address, method string) (metered, error) {
	before, err := requests(ctx, address, method)
	if err != nil {
		return metered{}, err
	}
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		return metered{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var all []sampled
	for {
		select {
		case err := <-ended:
			if err != nil {
				return metered{}, fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, lastLines(output.String(), 4))
			}
			return judge(all)
		case <-tick.C:
			u, ok := usageOf(c.Process.Pid)
			n, err := requests(ctx, address, method)
			if err != nil {
				warn(err) // the tool still has to end
			}
			if ok && err == nil {
				all = append(all, sampled{u, n - before})
			}
		}
	}
}

// judge computes the figures of the middle of the run.
func judge(all []sampled) (m metered, err error) {
	if len(all) == 0 {
		return m, errors.New("the run was too short to be watched")
	}
	for _, s := range all {
		m.rss, m.own = max(m.rss, s.rss), max(m.own, s.own)
	}
	total := all[len(all)-1].requests
	from := slices.IndexFunc(all, func(s sampled) bool { return s.requests*20 >= total })
	to := from
	for i, s := range all {
		if s.requests*20 <= total*19 {
			to = i
		}
	}
	if total == 0 || to <= from {
		return m, fmt.Errorf("the server counted %d requests in %d looks: too few", total, len(all))
	}
	for _, s := range all[from : to+1] {
		m.working = max(m.working, s.rss)
	}
	a, b := all[from], all[to]
	m.requests = b.requests - a.requests
	m.perOp = (b.cpu - a.cpu) / time.Duration(m.requests)
	m.perSecond = float64(m.requests) / b.at.Sub(a.at).Seconds()
	return m, nil
}

// requests returns the number of requests that the null server has answered.
func requests(ctx context.Context, address, method string) (int64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address+nullserver.CountsPath, nil)
	if err != nil {
		return 0, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err
	}
	var n nullserver.Counts
	if err := json.Unmarshal(b, &n); err != nil {
		return 0, err
	}
	if method == methodPut {
		return n.Put, nil
	}
	return n.Get, nil
}

// warpFigures has the results that warp prints.
type warpFigures struct{ perSecond, p50, p99 float64 } // p50 and p99 in ms

// parseWarp parses the JSON that warp prints between other lines.
func parseWarp(output []byte, method string) (w warpFigures, err error) {
	i, j := bytes.Index(output, []byte("\n{")), bytes.LastIndexByte(output, '}')
	if i < 0 || j < i {
		return w, fmt.Errorf("warp printed no result: %s", lastLines(string(output), 4))
	}
	var r struct {
		ByOp map[string]struct {
			Requests   float64   `json:"total_requests"`
			Errors     int       `json:"total_errors"`
			First      []string  `json:"first_errors"`
			Start      time.Time `json:"start_time"`
			End        time.Time `json:"end_time"`
			Throughput struct {
				Millis     float64 `json:"measure_duration_millis"`
				Operations float64 `json:"ops"`
			} `json:"throughput"`
			Clients map[string][]struct {
				Single struct {
					Median   float64 `json:"dur_median_millis"`
					P99      float64 `json:"dur_99_millis"`
					Requests float64 `json:"requests"`
				} `json:"single_sized_requests"`
			} `json:"requests_by_client"`
		} `json:"by_op_type"`
	}
	if err := json.Unmarshal(output[i+1:j+1], &r); err != nil {
		return w, fmt.Errorf("warp's result: %w", err)
	}
	o := r.ByOp[method]
	if o.Errors > 0 {
		return w, fmt.Errorf("%d of warp's operations failed: %s", o.Errors,
			strings.Join(o.First[:min(1, len(o.First))], ""))
	}
	if o.Requests == 0 {
		return w, fmt.Errorf("warp did no %s", method)
	}
	// The run was too short for warp's segments.
	if w.perSecond = o.Throughput.Operations / o.Throughput.Millis * 1e3; o.Throughput.Millis == 0 {
		w.perSecond = o.Requests / o.End.Sub(o.Start).Seconds()
	}
	n := 0.0
	for _, segments := range o.Clients {
		for _, s := range segments {
			w.p50 += s.Single.Median * s.Single.Requests
			w.p99 = math.Max(w.p99, s.Single.P99)
			n += s.Single.Requests
		}
	}
	if n > 0 {
		w.p50 /= n
	}
	return w, nil
}
