// Package series judges values in order of time: whether they are steady, independent,
// and whether the first of each occasion differs from the others. All functions are pure.
// A value that is NaN or infinite makes a result not ok.
package series
