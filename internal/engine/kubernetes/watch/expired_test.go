//go:build e2e

package watch

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// A real server is asked for a version that it has long forgotten: in whichever form it refuses, the kind is listed
// again.
func TestAForgottenVersionIsListedAgain(t *testing.T) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("KUBECONFIG is not set: no cluster to watch")
	}
	host, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []api.Kind{api.Nodes, api.VolumeSnapshots} {
		t.Run(k.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			w := &Watches{cfg: Config{Clock: op.NewClock()}, queue: newQueue(), lags: newLags([]Source{{Kind: k}})}
			s := &stream{w: w, src: Source{Kind: k}, version: "1", known: map[objectKey]api.Object{}}
			if s.conn, err = api.Dial(host, true); err != nil {
				t.Fatal(err)
			}
			defer s.conn.Close()
			sn, err := s.connect(ctx)
			if err == nil {
				err = s.settle(s.read(sn))
				sn.cancel(nil)
				_ = sn.body.Close()
			}
			if ctx.Err() != nil {
				t.Skip("the server has just begun, and still has every change since version 1")
			}
			if !api.IsGone(err) {
				t.Fatalf("the server says %v, want 410", err)
			}
			t.Log(err)
			s.stale = true
			if sn, err = s.resume(ctx); err != nil {
				t.Fatal(err)
			}
			sn.cancel(nil)
			_ = sn.body.Close()
			if s.version == "1" || s.stale {
				t.Errorf("watching from %q", s.version)
			}
		})
	}
}
