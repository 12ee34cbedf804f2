//go:build e2e

package e2e

import "testing"

// TestManyHostileBundles tries 200 hostile bundles, others each day, with each command that takes a bundle.
func TestManyHostileBundles(t *testing.T) { attack(t, 200, 1) }
