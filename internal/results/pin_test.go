package results

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// The pin of a results service that was made anew reaches those who asked
// before, and a certificate of another pin is never trusted.
func TestPublishedPin(t *testing.T) {
	ctx, set := t.Context(), fake.NewClientset()
	secured := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secured.Close()
	right := server.Pin(secured.Certificate().Raw)
	p := &PublishedPin{Set: set, Namespace: "ns", Name: PinMap}
	transport := &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: server.PinnedBy(func() (string, error) { return p.Current(ctx) })}
	get := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, secured.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if get() == nil {
		t.Error("a service is trusted that has published nothing")
	}
	other := "sha256:" + right[len(right)-64:len(right)-2] + "00"
	for _, tt := range []struct {
		pin string
		ok  bool
	}{{other, false}, {right, true}, {right, true}, {"", false}} {
		if err := WritePin(ctx, set, "ns", PinMap, tt.pin); err != nil {
			t.Fatal(err)
		}
		p.read = time.Time{} // a while ago
		if err := get(); (err == nil) != tt.ok {
			t.Errorf("with pin %q published: %v", tt.pin, err)
		}
	}
	updates := 0
	for _, a := range set.Actions() {
		if a.GetVerb() == "update" {
			updates++
		}
	}
	if updates != 2 {
		t.Errorf("%d updates: one for each change", updates)
	}
	m, err := set.CoreV1().ConfigMaps("ns").Get(ctx, PinMap, metav1.GetOptions{})
	if err != nil || len(m.Labels) != 2 {
		t.Errorf("%v, %v", m, err)
	}
}
