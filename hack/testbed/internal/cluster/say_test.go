package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSayEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		end := sayEach(time.Minute, &said, "building x")
		time.Sleep(150 * time.Second)
		end()
		if want := "still building x after 1m0s\nstill building x after 2m0s\n"; said.String() != want {
			t.Errorf("said %q, want %q", said.String(), want)
		}
	})
}
