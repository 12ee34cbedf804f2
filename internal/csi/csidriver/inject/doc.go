// Package inject decides, from a seed, which effects to inject into a storage driver: how long each call is
// delayed, which calls stall, fail or hang, and when the whole driver stalls. It is pure: the caller sleeps
// and answers. The n-th call of an RPC always gets the same decision for the same seed, however calls
// interleave.
//
// docs/design/csi-drivers.md describes the grammar.
package inject
