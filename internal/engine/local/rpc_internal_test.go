package local

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestMarkParts: parts are placed in the middle of what the driver does not account for; a report that does not fit the
// call is left out.
func TestMarkParts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		reported []string
		want     []op.Milestone
	}{
		{"none", nil, nil},
		{"mkfs", []string{"80;mkfs=10-60"}, []op.Milestone{{Name: "mkfs.start/a", At: 1020, Err: 10, Source: "csi"},
			{Name: "mkfs.end/a", At: 1070, Err: 10, Source: "csi"}}},
		{"longer than the call", []string{"101;mkfs=10-60"}, nil},
		{"no report", []string{"x"}, nil},
		{"two reports", []string{"80;mkfs=10-60", "80;mkfs=10-60"}, nil},
	} {
		trace := op.NewTrace(op.NewClock())
		of := opTrace{trace, "/a"}
		of.markParts(tt.reported, 1000, 1100)
		var o op.Op
		trace.Fill(&o)
		if diff := cmp.Diff(tt.want, append([]op.Milestone(nil), o.Milestones...)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestLongMessage: a driver's message is cut, and says by how much.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	err := rpcError("CreateVolume", status.Error(codes.Internal, strings.Repeat("x", 1<<20)))
	text := err.Error()
	if len(text) > 5<<10 || !strings.HasPrefix(text, "Internal: CreateVolume: xxx") ||
		!strings.HasSuffix(text, "xxx… (1044494 more bytes)") {
		t.Errorf("%d bytes: %s … %s", len(text), text[:40], text[len(text)-40:])
	}
	if short := rpcError("CreateVolume", status.Error(codes.Internal, "full")); short.Error() != "Internal: CreateVolume: full" {
		t.Error(short)
	}
}
