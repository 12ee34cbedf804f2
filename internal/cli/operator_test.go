package cli

import (
	"io"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

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
