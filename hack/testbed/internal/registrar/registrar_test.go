package registrar

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// TestOffersAgainWhatWasRefused plays the kubelet.
func TestOffersAgainWhatWasRefused(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, dir, []Driver{{Short: "x", Name: "x.example", Endpoint: "/run/x.sock"}}) }()
	ask := func() (*registration.PluginInfo, registration.RegistrationClient) {
		t.Helper()
		conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "x-reg.sock"),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		client := registration.NewRegistrationClient(conn)
		info, err := client.GetInfo(t.Context(), &registration.InfoRequest{}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		return info, client
	}
	info, client := ask()
	if info.GetType() != "CSIPlugin" || info.GetName() != "x.example" || info.GetEndpoint() != "/run/x.sock" ||
		len(info.GetSupportedVersions()) != 1 {
		t.Errorf("offered %v", info)
	}
	if _, err := client.NotifyRegistrationStatus(t.Context(),
		&registration.RegistrationStatus{Error: "not yet"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(refusedPause / 2)
	if again, _ := ask(); again.GetName() != "x.example" {
		t.Errorf("offered again: %v", again)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
