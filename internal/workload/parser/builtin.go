package parser

import (
	"maps"
	"slices"
)

// Parsers are the built-in ones and those in more, by the name that a library entry gives in its `parser`
// annotation.
func Parsers(more map[string]Func) map[string]Func {
	all := map[string]Func{"fio": Fio}
	maps.Copy(all, more)
	return all
}

// Names of the parsers, sorted.
func Names(more map[string]Func) []string { return slices.Sorted(maps.Keys(Parsers(more))) }
