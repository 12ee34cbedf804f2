package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

// objectTruth compares the bundle of an object workload with the delays that the null server
// injected and logged.
func objectTruth(ctx context.Context, e *env) (table, error) {
	var t table
	for _, d := range []injected{
		{"GET constant", "GET", "25ms", func(float64) float64 { return 25 }},
		// Φ⁻¹ is √2·erf⁻¹(2q − 1).
		{"GET lognormal", "GET", "lognormal(25ms,0.3)",
			func(q float64) float64 { return 25 * math.Exp(0.3*math.Sqrt2*math.Erfinv(2*q-1)) }},
		{"PUT exponential", "PUT", "15ms+exp(15ms)", func(q float64) float64 { return 15 - 15*math.Log(1-q) }},
	} {
		if err := e.delays(ctx, &t, d); err != nil {
			return t, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	for _, workers := range []int{2000, 16} {
		if err := e.objectStall(ctx, &t, workers); err != nil {
			return t, fmt.Errorf("%s: %w", stallOf(workers), err)
		}
	}
	t.note("The server's times are from the last byte of a request to the hand-over of the answer; the client's service has the network and two wake-ups more.")
	return t, nil
}

func stallOf(workers int) string { return fmt.Sprintf("stall, %d workers", workers) }

// injected is a distribution of the server's delay with its quantiles in ms.
type injected struct {
	name, verb, text string
	quantile         func(q float64) float64
}

// truths has the histograms of one or several runs and those of the server's log.
type truths struct{ service, response, log *hist.Histogram }

func (o *truths) merge(p truths) error {
	return errors.Join(o.service.Merge(p.service), o.response.Merge(p.response), o.log.Merge(p.log))
}

// delays injects a distribution and compares it with the bundles.
func (e *env) delays(ctx context.Context, t *table, d injected) error {
	operation, metric := get4K, "read"
	if d.verb == "PUT" {
		operation, metric = put4K, "write"
	}
	runs, still, err := stillest(ctx, pick(e, 9, 2), pick(e, 3, 1), func(i int) (o truths, err error) {
		// The first operation of each worker connects. These are less than one in a hundred.
		b, truth, err := e.open(ctx, objectLoop{workers: 128, rate: "poisson(1000)", length: 20 * time.Second,
			operation: operation, seed: e.seed + uint64(i)},
			"--delay", d.verb+"="+d.text)
		if err != nil {
			return o, err
		}
		if o.log = truth.verbs[d.verb]; o.log == nil {
			return o, fmt.Errorf("the server's log has no %s", d.verb)
		}
		service, err := mainOf(b, metric+".service")
		if err != nil {
			return o, err
		}
		response, err := mainOf(b, metric)
		o.service, o.response = service.Hist, response.Hist
		return o, err
	})
	if err != nil {
		return err
	}
	all := runs[0]
	for _, o := range runs[1:] {
		if err := all.merge(o); err != nil {
			return err
		}
	}
	t.info(len(runs), d.name+": a CPU of this machine stood still in these runs", "%s", still)
	for _, view := range []struct {
		name string
		got  *hist.Histogram
	}{{"service", all.service}, {"response", all.response}} {
		for _, q := range []float64{0.5, 0.9, 0.99} {
			g, _ := view.got.Quantile(q)
			w, _ := all.log.Quantile(q)
			ratio, n := float64(g)/float64(w), int(view.got.N())
			t.add(fmt.Sprintf("%s: p%g of the %s", d.name, 100*q, view.name),
				fmt.Sprintf("%s; log %s (%s)", ms(g), ms(w), percent(ratio)), "± 2 %",
				metIf(math.Abs(ratio-1) <= 0.02 && view.got.N() == all.log.N()), n)
			if view.name == "service" {
				of := float64(g) / 1e6 / d.quantile(q)
				t.add(fmt.Sprintf("%s: p%g of the service against %s", d.name, 100*q, d.text),
					fmt.Sprintf("%s of %.3f ms", percent(of), d.quantile(q)), "± 2 %", metIf(math.Abs(of-1) <= 0.02), n)
			}
		}
	}
	return nil
}

// Length of the stall and the constant rate during it. With a constant rate the due time of each
// operation is known.
const (
	objectStallRate = 500
	objectStallFor  = 2 * time.Second
)

// weighed has the result of a run with a stall and the sum of response times in a simulated queue.
type weighed struct {
	service, response *hist.Histogram
	due               int
	want              float64 // ns
}

// objectStall stalls the server under an open loop. The sum of response times must equal that of a
// simulated queue, even if there are too few workers to begin all due operations.
func (e *env) objectStall(ctx context.Context, t *table, workers int) error {
	runs, still, err := stillest(ctx, pick(e, 9, 2), pick(e, 3, 1),
		func(i int) (weighed, error) { return e.stalled(ctx, workers, e.seed+uint64(i)) })
	if err != nil {
		return err
	}
	all := runs[0]
	for _, o := range runs[1:] {
		all.due, all.want = all.due+o.due, all.want+o.want
		if err := errors.Join(all.service.Merge(o.service), all.response.Merge(o.response)); err != nil {
			return err
		}
	}
	n, name := int(all.response.N()), stallOf(workers)
	t.info(len(runs), name+": a CPU of this machine stood still in these runs", "%s", still)
	weight := float64(all.response.Sum()) / all.want
	t.add(name+": Σ of the responses", fmt.Sprintf("%.1f s; simulated %.1f s (%s)", float64(all.response.Sum())/1e9,
		all.want/1e9, percent(weight)), "± 2 %",
		metIf(math.Abs(weight-1) <= 0.02 && n == all.due), n)
	t.info(n, name+": λT²/2 of each run, what the rate alone predicts of the stall", "%.1f s",
		float64(len(runs))*objectStallRate*objectStallFor.Seconds()*objectStallFor.Seconds()/2)
	t.info(n, name+": Σ of their service", "%.1f s, %.1f %% of the responses", float64(all.service.Sum())/1e9,
		100*float64(all.service.Sum())/float64(all.response.Sum()))
	longest := float64(all.response.Max()) / float64(objectStallFor)
	t.add(name+": longest response", ms(all.response.Max()), "≥ 2 s", metIf(longest >= 1), n)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		r, _ := all.response.Quantile(q)
		s, _ := all.service.Quantile(q)
		t.info(n, fmt.Sprintf("%s: p%g", name, 100*q), "response %s, service alone %s", ms(r), ms(s))
	}
	return nil
}

// stalled does one run with a stall.
func (e *env) stalled(ctx context.Context, workers int, seed uint64) (o weighed, err error) {
	const length, at = 10 * time.Second, 4 * time.Second
	b, truth, err := e.open(ctx, objectLoop{workers: workers, rate: fmt.Sprintf("constant(%d)", objectStallRate),
		length: length, operation: get4K, seed: seed},
		"--delay", "GET=2ms", "--stall-at", at.String(), "--stall-for", objectStallFor.String())
	if err != nil {
		return o, err
	}
	responses, err := mainOf(b, "read")
	if err != nil {
		return o, err
	}
	services, err := mainOf(b, "read.service")
	if err != nil {
		return o, err
	}
	o.response, o.service = responses.Hist, services.Hist
	from := op.Time(truth.firstUnixNs + int64(at) - b.Run.Clock.Start.UnixNano()) // on the run's clock
	var due []op.Time
	for k := 1; ; k++ {
		d := responses.From + op.Time(k)*op.Time(time.Second)/objectStallRate
		if d >= responses.From+op.Time(length) {
			break
		}
		due = append(due, d)
	}
	base, _ := o.service.Quantile(0.25)
	for _, r := range simulate(due, workers, base, from, from+op.Time(objectStallFor)) {
		o.want += float64(r)
	}
	o.due = len(due)
	return o, nil
}

// objectLoop is an open loop without ramps, so that client and server count the same requests.
type objectLoop struct {
	workers         int
	rate, operation string
	length          time.Duration
	seed            uint64
}

// serverTruth has the log of the null server.
type serverTruth struct {
	firstUnixNs int64
	verbs       map[string]*hist.Histogram
}

// open runs a loop on a null server with the given flags.
func (e *env) open(ctx context.Context, l objectLoop, flags ...string) (*bundle.Bundle, *serverTruth, error) {
	dir, err := os.MkdirTemp(e.tmp, "object-truth-")
	if err != nil {
		return nil, nil, err
	}
	log := filepath.Join(dir, "truth.jsonl")
	address, stop, err := e.nullServer(ctx, append(flags, "--truth", log, "--seed", strconv.FormatUint(l.seed, 10))...)
	if err != nil {
		return nil, nil, err
	}
	file, at := filepath.Join(dir, "workload.xml"), filepath.Join(dir, "bundle")
	text := fmt.Sprintf(`<workload name="truth">%s<workflow><workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>
<workstage name="main"><work name="main" workers="%d" runtime="%d" rate="%s">%s</work></workstage></workflow></workload>`,
		s3Store(address, "bench", "bench"), l.workers, int(l.length.Seconds()), l.rate, fmt.Sprintf(l.operation, 100))
	err = os.WriteFile(file, []byte(text), 0o600)
	if err == nil {
		var out []byte
		if out, err = interruptible(ctx, e.cnsbench(), "object", "run", file, "--out", at, "--seed",
			strconv.FormatUint(l.seed, 10)).CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return nil, nil, err
	}
	truth, err := readServerTruth(log)
	if err != nil {
		return nil, nil, err
	}
	b, err := bundle.Open(at)
	return b, truth, err
}

func readServerTruth(path string) (*serverTruth, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	truth := &serverTruth{verbs: map[string]*hist.Histogram{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l struct {
			Event, Verb string
			FirstUnixNs int64
			Whole       *hist.Histogram
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if l.Event == "server" {
			truth.firstUnixNs = l.FirstUnixNs
		} else {
			truth.verbs[l.Verb] = l.Whole
		}
	}
	return truth, lines.Err()
}
