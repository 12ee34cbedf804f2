package validate

import (
	"encoding/json"
	"strings"

	sigsjson "sigs.k8s.io/json"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Strict decodes a document into a typed object. Unknown fields are problems.
func Strict(d *parse.Document, into any) []parse.Problem {
	raw, err := json.Marshal(d.Value)
	if err != nil {
		return []parse.Problem{{File: d.File, Message: err.Error()}}
	}
	unknown, err := sigsjson.UnmarshalStrict(raw, into)
	if err != nil {
		p := d.Problem("", "", "%s", strings.TrimPrefix(err.Error(), "json: "))
		return []parse.Problem{p}
	}
	var problems []parse.Problem
	for _, e := range unknown {
		path := strings.Trim(strings.TrimPrefix(e.Error(), "unknown field "), `"`)
		problems = append(problems, d.KeyProblem(path, "", "unknown field"))
	}
	return problems
}
