package op

import "testing"

// TestUsedShare checks that what a driver or a file system does not count makes no share, and that the rest does.
func TestUsedShare(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		amount VolumeAmount
		share  float64
		ok     bool
	}{
		"all":                      {VolumeAmount{Total: 100, Used: 40, Available: 40}, 0.5, true},
		"nothing":                  {VolumeAmount{}, 0, false},
		"the total only":           {VolumeAmount{Total: 100}, 0, false},
		"no available":             {VolumeAmount{Total: 100, Used: 40}, 0.4, true},
		"no used":                  {VolumeAmount{Total: 100, Available: 40}, 0.6, true},
		"no total":                 {VolumeAmount{Used: 30, Available: 10}, 0.75, true},
		"full":                     {VolumeAmount{Total: 100, Used: 100}, 1, true},
		"free inodes -1 of CephFS": {VolumeAmount{Total: 2, Used: 3, Available: -1}, 0, false},
	} {
		if share, ok := tt.amount.UsedShare(); share != tt.share || ok != tt.ok {
			t.Errorf("%s: %g, %v; want %g, %v", name, share, ok, tt.share, tt.ok)
		}
	}
	for name, tt := range map[string]struct {
		use   VolumeUse
		share float64
		ok    bool
	}{
		"inodes":                    {VolumeUse{UsedBytes: 1, FreeBytes: 3, UsedInodes: 3, FreeInodes: 1}, 0.75, true},
		"no inodes":                 {VolumeUse{UsedBytes: 1, FreeBytes: 3, UsedInodes: -1, FreeInodes: -1}, 0.25, true},
		"of a bundle of before":     {VolumeUse{UsedBytes: 1, FreeBytes: 3, UsedInodes: 3, FreeInodes: -1}, 0.25, true},
		"btrfs, bundle of before":   {VolumeUse{UsedBytes: 1, FreeBytes: 3}, 0.25, true},
		"a file system without any": {VolumeUse{UsedBytes: -1, FreeBytes: -1, UsedInodes: -1, FreeInodes: -1}, 0, false},
	} {
		if share, ok := tt.use.UsedShare(); share != tt.share || ok != tt.ok {
			t.Errorf("%s: %g, %v; want %g, %v", name, share, ok, tt.share, tt.ok)
		}
	}
}
