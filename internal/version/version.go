// Package version says which build this is.
package version

// Version is set by the linker; "devel" otherwise.
var Version = "devel"
