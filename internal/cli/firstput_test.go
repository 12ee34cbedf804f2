package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/servers"
)

// TestPutOnce checks a first PUT at a real server: it says when, leaves no object, and says whether the server refused.
func TestPutOnce(t *testing.T) {
	s, err := servers.StartVersity(t.Context(), t.TempDir())
	if errors.Is(err, servers.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	clock := op.NewClock()
	b := engine.Bucket{Endpoint: s.Address, Region: "us-east-1", Name: "first-put", AccessKey: servers.VersityKey,
		SecretKey: servers.VersitySecret}
	if at, refused, err := putOnce(t.Context(), clock, b, "o"); at != op.Never || !refused || err == nil ||
		!strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("without the bucket: %v, %v, %v", at, refused, err)
	}
	if err := os.Mkdir(filepath.Join(s.Data, "first-put"), 0o755); err != nil { // a bucket
		t.Fatal(err)
	}
	before := clock.Now()
	at, _, err := putOnce(t.Context(), clock, b, "o")
	if err != nil || at < before || at > clock.Now() {
		t.Errorf("at %v: %v", at, err)
	}
	if n, err := s.Requests("o"); err != nil || n["s3_PutObject"] != 1 || n["s3_DeleteObject"] != 1 {
		t.Errorf("requests %v, %v", n, err)
	}
	b.SecretKey = "wrong"
	if at, refused, err := putOnce(t.Context(), clock, b, "o"); at != op.Never || !refused || err == nil {
		t.Errorf("with a wrong key: %v, %v, %v", at, refused, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	b.Endpoint = "http://192.0.2.1:9" // TEST-NET-1: nobody answers
	if at, refused, err := putOnce(ctx, clock, b, "o"); at != op.Never || refused || err == nil {
		t.Errorf("without a server: %v, %v, %v", at, refused, err)
	}
}
