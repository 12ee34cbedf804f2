// Package inject decides, from a seed, what a storage driver is made to suffer: how long each call is delayed, which
// calls stall, fail or never answer, and when the whole driver hangs. It is pure: it draws and decides; the caller sleeps
// and answers. The n-th call of an RPC always meets the same fate under the same seed, however calls interleave.
//
// The grammar is described in docs/design/csi-drivers.md.
package inject
