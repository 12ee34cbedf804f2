package cli

import (
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestOperatorTokenInTheClear checks that the operator rejects a results URL that would send its token unencrypted.
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
