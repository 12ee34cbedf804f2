package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// liveReaders measures the lateness of 200 ops/s of null with 100 connections that receive the events of the run's live
// page, and with none. `cnsbench serve` runs in both arms. The order of the arms is mirrored from round to round.
func liveReaders(ctx context.Context, e *env) (table, error) {
	var t table
	server, err := e.startWeb(ctx)
	if err != nil {
		return t, err
	}
	defer server.stop()
	readers, seconds := pick(e, 100, 20), pick(e, 60, 5)
	arms := []int{0, readers}
	late := make([][]int64, len(arms))
	cpu := make([]time.Duration, len(arms))
	events, rounds := 0, pick(e, 4, 2)
	for round, order := range mirrored(len(arms), rounds, e.seed) {
		for _, arm := range order {
			before, _ := usageOf(server.cmd.Process.Pid)
			trial, n, err := e.besideReaders(ctx, server, arms[arm], seconds, e.seed+uint64(round))
			if err != nil {
				return t, fmt.Errorf("round %d, %d readers: %w", round+1, arms[arm], err)
			}
			after, _ := usageOf(server.cmd.Process.Pid)
			cpu[arm] += after.cpu - before.cpu
			events += n
			ops, err := trial.ops("touch")
			if err != nil {
				return t, err
			}
			for _, o := range ops {
				ns, _ := o.Lateness()
				late[arm] = append(late[arm], ns)
			}
			trial.remove()
		}
	}
	base, got := quantile(late[0], 0.99), quantile(late[1], 0.99)
	t.add(fmt.Sprintf("p99 of lateness, %d readers", readers), fmt.Sprintf("%s; none %s (%+.3f ms)", ms(got), ms(base),
		float64(got-base)/1e6), "≤ none + 0.5 ms", metIf(got-base <= 500_000), len(late[1]))
	for _, q := range []float64{0.5, 0.999} {
		t.info(len(late[1]), fmt.Sprintf("p%g of lateness, %d readers", 100*q, readers), "%s; none %s",
			ms(quantile(late[1], q)), ms(quantile(late[0], q)))
	}
	t.info(events, "events that each reader received per second of the runs", "%.2f",
		float64(events)/float64(rounds*readers*seconds))
	of := float64(rounds * seconds)
	t.info(rounds, "CPUs that the server used", "%.3f; without readers %.3f", cpu[1].Seconds()/of, cpu[0].Seconds()/of)
	t.note("The readers are in one process of the same machine, whose CPU time is part of the disturbance.")
	return t, nil
}

// besideReaders runs for some seconds with readers of its events, and returns how many events they received.
func (e *env) besideReaders(ctx context.Context, server *webServer, readers, seconds int, seed uint64) (*trial, int,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type received struct {
		events int
		err    error
	}
	read := make(chan received, 1)
	go func() {
		n, err := server.readAll(ctx, readers)
		read <- received{n, err}
	}()
	trial, err := e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-live-readers}
spec:
  seed: %d
  actions:
    - {name: volume, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: touch, rateName: steady, modifySpec: {actionName: volume, parameters: {iops: "100"}}}
  rates: [{name: steady, duration: %ds, poissonRateSpec: {perSecond: 200}}]
`, seed, seconds))
	if err != nil {
		return nil, 0, err
	}
	got := <-read
	// The streams begin with the run, and have an event for each second.
	if want := readers * (seconds - 2); got.err == nil && got.events < want {
		got.err = fmt.Errorf("%d readers received %d events: want at least %d", readers, got.events, want)
	}
	return trial, got.events, got.err
}

// webServer is a `cnsbench serve` of the bundles of a bench.
type webServer struct {
	cmd *exec.Cmd
	url string
}

// startWeb starts a server, which runs until stop is called.
func (e *env) startWeb(ctx context.Context) (*webServer, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), e.cnsbench(), "serve", e.tmp, "--listen", "127.0.0.1:0",
		"--auth", "none")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &webServer{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	at := strings.Index(line, "http://")
	if err != nil || at < 0 {
		s.stop()
		return nil, fmt.Errorf("cnsbench serve did not start: %s", lastLines(line+said.String(), 3))
	}
	s.url = strings.TrimSuffix(strings.TrimSpace(line[at:]), "/")
	return s, nil
}

func (s *webServer) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // its exit status is that of the signal
}

// readAll waits for a run in progress, and receives its events on so many connections until it has ended. It returns
// the number of events.
func (s *webServer) readAll(ctx context.Context, readers int) (int, error) {
	if readers == 0 {
		return 0, nil
	}
	id, err := s.live(ctx)
	if err != nil {
		return 0, err
	}
	counts, errs := make([]int, readers), make([]error, readers)
	client := &http.Client{Transport: &http.Transport{}}
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() { counts[i], errs[i] = s.read(ctx, client, id) })
	}
	all.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, errors.Join(errs...)
}

// live returns the ID of the run in progress, when there is one.
func (s *webServer) live(ctx context.Context) (string, error) {
	for {
		var list struct {
			Entries []struct{ ID, State string } `json:"entries"`
		}
		answer, err := s.get(ctx, http.DefaultClient, "/api/v1/runs")
		if err != nil {
			return "", err
		}
		err = json.NewDecoder(answer.Body).Decode(&list)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return "", err
		}
		for _, run := range list.Entries {
			if run.State == "running" {
				return run.ID, nil
			}
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func (s *webServer) get(ctx context.Context, client *http.Client, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("GET %s: %s", path, answer.Status), answer.Body.Close())
	}
	return answer, err
}

// read receives the events of a run until the one that says that it has ended.
func (s *webServer) read(ctx context.Context, client *http.Client, id string) (n int, err error) {
	answer, err := s.get(ctx, client, "/api/v1/runs/"+url.PathEscape(id)+"/events")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 4<<20)
	ended := false
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte("data: ")) {
			n++
			ended = bytes.Contains(lines.Bytes(), []byte(`"phase":"ended"`))
		}
	}
	if err := lines.Err(); err != nil || ended {
		return n, err
	}
	return n, errors.New("the stream ended before the run")
}
