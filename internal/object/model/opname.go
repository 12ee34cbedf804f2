package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// opName matches names of operations, which become part of metrics and conditions.
var opName = regexp.MustCompile(`^[A-Za-z]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// phaseNames occur in metrics in the place of an operation's name.
var phaseNames = []string{"response", "service", "connect", "firstByte", "drain", "late"}

// CheckOpName returns why an operation cannot have the name; nil if it can.
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

// NameOps gives the operations of a work that have no name that of their type,
// and a number behind it where another has that name.
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

// GivenName is the operation's name where it is not by NameOps, or else nothing.
func (o *Op) GivenName() string {
	if o.Type.names(o.Name) {
		return ""
	}
	return o.Name
}

// names reports whether NameOps may give that name to an operation of the type.
func (t OpType) names(name string) bool {
	number, ok := strings.CutPrefix(name, string(t))
	return ok && strings.Trim(number, "-0123456789") == ""
}
