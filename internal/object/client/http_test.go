package client_test

import (
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
)

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 30 * time.Second, "1": time.Millisecond,
		"86400000": 24 * time.Hour} {
		if got, err := client.Timeout(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "86400001", "5soon", "5s", "5.5", " 5"} {
		if got, err := client.Timeout(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
