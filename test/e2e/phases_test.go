package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// phased is an fio workload whose rate triples after four seconds. Its own runtime exceeds the
// first phase, so the phase change has to end it.
const phased = head + `spec:
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        canary: {interval: 20ms}
        vars: {storageClass: hostdir, volumeSize: 64Mi, rw: randwrite, rateIops: 100, runtime: 60}
        phases:
          - {startAfter: 4s, vars: {rateIops: 300, runtime: 4}}
  slos:
    - {name: busier, expr: 'iops(fio.write, phase(1)) > 2.0 * iops(fio.write, phase(0))'}
    - {name: in-all, expr: 'iops(fio.write) < 290.0 && iops(fio.write) > 110.0'}
    - {name: quick, expr: 'p50(fio.write, phase(0)) < duration("1m") && p50(fio.canaryWrite, phase(1)) < duration("1m")'}
`

// TestPhases checks that the record has the requested rate of each phase.
func TestPhases(t *testing.T) {
	needProgram(t, "fio")
	b := newBox(t)
	if text := b.bench(phased, "--dry-run").wants(t, 0).stdout; !strings.Contains(text,
		"fio, phase 1, from 4s after the barrier: rateIops=300 runtime=4\n") {
		t.Errorf("--dry-run does not say what changes:\n%s", text)
	}
	r := b.bench(phased)
	var s struct {
		summaryJSON
		Workloads []struct {
			Metrics []struct {
				Name      string
				PerSecond *float64
			}
			Phases []struct {
				Phase            int
				Vars, StartAfter string
				Metrics          []struct {
					Name      string
					PerSecond *float64
					Latency   struct{ N int64 }
				}
			}
		}
	}
	plain, _ := b.readable(b.bundle())
	b.judged(r, plain)
	decode(b, b.run("show", b.bundle(), "--output", "json").wants(b, 0).stdout, &s)
	for _, v := range plain.Verdicts {
		if v.Status != "pass" {
			t.Errorf("objective %s: %s", v.Name, v.Status)
		}
	}
	if len(s.Workloads) != 1 || len(s.Workloads[0].Phases) != 2 {
		t.Fatalf("workloads %+v\n%v", s.Workloads, r)
	}
	for _, m := range s.Workloads[0].Metrics {
		if m.PerSecond != nil {
			t.Errorf("%s: a rate of %v over phases of different rates", m.Name, *m.PerSecond)
		}
	}
	var rates [2]float64
	for i, p := range s.Workloads[0].Phases {
		canary := int64(0)
		for _, m := range p.Metrics {
			switch {
			case m.Name == "write" && m.PerSecond != nil:
				rates[i] = *m.PerSecond
			case m.Name == "canaryWrite":
				canary = m.Latency.N
			}
		}
		if want := []float64{100, 300}[i]; math.Abs(rates[i]-want) > 0.15*want {
			t.Errorf("phase %d (%s): %.1f IOPS, %v were asked for", i, p.Vars, rates[i], want)
		}
		// The canary of phase 0 ends with the phase, that of the last phase with its command.
		if canary < 150 || i == 0 && canary > 200 {
			t.Errorf("phase %d: %d I/Os of the canary in 4 s, one each 20 ms", i, canary)
		}
	}
	t.Logf("%.1f and %.1f IOPS, ratio %.2f", rates[0], rates[1], rates[1]/rates[0])
	if got := s.Workloads[0].Phases[1]; got.Vars != "rateIops=300 runtime=4" || got.StartAfter != "4s" {
		t.Errorf("phase 1 is %+v", got)
	}
	for _, file := range []string{"fio/output/fio.json", "fio-phase-1/output/fio.json"} {
		if st, err := os.Stat(filepath.Join(b.bundle(), "raw", "fio-0", file)); err != nil || st.Size() == 0 {
			t.Errorf("output %s: %v", file, err)
		}
	}
	if text := b.run("show", b.bundle()).wants(t, 0).stdout; !strings.Contains(text,
		"fio, 4s after the barrier: phase 1 (rateIops=300 runtime=4)") {
		t.Errorf("the summary does not show the phases:\n%s", text)
	}
	if t.Failed() {
		t.Log(r)
	}
	b.clean()
}

// TestPhaseNotBegun checks that a run that ends before a phase starts reports this, and that it is
// no failure of the workload.
func TestPhaseNotBegun(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	b := newBox(t)
	l := b.start(b.cnsbench(), b.runArgs(b.write("bench.yaml",
		strings.Replace(phased, "startAfter: 4s", "startAfter: 1h", 1)))...)
	l.reaches("running")
	l.signal(os.Interrupt)
	l.wait().wants(t, 130)
	s, _ := b.readable(b.bundle())
	for _, f := range s.Validity {
		if f.Name == "phaseNotBegun" && strings.Contains(f.Evidence, "fio-0: phase 1 never began") {
			b.clean()
			return
		}
	}
	t.Errorf("nothing says that phase 1 never began: %+v", s.Validity)
}
