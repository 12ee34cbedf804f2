package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	c, dir, err := e.objectCommand(ctx, e.load(nullStore(address), "", fmt.Sprintf(operation, 100),
		length))
	return c, func() { warn(os.RemoveAll(dir)) }, err
}}

// peers finds wrk and warp. Missing tools are listed in the table.
func (e *env) peers(ctx context.Context, t *table) (found []tool) {
	if path, err := exec.LookPath("wrk"); err != nil {
		t.note("**wrk is missing**, so nothing is compared with it: make object-peers.")
	} else {
		found = append(found, wrk(path))
		out, _ := exec.CommandContext(ctx, path, "-v").CombinedOutput() // it exits with 1
		line, _, _ := strings.Cut(string(out), "\n")
		t.note("wrk: %s", line)
	}
	if path := e.warp(ctx, t); path != "" {
		found = append(found, warp(path, 4096, "bench", "benchbench"))
	}
	return found
}

// warp returns the path of warp, and notes the version of its module, which go version -m prints as the main module or
// as a dependency.
func (e *env) warp(ctx context.Context, t *table) string {
	path := filepath.Join(e.root, "out", "peers", "warp")
	out, err := exec.CommandContext(ctx, "go", "version", "-m", path).Output()
	if err != nil {
		t.note("**warp is missing**, so nothing is compared with it: make object-peers.")
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "github.com/minio/warp" && (f[0] == "mod" || f[0] == "dep") {
			t.note("warp: module %s %s", f[1], f[2])
		}
	}
	return path
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
		dir, err := os.MkdirTemp(e.tmp, "warp-")
		args := []string{strings.ToLower(method), "--json", "--no-color", "--host", u.Host, "--access-key", access,
			"--secret-key", secret, "--region", "us-east-1",
			"--lookup", "path", "--disable-sha256-payload", // as CNSBench does, and required by Swift
			"--bucket", "warp-bench", "--obj.size", fmt.Sprint(size), "--concurrent", fmt.Sprint(objectWorkers),
			"--duration", fmt.Sprintf("%ds", int(length.Seconds())+1), "--benchdata", filepath.Join(dir, "data")}
		if method == methodGet {
			args = append(args, "--objects", "256")
		}
		return interruptible(ctx, path, args...), func() { warn(os.RemoveAll(dir)) }, err
	}}
}

// metered has the results of a tool's run over the middle nine tenths of its requests, as counted
// by the server.
type metered struct {
	micros    float64 // CPU time of the process for each request
	perSecond float64
	requests  int
	rss, own  float64 // bytes, maxima of the whole run; own: without pages of files
	working   float64 // bytes, maximum of rss over the middle
}

// meter runs a tool and samples the client and the server.
func (k tool) meter(ctx context.Context, e *env, address, method string, length time.Duration) (m metered, err error) {
	c, after, err := k.command(ctx, e, address, method, length)
	if err != nil {
		return m, err
	}
	defer after()
	before, err := requests(ctx, address, method)
	if err != nil {
		return m, err
	}
	p, err := execute(c, func(u *usage) {
		n, err := requests(ctx, address, method)
		warn(err) // the tool still has to end
		u.requests = n - before
	})
	if err != nil {
		return m, err
	}
	all := slices.DeleteFunc(p.usages, func(u usage) bool { return u.requests < 0 })
	if len(all) == 0 {
		return m, errors.New("the run was too short to be watched")
	}
	total := all[len(all)-1].requests
	middle := slices.DeleteFunc(slices.Clone(all), func(u usage) bool {
		return u.requests*20 < total || u.requests*20 > total*19
	})
	if total == 0 || len(middle) < 2 {
		return m, fmt.Errorf("the server counted %d requests in %d looks: too few", total, len(all))
	}
	a, b := middle[0], middle[len(middle)-1]
	n := float64(b.requests - a.requests)
	return metered{micros: float64(b.cpu-a.cpu) / 1e3 / n, perSecond: n / b.at.Sub(a.at).Seconds(), requests: int(n),
		rss: most(all, rssOf), own: most(all, ownOf), working: most(middle, rssOf)}, nil
}

// requests returns the number of requests that the null server has answered; -1 with an error.
func requests(ctx context.Context, address, method string) (int64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address+nullserver.CountsPath, nil)
	if err != nil {
		return -1, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return -1, err
	}
	defer r.Body.Close()
	var n nullserver.Counts
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		return -1, err
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
	if o.Requests == 0 || o.Errors > 0 {
		return w, fmt.Errorf("warp did %.0f of %s; %d failed: %s", o.Requests, method, o.Errors,
			strings.Join(o.First[:min(1, len(o.First))], ""))
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
	w.p50 /= max(1, n)
	return w, nil
}
