package cosbench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/model"
)

// ignoredReads is a work on line 4 with the given attributes and a read of 100 %.
func ignoredReads(attrs string) string {
	return "<work " + attrs + ">\n<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work>"
}

// TestWhatCOSBenchIgnores checks that what COSBench ignores is a warning with its place, that the workload runs
// without it, and that a setting that is missing for it is an error.
func TestWhatCOSBenchIgnores(t *testing.T) {
	const s3 = `<storage type="s3" config="endpoint=http://192.0.2.1:1;accesskey=a;secretkey=b;%s"/>`
	const noAttribute = " has no attribute %s: it is ignored, as in COSBench"
	for _, tt := range []struct {
		name, text string // of works, from line 4 on
		want       []string
		fatal      bool
	}{
		{"an attribute of a work", ignoredReads(`name="m" workers="2" runtime="2" id="w1"`),
			[]string{"4:40: warning: <work>" + fmt.Sprintf(noAttribute, "id")}, false},
		{"an attribute that begins as a known one", ignoredReads(`name="m" workers="2" runtime="2" work="x"`),
			[]string{"4:40: warning: <work>" + fmt.Sprintf(noAttribute, "work")}, false},
		{"two attributes, in the order of the file", ignoredReads(`zeta="" workers="2" id="1" runtime="2"`),
			[]string{"4:7: warning: <work>" + fmt.Sprintf(noAttribute, "zeta"),
				"4:27: warning: <work>" + fmt.Sprintf(noAttribute, "id")}, false},
		{"on a line of its own, after characters of more bytes",
			ignoredReads("name=\"m\" workers=\"2\"\n runtime=\"2\" driver=\"ä€\" id=\"1\""),
			[]string{`5: warning: driver "ä€"`, "5:26: warning: <work>" + fmt.Sprintf(noAttribute, "id")}, false},
		{"after a placeholder", ignoredReads(`name="<n>" workers="2" runtime="2" id="w1"`),
			[]string{"4:42: warning: <work>" + fmt.Sprintf(noAttribute, "id")}, false},
		{"of an operation", `<work name="m" workers="2" runtime="2"><operation type="read" weight="3" ` +
			`config="containers=c(1);objects=c(1)"/></work>`,
			[]string{"4:63: warning: <operation>" + fmt.Sprintf(noAttribute, "weight")}, false},
		{"of a storage that two works share", `<storage type="null" zone="a"/>` +
			ignoredReads(`name="a" workers="1" runtime="1"`) + ignoredReads(`name="b" workers="1" runtime="1"`),
			[]string{"4:22: warning: <storage>" + fmt.Sprintf(noAttribute, "zone")}, false},
		{"a required one that is misspelt", ignoredReads(`name="m" worker="2" runtime="2"`),
			[]string{`4: work "m" has no workers`,
				"4:16: warning: <work>" + fmt.Sprintf(noAttribute, "worker") + `: did you mean "workers"?`}, true},
		{"an end that is misspelt", ignoredReads(`name="m" workers="2" totalops="2"`),
			[]string{`4: work "m" never ends`,
				"4:28: warning: <work>" + fmt.Sprintf(noAttribute, "totalops") + `: did you mean "totalOps"?`}, true},
		{"a type of work", ignoredReads(`name="m" type="mixed" workers="2" runtime="2"`),
			[]string{`4:16: warning: the type "mixed" of <work> is unknown: the work is a normal one, as in COSBench`},
			false},
		{"a type of work that is misspelt",
			`<work type="perpare" workers="1" config="containers=c(1);objects=c(1);sizes=c(1)KB"/>`,
			[]string{`4: work "normal" `,
				`4:7: warning: the type "perpare" of <work> is unknown: the work is a normal one, as in COSBench: ` +
					`did you mean "prepare"?`},
			true},
		{"a type of work of later versions", ignoredReads(`name="m" type="restore" workers="2" runtime="2"`),
			[]string{`4:16: the type of work "restore" of later versions of COSBench is not supported`}, true},
		{"a key", strings.Replace(ignoredReads(`name="m" workers="2" runtime="2"`), `config="`, `config="sise=3;`, 1),
			[]string{`5: warning: the key "sise" in the config of <operation> has no meaning and is ignored: ` +
				`did you mean "sizes"?`}, false},
		{"a key of a storage", fmt.Sprintf(s3, "timeuot=5") + ignoredReads(`name="m" workers="2" runtime="2"`),
			[]string{`4: warning: the key "timeuot" of <storage> has no meaning here and is ignored: ` +
				`did you mean "timeout"?`}, false},
		{"a key of a storage without a value", fmt.Sprintf(s3, "debug") + ignoredReads(`name="m" workers="2" runtime="2"`),
			[]string{`4: warning: there is something without a value in the config of <storage>: it is ignored, ` +
				`as in COSBench`}, false},
		{"an element, which COSBench does not ignore", ignoredReads(`name="m" workers="2" runtime="2"`) + `<works/>`,
			[]string{`5:70: <works> is not allowed in <workstage>: COSBench rejects it too: did you mean "work"? Or in it `},
			true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Parse(around(tt.text), Options{})
			if len(problems) < len(tt.want) || problems.Fatal() != tt.fatal {
				t.Fatalf("fatal: %v, want %v and %q, got %v", problems.Fatal(), tt.fatal, tt.want, problems)
			}
			for i, want := range tt.want {
				if got := problems[i].String(); !strings.HasPrefix(got, want) {
					t.Errorf("got %s\nwant %s", got, want)
				}
			}
		})
	}
}

// TestIgnoredAttributesChangeNothing checks that a workload with attributes that COSBench ignores is the same as one
// without them.
func TestIgnoredAttributesChangeNothing(t *testing.T) {
	plain, problems := Parse(around(ignoredReads(`name="m" workers="2" runtime="2"`)), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	more, problems := Parse(around(ignoredReads(`name="m" id="w1" workers="2" runtime="2" type="mixed" workres="7"`)),
		Options{})
	if d := cmp.Diff(plain, more); d != "" || len(problems) != 3 || problems.Fatal() {
		t.Error(d, problems)
	}
}

// TestErrorsBehindManyWarnings checks that an error is shown however many warnings are before it.
func TestErrorsBehindManyWarnings(t *testing.T) {
	var text strings.Builder
	for i := range maxProblems + 50 {
		text.WriteString(ignoredReads(fmt.Sprintf(`name="w%d" workers="1" runtime="1" id="1"`, i)) + "\n")
	}
	_, problems := Parse(around(text.String()), Options{})
	if last := problems[len(problems)-1]; problems.Fatal() || len(problems) != maxProblems+1 ||
		last != (model.Problem{Warning: true, Message: "and 50 more problems"}) {
		t.Errorf("%d problems, the last is %v", len(problems), last)
	}
	text.WriteString(ignoredReads(`name="last" workers="many" runtime="1"`))
	_, problems = Parse(around(text.String()), Options{})
	if got := fmt.Sprint(problems); !problems.Fatal() || !strings.Contains(got, `304: invalid workers="many"`) {
		t.Error(got)
	}
}
