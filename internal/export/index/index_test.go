package index

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// made is an index of a complete bundle, one of a killed run, one of objects, and two that cannot be read.
func made(t *testing.T) (*sql.DB, *bundle.Bundle, Result) {
	t.Helper()
	b, _ := analysistest.Demo(t)
	damaged, _ := analysistest.Demo(t)
	if err := os.Truncate(filepath.Join(damaged.Dir, "events", "ops.parquet"), 4000); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "index.sqlite")
	trial := &Trial{Occasion: 2, Block: 1, Repetition: 7,
		Levels: []Level{{Factor: "storageClass", Value: "a"}, {Factor: "bs", Value: "4k", Drawn: true}}}
	r, err := Make(t.Context(), path, []Source{{Path: damaged.Dir, Trial: trial}, {Path: b.Dir, Study: "s", Trial: trial},
		{Path: analysistest.Killed(t).Dir}, {Path: analysistest.Objects(t).Dir}}, nil, map[string]string{"x": "torn"})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if why := r.Unreadable[damaged.Dir]; !strings.Contains(why, "damaged") || r.Unreadable["x"] != "torn" ||
		len(r.Unreadable) != 2 {
		t.Errorf("unreadable %v", r.Unreadable)
	}
	return db, b, r
}

// query returns the rows of a query as text.
func query(t *testing.T, db *sql.DB, text string) (rows [][]string) {
	t.Helper()
	r, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := r.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, c := range cells {
			row = append(row, c.String)
		}
		rows = append(rows, row)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// What is in the index is what the bundle has; of an unreadable bundle nothing is.
func TestMake(t *testing.T) {
	db, b, r := made(t)
	if r.Runs != 3 || r.Ops != 43+3 {
		t.Errorf("%d runs, %d ops", r.Runs, r.Ops)
	}
	if diff := cmp.Diff([][]string{{"synthetic", "complete", "s", "42"}, {"synthetic", "incomplete", "", "42"},
		{"synthetic", "complete", "", "42"}}, query(t, db,
		"SELECT name, state, study, seed FROM runs ORDER BY run")); diff != "" {
		t.Errorf("runs: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"1", "2", "1", "7", "0", "bs", "4k", "1"}, {"1", "2", "1", "7", "0", "storageClass",
		"a", "0"}}, query(t, db, "SELECT * FROM trials JOIN levels USING (run) ORDER BY factor")); diff != "" {
		t.Errorf("trials: -want +got:\n%s", diff)
	}
	var response, dropped int64
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := o.Response(); ok && o.Action == "snapshots" && o.Outcome == op.OK {
			response += v
		}
		if o.Outcome == op.Dropped {
			dropped++
		}
	}
	slos := int64(len(analysistest.SLOs))
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	stalls := int64(len(s.Stalls))
	if stalls < 5 || len(s.ZeroPeriods) > 0 {
		t.Fatalf("%d stalls, %d times without operations", stalls, len(s.ZeroPeriods))
	}
	for text, want := range map[string]int64{
		"SELECT sum(response_ns) FROM ops WHERE run = 1 AND action = 'snapshots' AND outcome = 'ok'":  response,
		"SELECT count(*) FROM ops WHERE outcome = 'dropped' AND started_ns IS NULL":                   dropped,
		"SELECT count(*) FROM spans WHERE run = 1 AND name = 'CreateSnapshot'":                        37,
		"SELECT value FROM figures WHERE run = 1 AND subject = 'snapshots' AND metric = 'outcome.ok'": 37,
		"SELECT count(*) FROM verdicts WHERE run = 1":                                                 slos,
		"SELECT count(*) FROM stalls WHERE run = 1 AND source != 'operations' AND length_ns >= 30e6":  stalls,
		"SELECT count(*) FROM stalls": stalls,
		"SELECT count(*) > 0 FROM figures WHERE run = 1 AND scope = 'rateEffect' AND statistic = 'mean'": 1,
		"SELECT count(*) FROM unreadable": 2,
		"SELECT count(DISTINCT run) FROM (SELECT run FROM ops UNION SELECT run FROM figures)": 3,
		"SELECT value FROM meta WHERE key = 'format'":                                         Format,
	} {
		var got int64
		if err := db.QueryRowContext(t.Context(), text).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

// Each documented query runs and finds something; the documented columns are those of the tables.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/export.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Index\n")
	db, _, _ := made(t)
	queries := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(queries) < 6 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		if rows := query(t, db, q[1]); len(rows) == 0 {
			t.Errorf("nothing is found by\n%s", q[1])
		}
	}
	tables := query(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	for _, table := range tables {
		_, row, ok := strings.Cut(section, "\n| `"+table[0]+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !ok {
			t.Errorf("table %s is not documented", table[0])
			continue
		}
		if table[0] == "figures" {
			_, row, _ = strings.Cut(string(text), "**figures**")
		}
		for _, column := range query(t, db, "SELECT name FROM pragma_table_info('"+table[0]+"')") {
			if !regexp.MustCompile(`\b` + column[0] + `\b`).MatchString(row) {
				t.Errorf("column %s of %s is not documented", column[0], table[0])
			}
		}
	}
}

// An interrupt ends the work with an error.
func TestInterrupted(t *testing.T) {
	b, _ := analysistest.Demo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, filepath.Join(t.TempDir(), "i"), []Source{{Path: b.Dir}}, nil, nil); err == nil {
		t.Error("no error")
	}
}
