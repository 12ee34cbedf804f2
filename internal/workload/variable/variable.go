// Package variable implements the types of a workload's variables, which a library entry
// declares by annotation cnsbench.type.VAR, and checks values.
package variable

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hints"
)

// Type of a variable. The zero value accepts any text.
type Type struct {
	text     string // as in the annotation
	kind     string
	scalar   *scalar  // of numeric kinds
	min, max bound    // of numeric kinds
	values   []string // of an enum
	list     bool     // several values separated by commas
}

// bound is an end of a range; the zero value is none.
type bound struct {
	text  string
	value float64
}

// Problem describes an invalid value.
type Problem struct {
	Message string // quotes the value
	Hint    string // what to write instead; may be empty
	// Values of an enum, for a suggestion; nil: not an enum.
	Values []string
}

// Types without numbers.
const (
	boolType         = "bool"
	enumType         = "enum"
	storageClassType = "storageClass"
	textType         = "text"
	listWord         = "list"
)

// Parse reads a type: a name, then the bounds MIN..MAX of a number or the values of an
// enum; "list" before it allows several values separated by commas.
func Parse(text string) (Type, error) {
	words := strings.Fields(text)
	t := Type{text: strings.Join(words, " ")}
	if len(words) > 0 && words[0] == listWord {
		t.list, words = true, words[1:]
	}
	if len(words) == 0 {
		return Type{}, fmt.Errorf("invalid type %q: want one of %s", text, strings.Join(Names(), ", "))
	}
	t.kind, words = words[0], words[1:]
	measured, ok := scalars[t.kind]
	switch {
	case ok:
		t.scalar = &measured
		return t.bounded(words)
	case t.kind == enumType:
		if t.values = words; len(words) == 0 {
			return Type{}, fmt.Errorf("invalid type %q: want the values after enum", text)
		}
	case t.kind != boolType && t.kind != storageClassType && t.kind != textType:
		return Type{}, fmt.Errorf("invalid type %q: want one of %s", text, strings.Join(Names(), ", "))
	case len(words) > 0:
		return Type{}, fmt.Errorf("invalid type %q: %s takes no more words", text, t.kind)
	}
	return t, nil
}

// Names returns the names of the types, sorted.
func Names() []string {
	names := slices.Collect(maps.Keys(scalars))
	return slices.Sorted(slices.Values(append(names, boolType, enumType, storageClassType, textType)))
}

func (t Type) bounded(words []string) (Type, error) {
	if len(words) == 0 {
		return t, nil
	}
	low, high, ok := strings.Cut(words[0], "..")
	if !ok || len(words) > 1 {
		return Type{}, fmt.Errorf("invalid type %q: want bounds as MIN..MAX, MIN.. or ..MAX", t.text)
	}
	for _, b := range []struct {
		text string
		into *bound
	}{{low, &t.min}, {high, &t.max}} {
		if b.text == "" {
			continue
		}
		v, err := t.scalar.parse(b.text)
		if err != nil {
			return Type{}, fmt.Errorf("invalid type %q: bound %q is not %s", t.text, b.text, t.scalar.what)
		}
		*b.into = bound{b.text, v}
	}
	if t.min.text != "" && t.max.text != "" && t.min.value > t.max.value {
		return Type{}, fmt.Errorf("invalid type %q: the bounds are the wrong way round", t.text)
	}
	return t, nil
}

// String returns the type as written.
func (t Type) String() string {
	if t.text == "" {
		return textType
	}
	return t.text
}

// Kind returns the name of the type, one of Names.
func (t Type) Kind() string {
	if t.kind == "" {
		return textType
	}
	return t.kind
}

// List reports whether several values can be given, separated by commas.
func (t Type) List() bool { return t.list }

// Values returns those of an enum; nil: it is not one.
func (t Type) Values() []string { return slices.Clone(t.values) }

// MarshalText writes what Parse reads.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is Parse.
func (t *Type) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	*t = parsed
	return err
}

// Size reports whether values are Kubernetes quantities, which Bytes converts.
func (t Type) Size() bool { return t.kind == sizeType && !t.list }

// Bytes converts a size to bytes.
func (t Type) Bytes(value string) (int64, error) {
	v, err := parseSize(value)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", value, err)
	}
	return int64(v), nil
}

// Check returns why a value is invalid; nil: it is valid.
func (t Type) Check(value string) *Problem {
	if !t.list {
		return t.one(value)
	}
	some := false
	for v := range strings.SplitSeq(value, ",") {
		if v == "" {
			continue // the tools take the default, or the value before
		}
		some = true
		if p := t.one(v); p != nil {
			return p
		}
	}
	if !some {
		return t.one("")
	}
	return nil
}

var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (t Type) one(value string) *Problem {
	switch t.kind {
	case boolType:
		if value != "true" && value != "false" {
			return &Problem{Message: fmt.Sprintf("%q is not true or false", value), Values: []string{"true", "false"}}
		}
	case enumType:
		if !slices.Contains(t.values, value) {
			return &Problem{Message: fmt.Sprintf("%q is not one of its values", value), Values: t.values}
		}
	case storageClassType:
		if value != "" && (len(value) > 253 || !className.MatchString(value)) {
			return &Problem{Message: fmt.Sprintf("%q is not the name of a StorageClass", value),
				Hint: "lower-case letters, digits, - and ."}
		}
	}
	if t.scalar == nil {
		return nil
	}
	v, err := t.scalar.parse(value)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return &Problem{Message: fmt.Sprintf("%q is not %s", value, t.scalar.what), Hint: t.scalar.hint(value)}
	case t.min.text != "" && v < t.min.value:
		return &Problem{Message: fmt.Sprintf("%q is less than %s", value, t.min.text), Hint: t.minHint(value)}
	case t.max.text != "" && v > t.max.value:
		return &Problem{Message: fmt.Sprintf("%q is more than %s", value, t.max.text), Hint: "at most " + t.max.text}
	}
	return nil
}

// minHint suggests a unit that may be missing.
func (t Type) minHint(value string) string {
	if t.scalar.unit != "" {
		if v, err := t.scalar.parse(value + t.scalar.unit); err == nil && v >= t.min.value {
			return hints.Meant(value + t.scalar.unit)
		}
	}
	return "at least " + t.min.text
}
