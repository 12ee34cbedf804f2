// Package awkwarddriver is a CSI driver for tests that is as awkward as real ones. It is the built-in driver null with
// a layer around each call that refuses, repeats, delays or changes what the call asks or answers, as Options say. It
// needs no storage, answers in milliseconds, keeps a log of its calls (csidriver.Record), and lists what exists,
// whatever it lists to its clients (Left). Delays and errors by chance are injected as into every built-in driver.
//
// With all switches off it passes csi-sanity.
package awkwarddriver
