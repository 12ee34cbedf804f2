package iolimit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOccupied: the root of version 2 in a container, which has processes, cannot give the io controller away, and the
// error says what to do. The host's root can, as can one that gives it already, or has no processes.
func TestOccupied(t *testing.T) {
	t.Parallel()
	container := map[string]string{"cgroup.controllers": "cpu io memory\n", "cgroup.subtree_control": "",
		"cgroup.type": "domain\n", "cgroup.procs": "1\n17\n"}
	for _, tt := range []struct {
		name string
		with map[string]string // "-": no such file
		want string
	}{
		{"container", nil, "has processes, so that groups below it cannot get the io controller: run outside the container"},
		{"host", map[string]string{"cgroup.type": "-"}, ""},
		{"already given", map[string]string{"cgroup.subtree_control": "cpu io\n"}, ""},
		{"no processes", map[string]string{"cgroup.procs": ""}, ""},
		{"no controller", map[string]string{"cgroup.controllers": "cpu memory\n"}, "the io controller is not available"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &Controller{Version: 2, Dir: t.TempDir()}
			for name, text := range container {
				if with, ok := tt.with[name]; ok {
					text = with
				}
				if text == "-" {
					continue
				}
				if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := c.hasIO()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.name == "container" && !strings.Contains(err.Error(), "mkdir "+c.Dir+"/init") {
				t.Errorf("the error does not say what to do: %v", err)
			}
		})
	}
}
