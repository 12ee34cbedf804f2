package cosbench

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

var update = flag.Bool("update", false, "write the goldens anew")

// TestSamples checks that each sample of COSBench's format runs or is rejected with the line;
// testdata/samples.txt has the messages.
func TestSamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/samples/*.xml")
	var got strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w, problems := Parse(data, Options{})
		verdict := "runs"
		if problems.Fatal() {
			verdict = "does not run"
		}
		works := 0
		for _, s := range w.Stages {
			works += len(s.Works)
		}
		fmt.Fprintf(&got, "%s %s: %d stages, %d works\n", filepath.Base(file), verdict, len(w.Stages), works)
		for _, p := range problems {
			fmt.Fprintf(&got, "  %s\n", p)
		}
	}
	golden := "testdata/samples.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
}

// around returns a workload with a null storage and the given works. The works begin at line 4.
func around(works string) []byte {
	return []byte("<workload name=\"w\">\n<storage type=\"null\"/>\n<workflow><workstage " +
		"name=\"s\">\n" + works + "\n</workstage></workflow></workload>")
}

// TestWhatAWorkSays checks that all attributes and keys of a work and its operations are parsed.
func TestWhatAWorkSays(t *testing.T) {
	w, problems := Parse(around(`<work name="main" workers="3" interval="2" division="object" rampup="5" runtime="1m" rampdown="3" totalOps="7" totalBytes="10MB" afr="10"
  config="containers=r(1,3);oprefix=a" rate="poisson(50)">
<operation type="read" ratio="60" division="container" config="objects=zipf(1,1000000000,0.99);hashCheck=true;length=8KiB;within=1MiB"/>
<operation type="read" ratio="10" config="objects=5-9;oprefix=b;osuffix=.x;cprefix=c"/>
<operation type="multipart" ratio="20" config="objects=u(1,9);sizes=c(20)MiB;partsize=8MiB;content=zero;chunked=true"/>
<operation type="copy" ratio="10" config="objects=u(1,9)"/>
</work>`), Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	containers := selector.Spec{Kind: selector.Range, Low: 1, High: 3}
	name := model.Name{Prefix: "mycontainers"}
	want := model.Work{Name: "main", Kind: model.Normal, Workers: 3, Interval: 2 * time.Second,
		RampUp: 5 * time.Second, Runtime: time.Minute,
		RampDown: 3 * time.Second, TotalOps: 7, TotalBytes: 10e6, MaxFailures: 10, RateText: "poisson(50)",
		Rate: schedule.Poisson{Rate: 50}, Line: 4,
		Store: model.Store{Kind: "null", Settings: map[string]string{}, Auth: map[string]string{},
			Secrets: model.Secrets{}, Line: 2},
		Ops: []model.Op{
			{Type: model.Read, Name: "read", Weight: 60, Division: model.ByContainer, Containers: containers,
				ContainerName: name, ObjectName: model.Name{Prefix: "a"},
				Objects: selector.Spec{Kind: selector.Zipf, Low: 1, High: 1e9, Exponent: 0.99}, Verify: true,
				Length: 8192, Within: 1 << 20, CopyPrefix: "copy-", Line: 6},
			{Type: model.Read, Name: "read-2", Weight: 10, Division: model.ByObject, Containers: containers,
				ContainerName: model.Name{Prefix: "c"},
				ObjectName:    model.Name{Prefix: "b", Suffix: ".x"},
				Objects:       selector.Spec{Kind: selector.Range, Low: 5, High: 9}, CopyPrefix: "copy-", Line: 7},
			{Type: model.MultipartWrite, Name: "multipart", Weight: 20, Division: model.ByObject,
				Containers: containers, ContainerName: name, ObjectName: model.Name{Prefix: "a"},
				Objects: selector.Spec{Kind: selector.Uniform, Low: 1, High: 9},
				Sizes: selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 20, High: 20},
					Unit: 1 << 20},
				Zero: true, Chunked: true, PartSize: 8 << 20, PartConcurrency: 1, CopyPrefix: "copy-", Line: 8},
			{Type: model.Copy, Name: "copy", Weight: 10, Division: model.ByObject, Containers: containers,
				ContainerName: name, ObjectName: model.Name{Prefix: "a"},
				Objects: selector.Spec{Kind: selector.Uniform, Low: 1, High: 9}, CopyPrefix: "copy-", Line: 9},
		}}
	if d := cmp.Diff(want, w.Stages[0].Works[0]); d != "" {
		t.Error(d)
	}
}

// TestSpecialWorks checks that special works go once through the range of their selectors and ignore other
// settings, with a warning, such as totalOps in files that COSBench exports.
func TestSpecialWorks(t *testing.T) {
	const attrs = "workers=\"4\" interval=\"5\"\nrampup=\"1\" division=\"none\" runtime=\"60\" " +
		"rampdown=\"2\"\ntotalOps=\"2\" totalBytes=\"5\" rate=\"constant(1)\" afr=\"7\""
	for kind, division := range map[model.WorkKind]model.Division{model.Init: model.ByContainer,
		model.Prepare: model.ByObject, model.Cleanup: model.ByObject, model.Dispose: model.ByContainer} {
		t.Run(string(kind), func(t *testing.T) {
			const config = `config="containers=r(1,8);objects=r(1,8);sizes=c(1)KB"/>`
			w, problems := Parse(around(fmt.Sprintf("<work type=%q %s %s", kind, attrs, config)), Options{})
			want := fmt.Sprintf("5: warning: a work of type %s ignores runtime, rampup, rampdown, totalOps, "+
				"totalBytes, rate, division: it goes once through all that its selectors cover, divided by %s", kind,
				division)
			if len(problems) != 1 || problems[0].String() != want {
				t.Errorf("want %s\ngot %v", want, problems)
			}
			plain, problems := Parse(around(fmt.Sprintf("<work type=%q workers=\"4\" runtime=\"0\" totalOps=\"0\" "+
				"division=%q afr=\"7\" %s", kind, division, config)), Options{})
			if d := cmp.Diff(plain, w); d != "" || len(problems) > 0 {
				t.Error(d, problems)
			}
			if o := w.Stages[0].Works[0].Ops[0]; o.Division != division {
				t.Errorf("divided by %s", o.Division)
			}
		})
	}
	_, problems := Parse(around("<work type=\"init\" workers=\"1\"\nconfig=\"containers=r(1,8);rate=poisson(5)\"/>"),
		Options{})
	if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "5: warning: a work of type init ignores rate:") {
		t.Error(problems)
	}
}

// TestInheritance checks that the nearest storage and auth replace outer ones completely, and that config
// strings are concatenated from the outermost on, with the last value of a key.
func TestInheritance(t *testing.T) {
	w, problems := Parse([]byte(`<workload name="w" config="containers=c(1);cprefix=top">
<storage type="s3" config="endpoint=http://a:1;region=r;accesskey=k;secretkey=s"/>
<workflow config="cprefix=flow;objects=c(1)">
<workstage name="s" config="osuffix=stage"><storage type="file" config="root=/x"/>
<work name="a" workers="1" totalOps="1" config="osuffix=work"><operation type="read" config="osuffix=op;osuffix=last"/></work>
<work name="b" workers="1" totalOps="1"><storage type="s3" config="endpoint=https://b"/><operation type="read"/></work>
</workstage></workflow></workload>`), Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	a, b := w.Stages[0].Works[0], w.Stages[0].Works[1]
	if a.Store.Kind != "file" || a.Ops[0].ContainerName.Prefix != "flow" || a.Ops[0].ObjectName.Suffix != "last" {
		t.Errorf("a: %+v", a)
	}
	if d := cmp.Diff(map[string]string{"endpoint": "https://b"}, b.Store.Settings); d != "" ||
		len(b.Store.Secrets) != 0 || b.Ops[0].ObjectName.Suffix != "stage" {
		t.Errorf("b: %s %+v", d, b)
	}
}

// TestProblemsHaveTheirLine checks the line and the message of each problem.
func TestProblemsHaveTheirLine(t *testing.T) {
	work := func(attrs, config string) string {
		return fmt.Sprintf("<work name=\"m\" workers=\"2\" %s>\n<operation type=\"read\" config=\"%s\"/></work>",
			attrs, config)
	}
	const good = "containers=c(1);objects=c(1)"
	onStore := func(kind, config string) string {
		return fmt.Sprintf("<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"%s\" config=\"%s\"/>"+
			"<operation type=\"read\" config=\"%s\"/></work>", kind, config, good)
	}
	tests := []struct {
		name, text string // of works
		want       string // the beginning of a problem
	}{
		{"ratios", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"read\" ratio=\"50\" " +
			"config=\"" + good + "\"/></work>", "5: the ratios"},
		{"no end", work("", good), `4: work "m" never ends`},
		{"no workers", "\n<work name=\"m\" runtime=\"1\"><operation type=\"read\" config=\"" + good + "\"/></work>",
			`5: work "m" has no workers`},
		{"selector", work(`runtime="1"`, "containers=u(5,1);objects=c(1)"), "5: containers: selector"},
		{"selector from 0", work(`runtime="1"`, "containers=c(1);objects=r(0,5)"), "5: objects: selector"},
		{"no objects", work(`runtime="1"`, "containers=c(1)"), "5: <operation> does not say which objects"},
		{"runtime", work(`runtime="soon"`, good), "4: runtime of <work>"},
		{"attribute on a line of its own", "<work name=\"m\" workers=\"1\"\n\n runtime=\"-5\"><operation " +
			"type=\"read\" config=\"" + good + "\"/></work>", "6: runtime of <work>"},
		{"attribute", work(`runtime="1" wrokers="3"`, good),
			`4:40: warning: <work> has no attribute wrokers: it is ignored, as in COSBench: did you mean "workers"?`},
		{"key as an attribute", strings.Replace(work(`runtime="1"`, good), `"read"`, `"read" name="range"`, 1),
			`5:24: warning: <operation> has no attribute name: it is ignored, as in COSBench: name is a key of config: ` +
				`write config="name=…"`},
		{"division", work(`runtime="1" division="disk"`, good), `4: invalid division "disk"`},
		{"idle workers", work(`runtime="1" division="object"`, good),
			"5: warning: divided by object, 1 of 2 workers have nothing"},
		{"type", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n\n<operation type=\"raed\" " +
			"config=\"" + good + "\"/></work>", `6: invalid type of operation "raed"`},
		{"kind of work", work(`type="main" runtime="1"`, good),
			`4:28: warning: the type "main" of <work> is unknown: the work is a ` +
				`normal one, as in COSBench: there are normal, init`},
		{"rate", work(`runtime="1" rate="fast"`, good), "4: rate"},
		{"key", work(`runtime="1"`, good+";obejcts=c(2)"), `5: warning: the key "obejcts" in the config of <operation> ` +
			`has no meaning and is ignored: did you mean "objects"?`},
		{"case of a key", work(`runtime="1"`, good+";hashcheck=true"),
			`5: warning: the key "hashcheck" is taken for hashCheck`},
		{"range without size", work(`runtime="1"`, good+";length=4KiB"),
			"5: a range read of 4096 bytes does not give the size of the objects"},
		{"createContainer", work(`runtime="1"`, good+";createContainer=true"),
			"5: warning: createContainer is ignored: only a work of type init does that"},
		{"deleteContainer", "<work type=\"cleanup\" workers=\"1\"\nconfig=\"" + good + ";deleteContainer=true\"/>",
			"5: warning: deleteContainer is ignored: only a work of type dispose does that"},
		{"two keys on a line", work(`runtime="1" config="oprefix=a"`,
			good+"\"/><operation type=\"read\" config=\"obejcts=c(2)"), `5: warning: the key "obejcts"`},
		{"length of a write", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"write\" " +
			"config=\"" + good + ";sizes=c(1)KB;length=4KiB\"/></work>", "5: length is for reads, not for write"},
		{"within of a special work", "<work type=\"prepare\" " +
			"workers=\"1\"\nconfig=\"" + good + ";sizes=c(1)KB;within=4KiB\"/>",
			"5: within is for reads, not for write"},
		{"within alone", work(`runtime="1"`, good+";within=4KiB"), "5: warning: within has no meaning without length"},
		{"range of no length", onStore("s3", "endpoint=http://192.0.2.1:1;is_range_request=true;file_length=9"),
			"5: is_range_request does not say how long"},
		{"newer work", work(`type="mprepare"`, good), `4:28: the type of work "mprepare" of later versions of COSBench is ` +
			`not supported: prepare writes`},
		{"newer operation", strings.Replace(work(`runtime="1"`, good), `"read"`, `"mwrite"`, 1),
			`5: invalid type of operation "mwrite": multipart writes`},
		{"chunks to null", strings.Replace(work(`runtime="1"`, good+";sizes=c(1)KB;chunked=true"), `"read"`,
			`"write"`, 1), "5: warning: chunked=true has no effect on a write to storage null"},
		{"empty objects", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"write\" ratio=\"50\" " +
			"config=\"" + good + ";sizes=u(0,9)KB\"/>\n<operation type=\"read\" ratio=\"50\" " +
			"config=\"" + good + ";hashCheck=true\"/></work>", "5: warning: hashCheck reports objects of 0 bytes"},
		{"objects of a list", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"list\" " +
			"config=\"containers=c(1);objects=c(1)\"/></work>",
			"5: warning: objects is ignored: a list is of a container"},
		{"no storage", onStore("sio", "endpoint=http://192.0.2.1:1"), `5: there is no storage "sio": use s3 with the S3 endpoint of SIO; there are file, mock, `},
		{"no scheme", onStore("s3", "endpoint=[::1]:90"),
			"5: endpoint=[::1]:90 has no scheme: write endpoint=http://[::1]:90, or endpoint=https://[::1]:90 for TLS"},
		{"a list without a scheme", onStore("s3", "endpoints=http://a:1,b:2"), "5: endpoints=http://a:1,b:2 has no scheme"},
		{"credentials in a list", onStore("s3", "endpoints=http://a:1,http://u:p@h"),
			"5: endpoints has credentials in its address"},
		{"half a scheme", onStore("s3", "endpoint=http:/h"), "5: endpoint=http:/h is not an address"},
		{"credentials without a scheme", onStore("s3", "endpoint=u:p@h"), "5: endpoint has credentials in its address"},
		{"credentials in no address", onStore("s3", "endpoint=ftp://u:p@h"),
			"5: endpoint has credentials in its address"},
		{"text", "hello" + work(`runtime="1"`, good), `3: warning: the text "hello"`},
		{"storage", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"ampli\"/><operation " +
			"type=\"read\" config=\"" + good + "\"/></work>", `5: there is no storage "ampli": use s3`},
		{"variable", "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"s3\" " +
			"config=\"endpoint=${NOWHERE}\"/><operation type=\"read\" config=\"" + good + "\"/></work>",
			"5: endpoint is taken from NOWHERE"},
		{"unclosed", "<work>\n<operation", "6: this is no XML"},
		{"two of a name", work(`runtime="1"`, good) + "\n" + work(`runtime="1"`, good),
			`6: warning: there is a work "m" before: this one is called "m-2"`},
		{"bytes that never move", "<work name=\"m\" workers=\"1\" totalBytes=\"5\">\n<operation type=\"head\" " +
			"config=\"" + good + "\"/></work>", `4: work "m" never ends`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Parse(around(tt.text), Options{})
			for _, p := range problems {
				if strings.HasPrefix(p.String(), tt.want) {
					return
				}
			}
			t.Errorf("want %q…, got %v", tt.want, problems)
		})
	}
}

// TestAuthsThatMeanNothing checks that settings of an auth without effect are reported, each at its line, and
// that text that is not a known setting is not shown, since it may be part of a password.
func TestAuthsThatMeanNothing(t *testing.T) {
	const file = "<workload name=\"w\"><storage type=%q config=%q/>\n<auth type=%q config=%q/>\n" +
		"<workflow><workstage name=\"s\"><work name=\"m\" workers=\"1\" totalOps=\"1\"><operation type=\"read\" " +
		"config=\"containers=c(1);objects=c(1)\"/></work></workstage></workflow></workload>"
	for _, tt := range []struct{ storage, config, auth, keys, want string }{
		{"swift", "", "keystone", "username=u;password=p;auth_url=http://h:1/v3;service=a " +
			"b;userid=7;timeout=5;token=t", `[` +
			`2: warning: the key "service" of <auth> has no meaning here and is ignored: ` +
			`the service of type object-store is taken ` +
			`2: warning: the key "timeout" of <auth> has no meaning here and is ignored: that of the storage holds for it too ` +
			`2: warning: the key "token" of <auth> has no meaning here and is ignored: give it to the storage, with storage_url ` +
			`2: warning: the key "userid" of <auth> has no meaning here and is ignored: username says who it is]`},
		{"null", "", "none", "username=u",
			`[2: warning: the key "username" of <auth> has no meaning here and is ignored]`},
		{"null", "", "none", "password=p;ssw", `[2: warning: there is something without a value in the config of <auth>: it is ignored, as in COSBench: write key=value; a ";" ends a value 2: warning: the key "password" of <auth> has no meaning here and is ignored]`},
		{"s3", "endpoint=http://192.0.2.1:1", "swauth", "username=u;password=p",
			`[2: warning: auth swauth is ignored: storage s3 needs none]`},
		{"swift", "", "swauth", "auth_url=http://h:1;username=u;password=p;ssw",
			`[2: warning: there is something without a value in the config of <auth>: it is ignored, as in COSBench: ` +
				`write key=value; a ";" ends a value]`},
	} {
		w, problems := Parse(fmt.Appendf(nil, file, tt.storage, tt.config, tt.auth, tt.keys), Options{})
		if d := cmp.Diff(tt.want, fmt.Sprint(problems)); d != "" {
			t.Errorf("%s %s: %s", tt.auth, tt.keys, d)
		}
		if s := w.Stages[0].Works[0].Store; s.Secrets["token"] != "" || s.AuthKind == "none" && len(s.Secrets) > 0 {
			t.Errorf("%s %s: there are %s", tt.auth, tt.keys, s.Secrets)
		}
	}
}

// TestNamesOfAuthKeys checks COSBench's other names for keys of an auth. If both are given, the key itself is
// used.
func TestNamesOfAuthKeys(t *testing.T) {
	for _, tt := range []struct {
		keys string
		want map[string]string
	}{
		{"username=u;url=http://h/v3;tenname=t",
			map[string]string{"username": "u", "auth_url": "http://h/v3", "tenant_name": "t"}},
		{"username=u;url=http://other;auth_url=http://h/v3;tenant_name=t;tenname=other",
			map[string]string{"username": "u", "auth_url": "http://h/v3", "tenant_name": "t"}},
	} {
		for _, kind := range []string{"keystone", "swauth"} {
			w, problems := Parse(around(fmt.Sprintf(`<work name="m" workers="1" totalOps="1">`+
				`<storage type="swift"/><auth type=%q config=%q/>`+
				`<operation type="read" config="containers=c(1);objects=c(1)"/></work>`,
				kind, tt.keys)), Options{})
			if d := cmp.Diff(tt.want, w.Stages[0].Works[0].Store.Auth); d != "" || len(problems) > 0 {
				t.Errorf("%s %s: %s%v", kind, tt.keys, d, problems)
			}
		}
	}
}

// TestKeysOfStorages checks that keys of COSBench's S3 adaptors are used, are rejected if they change the
// measurement, or are reported as ignored with their replacement.
func TestKeysOfStorages(t *testing.T) {
	for _, tt := range []struct{ key, region, want string }{
		{"aws_region=eu-1", "eu-1", ""},
		{"region=eu-2;aws_region=eu-1", "eu-2", ""},
		{"storage_class=GLACIER", "", "4: storage_class=GLACIER is not supported: leave it out"},
		{"storage_class=standard", "", `4: warning: the key "storage_class" of <storage> has no meaning`},
		{"max_connections=9", "", "is ignored: each worker has a connection of its own"},
		{"part_size=5242880", "", "is ignored: partsize of an operation multipart"},
	} {
		w, problems := Parse(around(fmt.Sprintf(`<work name="m" workers="1" totalOps="1">`+
			`<storage type="s3" config="endpoint=http://[::1];%s"/>`+
			`<operation type="read" config="containers=c(1);objects=c(1)"/></work>`, tt.key)), Options{})
		got := strings.Trim(fmt.Sprint(problems), "[]")
		r := w.Stages[0].Works[0].Store.Settings["region"]
		if r != tt.region || !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: region %q, %s; want %q, %s", tt.key, r, got, tt.region, tt.want)
		}
	}
}

// TestSwitches checks that true and false can be in upper or lower case, as in COSBench.
func TestSwitches(t *testing.T) {
	w, problems := Parse(around("<work name=\"m\" workers=\"1\" totalOps=\"1\">"+
		"<storage type=\"s3\" config=\"endpoint=http://192.0.2.1:1;path_style_access=False;no_verify_ssl=YES\"/>"+
		"<operation type=\"read\" config=\"containers=c(1);objects=c(1);hashCheck=True\"/></work>"), Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	got := w.Stages[0].Works[0]
	if s := got.Store.Settings; s["path_style_access"] != "false" || s["no_verify_ssl"] != "true" ||
		!got.Ops[0].Verify {
		t.Errorf("%v, %+v", s, got.Ops[0])
	}
}

// TestChunksToS3 checks that chunked transfer encoding to S3 is reported for each operation that would use
// it, including special works, and for no other.
func TestChunksToS3(t *testing.T) {
	const s3 = "<storage type=\"s3\" config=\"endpoint=http://192.0.2.1:1\"/>"
	const text = "<work name=\"p\" type=\"prepare\" workers=\"1\" config=\"%[1]s\">" + s3 + "</work>\n" +
		"<work name=\"m\" workers=\"1\" runtime=\"1\" config=\"%[1]s\">" + s3 + "\n" +
		"<operation type=\"write\" ratio=\"20\"/>\n<operation type=\"filewrite\" ratio=\"20\" config=\"files=/\"/>\n" +
		"<operation type=\"multipart\" ratio=\"20\"/>\n<operation type=\"read\" ratio=\"40\"/></work>"
	_, problems := Parse(around(fmt.Sprintf(text, "containers=c(1);objects=c(1);sizes=c(1)KB;chunked=true")), Options{})
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{"4: storage s3 refuses chunked transfer encoding: each write would fail: leave chunked=true out",
		"6: storage s3 refuses chunked transfer encoding: each write would fail: leave chunked=true out",
		"7: storage s3 refuses chunked transfer encoding: each filewrite would fail: leave chunked=true out",
		"8: warning: chunked=true has no effect on a multipart to storage s3"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFilesMadeToHurt checks that malicious files are rejected.
func TestFilesMadeToHurt(t *testing.T) {
	bomb := "<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 " +
		"\"&lol;&lol;&lol;\">]>\n<workload name=\"&lol2;\"/>"
	var manyAttributes strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&manyAttributes, "a%d=\"\"\n", i)
	}
	external := "<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><workload name=\"&e;\"/>"
	tests := []struct{ name, text, want string }{
		{"entity bomb", bomb, "2: document types are not supported"},
		{"external entity", external, "1: document types are not supported"},
		{"unknown entity", "<workload name=\"&x;\"/>", "1: this is no XML"},
		{"deep", strings.Repeat("<a>", 100000), "1: elements are nested"},
		{"many elements", "<workload name=\"w\">" + strings.Repeat("<a/>", maxElements+5) + "</workload>",
			"1: there are more than"},
		{"many attributes", "<workload\n" + manyAttributes.String() + "/>", "<workload> has more than 100 attributes"},
		{"many entries", "<workload name=\"w\"\nconfig=\"" + strings.Repeat("a=b;",
			1<<20) + "\"><workflow>" + strings.Repeat("<workstage/>", 100_000) + "</workflow></workload>",
			"2: the config of <workload> has more than 100 entries"},
		{"nothing", "", "1: the file has no XML element"},
		{"no XML", "apiVersion: v1\nkind: Benchmark\n", "the file has no XML element"},
		{"a quote without end", "<workload name=\"w\n\n>", "this is no XML"},
		{"another document", "<html><body/></html>", "1: <html> is not a COSBench workload"},
		{"UTF-16", "\xff\xfe<\x00w\x00", "this is no XML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			_, problems := Parse([]byte(tt.text), Options{})
			if !problems.Fatal() || !strings.Contains(fmt.Sprint(problems), tt.want) {
				t.Errorf("want %q, got %v", tt.want, problems)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestTenMegabytes checks that a file of 10 MB is parsed and checked in seconds.
func TestTenMegabytes(t *testing.T) {
	var b strings.Builder
	const work = "<work name=\"w%d\" workers=\"1\" totalOps=\"5\"><operation type=\"read\" " +
		"config=\"containers=c(1);objects=u(1,99999)\"/></work>\n"
	n := 0
	for ; b.Len() < 10<<20; n++ {
		fmt.Fprintf(&b, work, n)
	}
	start := time.Now()
	w, problems := Parse(around(b.String()), Options{})
	if problems.Fatal() || len(w.Stages[0].Works) != n {
		t.Errorf("%d works of %d, %v", len(w.Stages[0].Works), n, problems[:min(len(problems), 3)])
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	b.Reset()
	for n = 0; b.Len() < 10<<20; n++ { // each work with checks is compared with all others
		fmt.Fprintf(&b, "<work name=\"w%d\" workers=\"1\" totalOps=\"5\"><operation type=\"delete\" "+
			"config=\"check=readAfterDelete;containers=c(1);oprefix=o%dx;objects=c(1)\"/></work>\n", n, n)
	}
	if _, problems = Parse(around(b.String()), Options{}); !problems.Fatal() ||
		!strings.Contains(fmt.Sprint(problems), `workstage "s" has more than 1000 works with checks`) {
		t.Errorf("%v", problems[:min(len(problems), 3)])
	}
	_, problems = Parse(around(strings.Repeat("<work/>\n", 100000)), Options{})
	if !problems.Fatal() || len(problems) > maxProblems+1 {
		t.Errorf("%d problems", len(problems))
	}
}

// TestCredentialsAreKeptApart checks that credentials are only in Secrets and are not printed.
func TestCredentialsAreKeptApart(t *testing.T) {
	env := func(name string) (string, bool) { return "from-" + name, name == "KEY" }
	data := around(`<work name="m" workers="1" totalOps="1">
<storage type="s3" config="endpoint=http://h:1;accesskey=AK;secretkey=${KEY}"/>
<operation type="read" config="containers=c(1);objects=c(1)"/></work>`)
	w, problems := Parse(data, Options{Getenv: env})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	s := w.Stages[0].Works[0].Store
	if s.Secrets["secretkey"] != "from-KEY" || s.Secrets["accesskey"] != "AK" || s.Settings["secretkey"] != "" {
		t.Errorf("%#v", s.Settings)
	}
	for _, text := range []string{fmt.Sprintf("%v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%+v", *w)} {
		if strings.Contains(text, "from-KEY") || strings.Contains(text, "AK") && !strings.Contains(text, "TASK") {
			t.Errorf("a secret is in %s", text)
		}
	}
}

// TestRedact checks that no part of the value of a secret is left anywhere in the text.
func TestRedact(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", `<a config="accesskey=AK1;secretkey = s3cr3t/+=;x=y"/>`,
			`<a config="accesskey=***;secretkey = ***;x=y"/>`},
		{"entity", `<a config="password=p&amp;ssw0rd&#59;x;auth_url=u"/>`, `<a config="password=***;auth_url=u"/>`},
		{"entity at the end", `<a config="password=p&#x26;"/>`, `<a config="password=***"/>`},
		{"blank", `<a config="password=a b ; x=y"/>`, `<a config="password=*** ; x=y"/>`},
		{"apostrophe", `<a config="password=a'b"/>`, `<a config="password=***"/>`},
		{"quote", `<a config = 'password=a"b;x=y'/>`, `<a config = 'password=***;x=y'/>`},
		{"bracket", `<a config="password=a>b" x="y"/>`, `<a config="password=***" x="y"/>`},
		{"placeholder", `<a config="accesskey=<key>;x=y"/>`, `<a config="accesskey=***;x=y"/>`},
		{"lines", "<a\n config=\"\n token=t\n;\n x=y\"/>", "<a\n config=\"\n token=***\n;\n x=y\"/>"},
		{"part of a key", `<a config="aws_secret_access_key=k1"/>`, `<a config="aws_secret_access_key=***"/>`},
		{"no value", `<a config="password=;x=y"/>`, `<a config="password=;x=y"/>`},
		{"comment", `<!-- don't: password=a'b c>d -->`, `<!-- don't: password=*** -->`},
		{"element in a comment", `<!-- it's <a config="token=a b"/> --><b x="y"/>`,
			`<!-- it's <a config="token=***"/> --><b x="y"/>`},
		{"quoted in a comment", `<!-- password="a b" -->`, `<!-- password=*** -->`},
		{"quote without end in a comment", `<!-- x="password=a b -->`, `<!-- x="password=*** -->`},
		{"end of a comment in a value", `<a config="password=x-->"/><!--password=x]]>-->`,
			`<a config="password=***"/><!--password=***-->`},
		{"elsewhere", `<a config="password=p&amp;ss'w;x=y"/><!-- it is p&ss'w, p&amp;ss&apos;w or p&amp;ss&#39;w -->`,
			`<a config="password=***;x=y"/><!-- it is ***, *** or *** -->`},
		{"one in another", `<a config="token=abcd;password=abcdef"/><!--abcdef abcd-->`,
			`<a config="token=***;password=***"/><!--*** ***-->`},
		{"short", `<a config="password=a"/>`, `<a config="password=***"/>`},
		{"obfuscated key", `<a config="pass&#119;ord&#61;s3cr3t;x=y"/>`, `<a config="pass&#119;ord&#61;***;x=y"/>`},
		{"obfuscated elsewhere", `<a config="password=s3cr3t"/><!-- &#x73;3cr3t, s3c&#114;3t -->`,
			`<a config="password=***"/><!-- ***, *** -->`},
		{"as it is written", `<!-- x&amp;y x&amp;amp;y -->`, `<!-- *** *** -->`},
		{"twice", `<a config="password=s3cr3t"/><!-- s3cr3ts3cr3t -->`, `<a config="password=***"/><!-- *** -->`},
		{"like a key", `<a config="accesskey=test;secretkey=secret;x=latest"/><!-- my secret, test=1 -->`,
			`<a config="accesskey=***;secretkey=***;x=la***"/><!-- my ***, ***=1 -->`},
		{"like a key of others", `<a config="aws_secret_access_key=secret;cprefix=x"/><b config="password=prefix;SECRETKEY = y"/>`, `<a config="aws_secret_access_key=***;cprefix=x"/><b config="password=***;SECRETKEY = ***"/>`},
		{"more than a key", `<a config="password=objects=&#59;"/><b objects="objects=;x"/>`,
			`<a config="password=***"/><b objects="***x"/>`},
		{"known", `<a config="secretkey=${KEY}"/><!-- of-env -->`, `<a config="secretkey=***"/><!-- *** -->`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, string(Redact([]byte(tt.text), "of-env", "x&amp;y"))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRedactTenMegabytes checks that the time for a file with many secrets grows about as its size.
func TestRedactTenMegabytes(t *testing.T) {
	redact := func(size int) time.Duration {
		var b strings.Builder
		n := 0
		for ; b.Len() < size; n++ {
			fmt.Fprintf(&b, "<storage config=\"accesskey=key%dx;secretkey=secret%dx\"/><!-- secret%dx &amp; more -->\n",
				n, n, n)
		}
		start := time.Now()
		got := string(Redact([]byte(b.String()), "key1x", "of-env"))
		if strings.Count(got, "***") != 3*n || strings.Contains(got, "secret1") {
			t.Errorf("%d of %d", strings.Count(got, "***"), 3*n)
		}
		return time.Since(start)
	}
	part, whole := redact(10<<20/16), redact(10<<20)
	if whole > 100*part { // 256 times if it were quadratic
		t.Errorf("10 MiB in %v, a sixteenth of it in %v", whole, part)
	}
}

var beforeEquals = regexp.MustCompile(`([A-Za-z_]+)[\s\p{Z}]*=`)

// FuzzRedact checks that no part of a password is left and that the text around it is unchanged.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"p&ssw0rd", "a b", "a'b", `a"b`, "a>b", "a<b", "a;b;", "token=x", "-->", "&amp;",
		"ö=ß", "]]>", "\u00a0x"} {
		f.Add(s, s)
	}
	escape := func(t *testing.T, text string) string {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	f.Fuzz(func(t *testing.T, password, elsewhere string) {
		var parts []string
		for part := range strings.SplitSeq(password, ";") {
			parts = append(parts, escape(t, part))
		}
		value := strings.Trim(strings.Join(parts, "&#59;"), " ")
		plain := strings.TrimSpace(html.UnescapeString(value)) // as the config string is parsed
		const before, after = `<workload config="password=`, `;a=b" description="`
		got := string(Redact([]byte(before + value + after + escape(t, elsewhere) + `"/>`)))
		if strings.Contains(plain, "*") || strings.HasPrefix(plain, "=") || strings.Contains(before+after, plain) {
			return // it cannot be distinguished from the text around it
		}
		if slices.ContainsFunc(beforeEquals.FindAllStringSubmatch(elsewhere, -1),
			func(m []string) bool { return keyName().MatchString(m[1]) && strings.Contains(m[1], plain) }) {
			return // there it is part of a key's name
		}
		if !strings.HasPrefix(got, before+"***;") {
			t.Errorf("of %q is left %s", value, got)
		}
		if len(plain) >= tellingSecret && (strings.Contains(got, plain) || strings.Contains(got, escape(t, plain))) {
			t.Errorf("%q stands in %s", plain, got)
		}
	})
}

// TestSecretsThatWouldBeKept checks that a secret in text that a run stores is an error at its line, and that
// a secret elsewhere, or an access key that is a common word, is not.
func TestSecretsThatWouldBeKept(t *testing.T) {
	const file = "<workload name=%q description=%q>\n" +
		"<storage type=\"s3\" config=\"endpoint=http://192.0.2.1:1;accesskey=%s;secretkey=${KEY}\"/>\n" +
		"<workflow><workstage name=%q>\n<work name=%q workers=\"1\" totalOps=\"1\">\n<operation type=\"read\" " +
		"config=\"containers=c(1);objects=c(1);cprefix=%s;hello=%s\"/></work></workstage></workflow></workload>"
	o := Options{Getenv: func(string) (string, bool) { return "s3cr&t", true }}
	for _, tt := range []struct {
		texts []any
		want  string
	}{
		{[]any{"w", "d", "minio", "s", "m", "p", "h"}, ""},
		{[]any{"a s3cr&amp;t", "d", "minio", "s", "m", "p", "h"}, "1: the name of <workload> contains a secret"},
		{[]any{"w", "&#x73;3cr&amp;t!", "minio", "s", "m", "p", "h"},
			"1: the description of <workload> contains a secret"},
		{[]any{"w", "d", "minio", "s3cr&amp;t", "m", "p", "h"}, "3: the name of <workstage> contains a secret"},
		{[]any{"w", "d", "minio", "s", "s3cr&amp;t", "p", "h"}, "4: the name of <work> contains a secret"},
		{[]any{"w", "d", "minio", "s", "m", "s3cr&amp;t", "h"}, "5: the config of <operation> contains a secret"},
		{[]any{"w", "d", "minio", "s", "m", "p", "s3cr&amp;t"}, ""}, // a key without effect
		{[]any{"minio", "d", "minio", "s", "m", "p", "h"}, ""},
		{[]any{"w", "for AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "s", "m", "p", "h"},
			"1: the description of <workload> contains a secret"},
	} {
		_, problems := Parse(fmt.Appendf(nil, file, tt.texts...), o)
		if got := fmt.Sprint(problems); problems.Fatal() != (tt.want != "") || !strings.Contains(got, tt.want) ||
			strings.Contains(got, "s3cr") || strings.Contains(got, "AKIA") {
			t.Errorf("%v: %s, want %s", tt.texts, got, tt.want)
		}
	}
	o.Secrets = func(*model.Store) (model.Secrets, error) { return model.Secrets{"password": "elsewhere"}, nil }
	if _, problems := Parse(fmt.Appendf(nil, file, "from elsewhere", "d", "minio", "s", "m", "p", "h"),
		o); !problems.Fatal() {
		t.Error("a secret that stands in no file is not found in it")
	}
}

// TestStagesOfOneName checks that stages with the same name get numbers, since results are stored by stage
// name.
func TestStagesOfOneName(t *testing.T) {
	var stages strings.Builder
	for _, name := range []string{"main", "main", "main-2", "main", "rest"} {
		fmt.Fprintf(&stages, "\n<workstage name=%q><work type=\"init\" workers=\"1\" "+
			"config=\"containers=c(1)\"/></workstage>", name)
	}
	w, problems := Parse([]byte("<workload name=\"w\"><storage "+
		"type=\"none\"/><workflow>"+stages.String()+"</workflow></workload>"), Options{})
	var got []string
	for _, s := range w.Stages {
		got = append(got, s.Name)
	}
	want := `[3: warning: there is a workstage "main" before: this one is called "main-3" 5: warning: there is a workstage "main" before: this one is called "main-4"]`
	if d := cmp.Diff([]string{"main", "main-3", "main-2", "main-4", "rest"}, got); d != "" ||
		fmt.Sprint(problems) != want {
		t.Error(d, problems)
	}
}

// TestEncodings checks that any declared encoding is accepted if the text is also valid UTF-8.
func TestEncodings(t *testing.T) {
	const file = "<?xml version=\"1.0\" encoding=%q?>\n<workload name=\"w\" description=\"%s\"><storage " +
		"type=\"null\"/><workflow><workstage name=\"s\"><work type=\"init\" workers=\"1\" " +
		"config=\"containers=c(1)\"/></workstage></workflow></workload>"
	for _, tt := range []struct{ encoding, text, want string }{
		{"UTF-8", "ö", "[]"}, {"UTF8", "ö", "[]"}, {"US-ASCII", "o", "[]"}, {"ISO-8859-1", "o", "[]"},
		{"GBK", "o", "[]"},
		{"ISO-8859-1", "\xf6", `[1: unsupported encoding "ISO-8859-1": save the file as UTF-8]`},
	} {
		if _, problems := Parse(fmt.Appendf(nil, file, tt.encoding, tt.text),
			Options{}); fmt.Sprint(problems) != tt.want {
			t.Errorf("%s: %v, want %s", tt.encoding, problems, tt.want)
		}
	}
}

// FuzzParse checks that problems have a valid line and that an accepted workload can be run.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/samples/*.xml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`<workload name="w"><workflow><workstage name="s"><work type="delay"/></workstage></workflow></workload>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, problems := Parse(data, Options{})
		lines := strings.Count(string(data), "\n") + 1
		for _, p := range problems {
			if p.Line < 0 || p.Line > lines || p.Message == "" {
				t.Errorf("%+v in a file of %d lines", p, lines)
			}
		}
		if problems.Fatal() {
			return
		}
		for _, s := range w.Stages {
			for i := range s.Works {
				for _, o := range s.Works[i].Ops {
					if o.Containers.Check() != nil || s.Works[i].Workers < 1 {
						t.Errorf("what was taken cannot be run: %+v", o)
					}
				}
			}
		}
	})
}

// TestConstantsOfSeveralNumbers checks that the first number of a constant is used, as in COSBench, with a warning.
func TestConstantsOfSeveralNumbers(t *testing.T) {
	w, problems := Parse(around(`<work workers="1" runtime="1"><operation type="write" config="containers=c(3,4);objects= c( 5 , 6,7);sizes=c(1,10)MB"/></work>`), Options{})
	if problems.Fatal() || len(problems) != 3 || !strings.Contains(fmt.Sprint(problems),
		"c(1,10)MB is taken for c(1)MB, as in COSBench: u(a,b) draws numbers between two") {
		t.Fatal(problems)
	}
	o := w.Stages[0].Works[0].Ops[0]
	if o.Containers.Low != 3 || o.Containers.High != 3 || o.Objects.High != 5 || o.Sizes.Max() != 1e6 {
		t.Errorf("%+v", o)
	}
	if _, problems := Parse(around(`<work workers="1" runtime="1"><operation type="write" config="containers=c(3,x;objects=c(5);sizes=c(x,10)MB"/></work>`), Options{}); !problems.Fatal() {
		t.Error("a broken constant was taken")
	}
}

// TestShapesOfContents checks the keys of contents that can be reduced, and of hashed names.
func TestShapesOfContents(t *testing.T) {
	for config, want := range map[string]string{
		"compressible=101":            "invalid compressible=101: a whole number from 0 to 100",
		"dedupable=-1":                "invalid dedupable=-1",
		"hashprefix=9":                "invalid hashprefix=9: a whole number from 0 to 8",
		"dedupable=10;content=zero":   "zeros have no dedupable",
		"dedupable=10;sizes=c(4)KiB":  "smaller objects are never alike",
		"compressible=100;dedupable=": "",
	} {
		_, problems := Parse(around(`<work workers="1" runtime="1"><operation type="write" config="containers=c(1);objects=c(1);sizes=c(64)KiB;`+config+`"/></work>`), Options{})
		if got := fmt.Sprint(problems); !strings.Contains(got, want) || want == "" && len(problems) > 0 {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

// TestNamesOfOperations checks that an operation has its own name, or the name of its type if its own is
// invalid.
func TestNamesOfOperations(t *testing.T) {
	read := func(config string) string {
		return `<operation type="read" ratio="20" config="containers=c(1);objects=c(1)` + config + `"/>`
	}
	w, problems := Parse(around(`<work workers="1" runtime="1" config="name=all">`+read(";name=small")+read("")+read(";name=read")+read(";name=small")+read(";name=a.b")+`</work>`), Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	var names []string
	for _, o := range w.Stages[0].Works[0].Ops {
		names = append(names, o.Name)
	}
	if want := []string{"small", "read", "read-2", "read-3", "read-4"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	said := fmt.Sprint(problems)
	for _, want := range []string{`"name" in the config of <operation> has no meaning`,
		`there is a "small" before in the work`, `invalid name "a.b"`} {
		if strings.Count(said, want) != 1 {
			t.Errorf("not said once: %s\n%s", want, said)
		}
	}
}

// TestHiddenCredentials checks that the *** that a bundle has instead of credentials is not used as a
// credential.
func TestHiddenCredentials(t *testing.T) {
	const file = `<workload name="w"><storage type="s3" config="endpoint=http://192.0.2.1:1;accesskey=***;secretkey=***"/>
<workflow><workstage name="s"><work name="m" workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work></workstage></workflow></workload>`
	w, problems := Parse([]byte(file), Options{})
	if got := fmt.Sprint(problems); problems.Fatal() ||
		strings.Count(got, "is ***, which a bundle has in the place of a credential") != 2 {
		t.Errorf("%s", got)
	}
	if secrets := w.Stages[0].Works[0].Store.Secrets; len(secrets) > 0 {
		t.Errorf("%d credentials are left", len(secrets))
	}
}

// TestDeclinedIsDocumented checks that the guide for COSBench's files names each storage that is declined.
func TestDeclinedIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/cosbench.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range declined {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("docs/how-to/cosbench.md does not name the declined storage %s", kind)
		}
	}
}
