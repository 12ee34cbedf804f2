package cli

import (
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestInTheClear: a token may go to where nobody on its way can read it.
func TestInTheClear(t *testing.T) {
	for url, want := range map[string]bool{
		"http://results.example:8080": true, "http://10.0.0.1": true, "HTTP://results.example/": true,
		"http://127.0.0.1.example": true, "https://results.example:8443": false, "http://127.0.0.1:8080": false,
		"http://localhost": false, "http://[::1]:8080": false, "": false,
	} {
		if got := inTheClear(url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}

// TestOperatorTokenInTheClear: the operator does not send its token in the clear
// either.
func TestOperatorTokenInTheClear(t *testing.T) {
	f := operatorFlags{tokenFile: "token"}
	f.options.StartTimeout = 1
	f.options.ResultsURL = "http://results.example:8080"
	err := f.complete(t.Context(), &rest.Config{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--results-url http://results.example:8080") ||
		!strings.Contains(err.Error(), "https") {
		t.Errorf("got %v", err)
	}
}
