package e2e

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// restarted is an fio of 200 reads a second whose process is ended in each way that there is here. Killed by SIGKILL it
// leaves no report.
const restarted = head + `spec:
  runtime: 34s
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 64Mi, rw: randread, rateIops: 200, runtime: 60}
    - {name: move, startAfter: 6s, reattachSpec: {actionName: fio}}
    - {name: replace, startAfter: 12s, rolloutSpec: {actionName: fio}}
    - {name: evict, startAfter: 18s, killSpec: {actionName: fio, deletePodSpec: {gracePeriod: 5s}}}
    - {name: crash, startAfter: 24s, killSpec: {actionName: fio}}
  slos:
    - {name: rate, expr: 'iops(fio.read) > 190.0 && iops(fio.read) < 210.0'}
`

// TestRateOfRestarted checks that all that is said of the throughput is its rate while it could work, and that each
// operation has a recovery or the reason why not. A comparison has the figure of the objective (TestRateOfLives).
func TestRateOfRestarted(t *testing.T) {
	needProgram(t, "fio")
	b := newBox(t)
	r := b.bench(restarted)
	plain, _ := b.readable(b.bundle())
	b.judged(r, plain)
	for _, v := range plain.Verdicts {
		if v.Status != "pass" {
			t.Errorf("objective %s: %s", v.Name, v.Status)
		}
	}
	var s struct {
		Workloads  []struct{ Metrics []struct{ PerSecond float64 } }
		Recoveries []struct{ Each []struct{ Op int64 } }
		NoRecovery []struct {
			Op     int64
			Reason string
		}
	}
	show := b.run("show", b.bundle()).wants(b, 0).stdout
	decode(b, b.run("show", b.bundle(), "--output", "json").wants(b, 0).stdout, &s)
	if len(s.Workloads) != 1 || len(s.Workloads[0].Metrics) != 1 {
		t.Fatalf("workloads %+v\n%v", s.Workloads, r)
	}
	page, err := os.ReadFile(b.in("report.html"))
	if err != nil {
		t.Fatal(err)
	}
	rate := s.Workloads[0].Metrics[0].PerSecond
	near := func(where, text, pattern string) {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: no %s in\n%s", where, pattern, text[:min(len(text), 4000)])
			return
		}
		if v, _ := strconv.ParseFloat(m[1], 64); v < 194 || v > 206 || v-rate > 1 || rate-v > 1 {
			t.Errorf("%s: %g a second, want 200; the JSON has %g", where, v, rate)
		}
	}
	near("headline", show, `fio, 1 instance: read ([\d.]+) IOPS`)
	near("table", show, `(?m)^\s+fio read\s+([\d.]+)`)
	near("objective", show, `iops\(fio\.read\) = ([\d.]+)/s`)
	near("report", string(page), `<td>read<span[^>]*>[^<]*</span></td>\s*<td class="n">([\d.]+)<`)

	told := map[int64]bool{}
	for _, x := range s.Recoveries {
		for _, e := range x.Each {
			told[e.Op] = true
		}
	}
	for _, x := range s.NoRecovery {
		told[x.Op] = x.Reason != ""
	}
	if len(told) != 4 {
		t.Errorf("recoveries, or reasons, of %d operations, want 4: %+v, %+v", len(told), s.Recoveries, s.NoRecovery)
	}
}
