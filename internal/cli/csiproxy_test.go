package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxyFlags: what is wrong is said before any socket is touched.
func TestProxyFlags(t *testing.T) {
	t.Setenv(envProxyToken, "")
	t.Setenv(envProxyGuarded, "")
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing", nil, exitUsage, "socket to take over"},
		{"both", []string{"--take-over", "/a", "--listen", "/b"}, exitUsage, "socket to take over"},
		{"itself", []string{"--upstream", "/a", "--listen", "unix:///a"}, exitUsage, "take it over"},
		{"no token", []string{"--take-over", filepath.Join(dir, "a"), "--serve", "127.0.0.1:0"}, exitUsage, envProxyToken},
		{"no token file", []string{"--take-over", filepath.Join(dir, "a"), "--token-file", filepath.Join(dir, "none")}, exitUsage, "none"},
		{"nothing to restore", []string{"--restore", filepath.Join(dir, "a")}, exitOK, ""},
		{"no directory", []string{"--restore", filepath.Join(dir, "no", "a")}, exitFailed, "beside the driver's socket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			code := Main(append([]string{"csi-proxy"}, tt.args...), strings.NewReader(""), &out, &errs)
			if code != tt.code || !strings.Contains(errs.String(), tt.want) {
				t.Errorf("exit %d, %s", code, errs.String())
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
