package machine

import (
	"slices"
	"testing"
)

func TestMountPoints(t *testing.T) {
	const text = "25 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"36 25 0:31 / /a\\040b/c rw,nosuid shared:1 - tmpfs tmpfs rw\n\nshort line\n"
	if got, want := mountPoints(text), []string{"/", "/a b/c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A program may be anywhere on the PATH; what has the name of a plugin there is none.
func TestMissing(t *testing.T) {
	got := missing(map[string]string{"/nowhere/bin/sh": "dash", "/nowhere/lib/cni/sh": "plugins",
		"/nowhere/sbin/no-such-program": "none"})
	if want := []string{"none", "plugins"}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
}
