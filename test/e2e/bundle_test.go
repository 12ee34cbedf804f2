package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summaryJSON and opJSON define the summary and the ops as scripts read them, independent of the
// module's types.
type (
	summaryJSON struct {
		Format   int
		State    string
		Reason   string
		Complete bool
		Verdicts []struct{ Name, Status string }
		Actions  []struct {
			Name, Kind string
			N          int
			Outcomes   map[string]int
			Failures   []struct{ Outcome, Code, Message string }
		}
		Workloads []struct {
			Action  string
			Metrics []struct {
				Name    string
				Latency struct{ N int64 }
			}
		}
		Stalls []struct {
			Instance, Volume, Direction, Source string
			From, To, LengthNs, ErrorNs         int64
			Ops                                 []struct {
				Op             int64
				Action, Target string
				Own            bool
			}
		}
		Validity []struct {
			Name, Severity, Evidence string
			Sources                  []string
		}
		Warnings []string
	}
	opJSON struct {
		ID, Episode, Instance, Attempts                            int64
		Action, Kind, Target, Node, Outcome, Code, Message, Object string
		Intended, Started, Ended                                   *int64
		Milestones                                                 []struct {
			Name, Source string
			At, Err      int64
		}
	}
)

// opFields and milestoneFields are the JSON fields that DESIGN.md documents and scripts rely on.
var (
	opFields = []string{"action", "attempts", "code", "ended", "episode", "id", "instance", "intended", "kind",
		"message", "milestones", "node", "object", "outcome", "started", "target"}
	milestoneFields = []string{"at", "err", "name", "source"}
)

// readable reads a bundle with each command that accepts one.
func (b *box) readable(dir string) (summaryJSON, []opJSON) {
	b.Helper()
	if text := b.run("show", dir).wants(b, 0).stdout; !strings.Contains(text, "run ") {
		b.Errorf("show prints no summary:\n%s", text)
	}
	var s summaryJSON
	decode(b, b.run("show", dir, "--output", "json").wants(b, 0).stdout, &s)
	page := b.in("report.html")
	b.run("report", dir, "-o", page).wants(b, 0)
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "</html>") {
		b.Errorf("the report is no page: %v, %d bytes", err, len(html))
	}
	for _, outside := range []string{`src="http`, `href="http`, "@import", "url(http"} {
		if strings.Contains(string(html), outside) {
			b.Errorf("the report needs the network: it has %s", outside)
		}
	}
	return s, b.events(dir)
}

// events returns the ops of a bundle and checks that each has exactly the documented fields.
func (b *box) events(dir string) []opJSON {
	b.Helper()
	var ops []opJSON
	for line := range strings.Lines(b.run("show", dir, "--events").wants(b, 0).stdout) {
		var fields map[string]json.RawMessage
		decode(b, line, &fields)
		if diff := cmp.Diff(opFields, keys(fields)); diff != "" {
			b.Fatalf("fields of an op (-want +got):\n%s", diff)
		}
		var milestones []map[string]json.RawMessage
		decode(b, string(fields["milestones"]), &milestones)
		for _, m := range milestones {
			if diff := cmp.Diff(milestoneFields, keys(m)); diff != "" {
				b.Fatalf("fields of a milestone (-want +got):\n%s", diff)
			}
		}
		var o opJSON
		decode(b, line, &o)
		b.inOrder(&o)
		ops = append(ops, o)
	}
	return ops
}

// inOrder fails the test if an op has a milestone before its start: such a milestone belongs to
// another op. Only unblocked may be earlier. An op that never started has no other milestone.
func (b *box) inOrder(o *opJSON) {
	b.Helper()
	for _, m := range o.Milestones {
		if m.Name != "unblocked" && (o.Started == nil || m.At+m.Err < *o.Started) {
			b.Errorf("op %d, %s %s, has milestone %s at %d ± %d, before its start", o.ID, o.Action, o.Target, m.Name,
				m.At, m.Err)
		}
	}
}

func keys[V any](m map[string]V) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// outcomes counts the ops of an action by outcome.
func outcomes(ops []opJSON, action string) map[string]int {
	n := map[string]int{}
	for _, o := range ops {
		if o.Action == action {
			n[o.Outcome]++
		}
	}
	return n
}

// runID returns the ID of the box's run.
func (b *box) runID() string {
	b.Helper()
	var run struct {
		RunID string `json:"runID"`
	}
	text, err := os.ReadFile(b.in("bundle", "run.json"))
	if err != nil {
		b.Fatal(err)
	}
	decode(b, string(text), &run)
	return run.RunID
}

// registered returns where a run is registered.
func (b *box) registered(id string) string {
	if b.uid == 0 && os.Geteuid() == 0 {
		return filepath.Join("/var/lib/cnsbench/runs", id)
	}
	return b.in("home", ".local", "state", "cnsbench", "runs", id)
}
