// Package csidriver is the CSI driver in the box: one gRPC server (CSI 1.13) over four backends. null costs nothing and
// keeps exact lists; hostdir keeps directories; loopfile keeps image files with real file systems on loop devices; btrfs
// keeps subvolumes. Each call can be delayed, stalled, failed or hung from a seed, and each leaves one record in the
// driver's own log, the known truth that measurements are held against.
//
// The common part validates, is idempotent by name, accounts for capacity and keeps the state; a backend only does the
// physical work. State is a journal per kind of object below BaseDir, written before and after the work, so that a driver
// killed at any moment finds at its next start what was half done, thaws it, and undoes it.
//
// See docs/design/csi-drivers.md.
package csidriver
