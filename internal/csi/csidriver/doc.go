// Package csidriver is the built-in CSI driver: one gRPC server (CSI 1.13) with four backends. null does no
// work and keeps exact lists; hostdir keeps directories; loopfile keeps image files with real file systems on
// loop devices; btrfs keeps subvolumes. Each call can be delayed, stalled, failed or hung by a seeded
// injector, and each leaves one record in the driver's log, the ground truth for measurements.
//
// The common part validates requests, makes them idempotent by name, accounts for capacity and keeps the
// state; a backend does the physical work. The state is a journal per kind of object below BaseDir, written
// before and after the work, so that a restarted driver finds, thaws and undoes what a killed one left half
// done.
//
// See docs/design/csi-drivers.md.
package csidriver
