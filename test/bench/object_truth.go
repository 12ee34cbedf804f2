package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/record"
)

// objectTruth compares what an object workload's bundle says with what the null
// server was made to do, and logged.
func objectTruth(ctx context.Context, e *env) (table, error) {
	var t table
	for _, d := range []injected{
		{"GET constant", "GET", "25ms", func(float64) float64 { return 25 }},
		// Φ⁻¹ is √2·erf⁻¹(2q − 1).
		{"GET lognormal", "GET", "lognormal(25ms,0.3)", func(q float64) float64 { return 25 * math.Exp(0.3*math.Sqrt2*math.Erfinv(2*q-1)) }},
		{"PUT exponential", "PUT", "15ms+exp(15ms)", func(q float64) float64 { return 15 - 15*math.Log(1-q) }},
	} {
		if err := e.delays(ctx, &t, d); err != nil {
			return t, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	for _, workers := range []int{2000, 16} {
		if err := e.objectStall(ctx, &t, workers); err != nil {
			return t, fmt.Errorf("stall, %d workers: %w", workers, err)
		}
	}
	t.note("The server's times are from the last byte of a request to the hand-over of the answer; the client's service has the network and two wake-ups more.")
	return t, nil
}

// injected is a distribution of the server's time, with its quantiles in ms.
type injected struct {
	name, verb, text string
	quantile         func(q float64) float64
}

// delays injects a distribution and looks for it in the bundle.
func (e *env) delays(ctx context.Context, t *table, d injected) error {
	operation, metric := get4K, "read"
	if d.verb == "PUT" {
		operation, metric = put4K, "write"
	}
	b, truth, err := e.open(ctx, objectLoop{workers: 512, rate: "poisson(1000)", length: pick(e, 60*time.Second, 10*time.Second), operation: operation},
		"--delay", d.verb+"="+d.text)
	if err != nil {
		return err
	}
	want := truth.verbs[d.verb]
	if want == nil {
		return fmt.Errorf("the server's log has no %s", d.verb)
	}
	for _, view := range []string{".service", ""} {
		whole, err := mainOf(b, metric+view)
		if err != nil {
			return err
		}
		got := whole.Hist
		for _, q := range []float64{0.5, 0.9, 0.99} {
			g, _ := got.Quantile(q)
			w, _ := want.Quantile(q)
			name := "response"
			if view != "" {
				name = "service"
			}
			ratio, n := float64(g)/float64(w), int(got.N())
			t.add(fmt.Sprintf("%s: p%g of the %s", d.name, 100*q, name), fmt.Sprintf("%s; log %s (%s)", ms(g), ms(w), percent(ratio)), "± 2 %",
				metIf(math.Abs(ratio-1) <= 0.02 && got.N() == want.N()), n)
			if view != "" {
				of := float64(g) / 1e6 / d.quantile(q)
				t.add(fmt.Sprintf("%s: p%g of the service against %s", d.name, 100*q, d.text), fmt.Sprintf("%s of %.3f ms", percent(of), d.quantile(q)), "± 2 %", metIf(math.Abs(of-1) <= 0.02), n)
			}
		}
	}
	return nil
}

// The stall, and the even rate under it, with which each operation's due time is
// known.
const (
	objectStallRate = 500
	objectStallFor  = 2 * time.Second
)

// objectStall lets the server stall under an open loop: the responses must weigh
// what a simulated queue says, also where workers are too few to begin what is due.
func (e *env) objectStall(ctx context.Context, t *table, workers int) error {
	length, at := pick(e, 30*time.Second, 8*time.Second), pick(e, 10*time.Second, 3*time.Second)
	b, truth, err := e.open(ctx, objectLoop{workers: workers, rate: fmt.Sprintf("constant(%d)", objectStallRate), length: length, operation: get4K},
		"--delay", "GET=2ms", "--stall-at", at.String(), "--stall-for", objectStallFor.String())
	if err != nil {
		return err
	}
	responses, err := mainOf(b, "read")
	if err != nil {
		return err
	}
	services, err := mainOf(b, "read.service")
	if err != nil {
		return err
	}
	response, service, began := responses.Hist, services.Hist, responses.From
	from := op.Time(truth.firstUnixNs + int64(at) - b.Run.Clock.Start.UnixNano()) // of the run's clock
	var due []op.Time
	for k := 1; ; k++ {
		d := began + op.Time(k)*op.Time(time.Second)/objectStallRate
		if d >= began+op.Time(length) {
			break
		}
		due = append(due, d)
	}
	base, _ := service.Quantile(0.25)
	var want float64
	for _, r := range simulate(due, workers, base, from, from+op.Time(objectStallFor)) {
		want += float64(r)
	}
	n, name := int(response.N()), fmt.Sprintf("stall, %d workers", workers)
	weight := float64(response.Sum()) / want
	t.add(name+": Σ of the responses", fmt.Sprintf("%.1f s; simulated %.1f s (%s)", float64(response.Sum())/1e9, want/1e9, percent(weight)), "± 2 %",
		metIf(math.Abs(weight-1) <= 0.02 && n == len(due)), n)
	t.info(n, name+": λT²/2, what the rate alone predicts of the stall", "%.1f s", objectStallRate*objectStallFor.Seconds()*objectStallFor.Seconds()/2)
	t.info(n, name+": Σ of their service", "%.1f s, %.1f %% of the responses", float64(service.Sum())/1e9, 100*float64(service.Sum())/float64(response.Sum()))
	longest := float64(response.Max()) / float64(objectStallFor)
	t.add(name+": longest response", ms(response.Max()), "≥ 2 s", metIf(longest >= 1), n)
	for _, q := range []float64{0.9, 0.99} {
		r, _ := response.Quantile(q)
		s, _ := service.Quantile(q)
		t.info(n, fmt.Sprintf("%s: p%g", name, 100*q), "response %s, service alone %s", ms(r), ms(s))
	}
	return nil
}

// objectLoop is an open loop without ramps, so that client and server count the
// same requests.
type objectLoop struct {
	workers         int
	rate, operation string
	length          time.Duration
}

// serverTruth is what the null server logged.
type serverTruth struct {
	firstUnixNs int64
	verbs       map[string]*hist.Histogram
}

// open runs a loop against a null server with these flags.
func (e *env) open(ctx context.Context, l objectLoop, flags ...string) (*record.Bundle, *serverTruth, error) {
	dir, err := os.MkdirTemp(e.tmp, "object-truth-")
	if err != nil {
		return nil, nil, err
	}
	log := filepath.Join(dir, "truth.jsonl")
	address, stop, err := e.nullServer(ctx, append(flags, "--truth", log, "--seed", strconv.FormatUint(e.seed, 10))...)
	if err != nil {
		return nil, nil, err
	}
	file, bundle := filepath.Join(dir, "workload.xml"), filepath.Join(dir, "bundle")
	text := fmt.Sprintf(`<workload name="truth">%s<workflow><workstage name="init"><work type="init" workers="1" config="containers=c(1)"/></workstage>
<workstage name="main"><work name="main" workers="%d" runtime="%d" rate="%s">%s</work></workstage></workflow></workload>`,
		s3Store(address, "bench", "bench"), l.workers, int(l.length.Seconds()), l.rate, fmt.Sprintf(l.operation, 100))
	err = os.WriteFile(file, []byte(text), 0o600)
	if err == nil {
		var out []byte
		if out, err = interruptible(ctx, e.cnsbench(), "object", "run", file, "--out", bundle, "--seed", strconv.FormatUint(e.seed, 10)).CombinedOutput(); err != nil {
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
	b, err := record.Open(bundle)
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
