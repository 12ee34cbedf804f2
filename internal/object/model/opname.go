package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// opName matches names of operations, which become part of metric and condition names.
var opName = regexp.MustCompile(`^[A-Za-z]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// phaseNames occur in metric names in the position of an operation's name.
var phaseNames = []string{"response", "service", "connect", "firstByte", "drain", "late"}

// CheckOpName returns an error if name is not a valid name of an operation.
func CheckOpName(name string) error {
	switch {
	case !opName.MatchString(name):
		return fmt.Errorf("invalid name %.70q: want letters, digits, - and _, beginning with a letter", name)
	case slices.Contains(phaseNames, name):
		return fmt.Errorf("%q is the name of a phase, not of an operation", name)
	case slices.ContainsFunc(Types, func(t OpType) bool { return t.names(name) }):
		return fmt.Errorf("%q is the default name of an operation", name)
	}
	return nil
}

// NameOps gives each unnamed operation of a work the name of its type, with a number if that name is already
// used.
func NameOps(ops []Op) {
	taken := map[string]bool{}
	for i := range ops {
		taken[ops[i].Name] = true
	}
	for i := range ops {
		o := &ops[i]
		if o.Name != "" {
			continue
		}
		o.Name = string(o.Type)
		for n := 2; taken[o.Name]; n++ {
			o.Name = fmt.Sprintf("%s-%d", o.Type, n)
		}
		taken[o.Name] = true
	}
}

// GivenName returns the operation's name, or "" if it is one that NameOps gives.
func (o *Op) GivenName() string {
	if o.Type.names(o.Name) {
		return ""
	}
	return o.Name
}

// names reports whether NameOps can give that name to an operation of the type.
func (t OpType) names(name string) bool {
	number, ok := strings.CutPrefix(name, string(t))
	return ok && strings.Trim(number, "-0123456789") == ""
}
