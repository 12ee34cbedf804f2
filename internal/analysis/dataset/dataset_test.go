package dataset

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// An I/O that had not ended bounds nothing beyond what the canary saw.
func TestCanaryUntil(t *testing.T) {
	for _, tt := range []struct {
		name string
		ios  []op.CanaryIO
		want op.Time
	}{
		{"none", nil, op.Never},
		{"the last to end", []op.CanaryIO{{Intended: 10, Ended: 90}, {Intended: 20, Ended: 21}}, 90},
		{"the last that was due", []op.CanaryIO{{Intended: 10, Ended: 11}, {Intended: 20, Ended: op.Never}}, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&Canary{IOs: tt.ios}).Until(); got != tt.want {
				t.Errorf("Until() = %d, want %d", got, tt.want)
			}
		})
	}
}
