package results

import "testing"

// TestInTheClear: a token may go to where nobody on its way can read it.
func TestInTheClear(t *testing.T) {
	for url, want := range map[string]bool{
		"http://results.example:8080": true, "http://10.0.0.1": true, "HTTP://results.example/": true,
		"http://127.0.0.1.example": true, "https://results.example:8443": false, "http://127.0.0.1:8080": false,
		"http://localhost": false, "http://[::1]:8080": false, "": false,
	} {
		if got := InTheClear(url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
}
