package model

import "fmt"

// Words are the terms of a file's language, for messages. Settings are identified by their names in COSBench.
type Words struct {
	Stage string                         // the term for a stage
	Key   func(key string) string        // the term for a setting
	Set   func(key, value string) string // the term for a setting with that value
}

// COSBench are the terms of COSBench's XML: attributes of its schema, and keys of config strings.
var COSBench = Words{
	Stage: "workstage",
	Key:   func(key string) string { return key },
	Set: func(key, value string) string {
		if key == "workers" {
			return fmt.Sprintf("%s=%q", key, value)
		}
		return key + "=" + value
	},
}

// checker collects problems.
type checker struct {
	Problems
	words Words
	kinds Kinds
}

// fail adds a problem with the setting key of the element at that line.
func (ps *checker) fail(line int, key, hint, format string, args ...any) {
	ps.Fail(line, hint, format, args...)
	ps.Problems[len(ps.Problems)-1].Key = key
}

// warn adds a warning about the setting key.
func (ps *checker) warn(line int, key, hint, format string, args ...any) {
	ps.Warn(line, hint, format, args...)
	ps.Problems[len(ps.Problems)-1].Key = key
}
