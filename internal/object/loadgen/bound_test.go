package loadgen

import (
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// What a lost host used is not known: it makes operations no cheaper.
func TestCPUPerOp(t *testing.T) {
	stage := func(u Usage, ops int64) StageResult {
		return StageResult{Usage: u, Works: []WorkResult{{Cells: Cells{{Label: "200", OK: true}: {N: ops},
			{Label: Dropped, Lost: true}: {N: 7}}}}}
	}
	used := Usage{CPU: time.Second, Wall: 10 * time.Second, CPUs: 2}
	one, lost := stage(used, 1000), stage(Usage{}, 500)
	if d, n, ok := one.CPUPerOp(); !ok || d != time.Millisecond || n != 1000 {
		t.Errorf("%v, %d, %v", d, n, ok)
	}
	if d, _, ok := lost.CPUPerOp(); ok {
		t.Errorf("a process that was lost used %v an operation", d)
	}
	all := stage(used, 1500)
	all.Hosts = []HostResult{{StageResult: one}, {StageResult: lost}}
	if d, n, ok := all.CPUPerOp(); !ok || d != time.Millisecond || n != 1000 {
		t.Errorf("%v, %d, %v", d, n, ok)
	}
}

// Whose figures they are, by ceiling, CPU and run queue: 1000 operations in 10 s
// took 5 ms each.
func TestBound(t *testing.T) {
	usage := func(cpu, waited time.Duration) Usage {
		return Usage{CPU: cpu, Waited: waited, Wall: 10 * time.Second, CPUs: 2}
	}
	tests := []struct {
		name    string
		usage   Usage
		rate    schedule.Schedule
		ceiling float64
		want    Bound
		says    string
	}{
		{"CPUs to spare", usage(time.Second, 0), nil, 0, ServerBound, "used 5 % of its 2 CPUs"},
		{"an open loop", usage(time.Second, 0), schedule.Constant{Rate: 100}, 0, Unclear, ""},
		{"all CPUs in use", usage(17*time.Second, 0), nil, 0, ClientBound, "used 85 %"},
		{"waiting for a CPU", usage(time.Second, 800*time.Millisecond), nil, 0, ClientBound,
			"ran for 1 s, and waited 0.8 s for a CPU: that is 16.0 % of the time that operations took"},
		{"waiting between operations", usage(100*time.Millisecond, 7985*time.Millisecond), nil, 0, ClientBound,
			"ran for 0.1 s, and waited 7.99 s for a CPU: that is more than all operations took together, 5 s"},
		{"waiting, and nothing was done", usage(2300*time.Microsecond, 31*time.Millisecond), nil, 0, Unclear,
			"no operation ended meanwhile"},
		{"waiting, but for little", usage(10*time.Millisecond, 30*time.Millisecond), nil, 0, ServerBound,
			"ran for 0.01 s, and waited 0.03 s for a CPU: that is 0.6 %"},
		{"no CPU to spare, and many workers", usage(4*time.Second, 13*time.Second), nil, 0, Unclear,
			"waited 13 s for a CPU: that is 2.6 %"},
		{"near its ceiling", usage(time.Second, 0), nil, 110, ClientBound,
			"at 91 % of this client's own ceiling of 110 operations a second"},
		{"far from its ceiling", usage(time.Second, 0), nil, 10000, ServerBound,
			"at 1 % of this client's own ceiling of 10000 operations"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCell()
			c.N = 1000
			took := 5 * time.Millisecond
			if strings.Contains(tt.name, "many workers") {
				took *= 100
			}
			if strings.Contains(tt.name, "nothing was done") {
				took = 0
			}
			if err := c.Service.RecordN(int64(took), 1000); err != nil {
				t.Fatal(err)
			}
			s := &StageResult{Usage: tt.usage, Ceiling: tt.ceiling,
				Works: []WorkResult{{Work: &model.Work{Rate: tt.rate}, From: 0, To: op.Time(10 * time.Second),
					Cells: Cells{{Label: "200", OK: true}: c}}}}
			if b, evidence := s.Bound(); b != tt.want || !strings.Contains(evidence, tt.says) {
				t.Errorf("%s: %s, want %s and %q", b, evidence, tt.want, tt.says)
			}
		})
	}
}
