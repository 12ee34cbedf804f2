package e2e

import (
	"slices"
	"testing"
)

// TestStoppedTool: fio is stopped for 4 s and makes up for its I/O after that. No objective passes that the stop missed.
func TestStoppedTool(t *testing.T) {
	b := newBox(t)
	r := b.bench(head+`spec:
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 64Mi, fillPercent: 10, runtime: 16, direct: 0, ioengine: psync,
          readPercent: 67, rateIops: "200,100"}
    - {name: hang, startAfter: 6s, killSpec: {actionName: fio, signal: SIGSTOP, stopFor: 4s}}
  slos:
    - {name: read, expr: 'outage(fio.read, after("hang")) < duration("1s")'}
    - {name: write, expr: 'recovery(fio.write, after("hang")) < duration("3s")'}
    - {name: known, expr: 'outage(fio.read, after("hang")) > duration("3s")'}
`).wants(t, 3)
	var s struct {
		Verdicts            []struct{ Name, Status, Message string }
		Stalls, ZeroPeriods []struct {
			LengthNs int64
			OwnOps   int
		}
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	if len(s.Verdicts) != 3 || s.Verdicts[0].Status != "fail" || s.Verdicts[1].Status != "fail" ||
		s.Verdicts[2].Status != "pass" {
		t.Errorf("verdicts %+v\n%v", s.Verdicts, r)
	}
	found := 0 // a stall if an I/O was pending
	for _, x := range slices.Concat(s.Stalls, s.ZeroPeriods) {
		if x.LengthNs >= 2e9 && x.OwnOps == 1 {
			found++
		}
	}
	if found != 1 {
		t.Errorf("stalls %+v, times without operations %+v: want one of 2 s or more, during hang", s.Stalls, s.ZeroPeriods)
	}
}
