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
