package plan

import (
	"strings"
	"testing"
)

// TestCannotGrow checks that resizes that will fail on this machine have a warning: those of mounted volumes with a
// file system that its drivers cannot grow.
func TestCannotGrow(t *testing.T) {
	in := Input{CannotGrow: func(driver, fsType string) string {
		if driver == "loopfile.csi.cnsbench.dev" && fsType != "xfs" {
			return "no ext4 here"
		}
		return ""
	}}
	for volume, want := range map[string]string{
		"{storageClass: loopfile, size: 1Gi, attach: true}":     `resizes of StorageClass "loopfile" will fail: no ext4 here`,
		"{storageClass: loopfile, size: 1Gi}":                   "",
		"{storageClass: loopfile-xfs, size: 1Gi, attach: true}": "",
		"{storageClass: btrfs, size: 1Gi, attach: true}":        "",
	} {
		p := good(t, in, `spec:
  actions:
    - {name: v, createObjSpec: {volume: `+volume+`}}
    - {name: r, resizeSpec: {actionName: v, factor: 2}}
`)
		var said []string
		for _, w := range p.Warnings {
			said = append(said, w.String())
		}
		if got := strings.Join(said, "\n"); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", volume, got, want)
		}
	}
}
