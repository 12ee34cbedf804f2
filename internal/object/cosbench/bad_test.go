package cosbench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/schedule"
)

// fails reports whether a file has a fatal problem that begins with want (line and message), and is parsed
// within 20 s. If not, it also returns the reason.
func fails(text, want string) (string, bool) {
	start := time.Now()
	_, problems := Parse(around(text), Options{})
	if took := time.Since(start); took > 20*time.Second {
		return fmt.Sprintf("it took %v", took), false
	}
	for _, p := range problems {
		if !p.Warning && strings.HasPrefix(p.String(), want) {
			return "", true
		}
	}
	return fmt.Sprintf("want %q…, got %v", want, problems), false
}

// TestRatios checks that ratios must be integers with a sum of 100.
func TestRatios(t *testing.T) {
	for _, ratios := range [][]string{{"99"}, {"101"}, {"50", "49"}, {"60", "60"}, {"0"}, {"0", "0"}, {"-1", "101"},
		{"33.3", "66.7"}, {"many"}, {"9223372036854775807", "1"}, {"2147483647", "2147483749"}} {
		text := "<work name=\"m\" workers=\"1\" runtime=\"1\">"
		for _, r := range ratios {
			text += fmt.Sprintf("\n<operation type=\"read\" ratio=\"%s\" config=\"containers=c(1);objects=c(1)\"/>", r)
		}
		_, problems := Parse(around(text+"</work>"), Options{})
		if !problems.Fatal() || problems[0].Line < 4 || problems[0].Line > 4+len(ratios) ||
			!strings.Contains(fmt.Sprint(problems), "ratio") {
			t.Errorf("%v: %v", ratios, problems)
		}
	}
	for _, ratios := range [][]string{{"100"}, {"80", "20"}, {"100", "0"}} { // 0: the operation is never drawn
		text := "<work name=\"m\" workers=\"1\" runtime=\"1\">"
		for _, r := range ratios {
			text += fmt.Sprintf("\n<operation type=\"read\" ratio=\"%s\" config=\"containers=c(1);objects=c(1)\"/>", r)
		}
		if _, problems := Parse(around(text+"</work>"), Options{}); problems.Fatal() {
			t.Errorf("%v: %v", ratios, problems)
		}
	}
}

// TestSelectorsOutOfRange checks that invalid selectors are an error at their line.
func TestSelectorsOutOfRange(t *testing.T) {
	for _, s := range []string{"", "c", "c()", "c(0)", "c(-1)", "c(1.5)", "c(99999999999999999999)", "u(0,5)",
		"u(5,1)", "u(1)", "u(1,2,3)", "u(-5,5)", "u(1,9223372036854775808)",
		"r(3)", "r(0,1)", "s(2,1)", "5-1", "-5", "1-", "h()", "h(1|5)", "h(5|1|10)", "h(1|5|-3)", "h(1|5|0)",
		"h(0|5|10)", "h(1|5|9223372036854775807,6|9|9223372036854775807)",
		"zipf(1,5)", "zipf(1,5,0)", "zipf(1,5,-1)", "zipf(1,5,NaN)", "zipf(1,5,Inf)", "hot(1,5,0%,50%)",
		"hot(1,5,101%,50%)", "hot(1,5,20%,-1%)", "x(1,2)", "u(1,2", "u 1,2", strings.Repeat("u(", 1000)} {
		for _, key := range []string{"containers", "objects"} {
			other := map[string]string{"containers": "objects", "objects": "containers"}[key]
			text := fmt.Sprintf("<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"read\" "+
				"config=\"%s=%s;%s=c(1)\"/></work>", key, s, other)
			if why, ok := fails(text, "5: "+key); !ok {
				t.Errorf("%s=%s: %s", key, s, why)
			}
		}
	}
	for _, s := range []string{"", "KB", "c(64)", "u(1,8)", "64",
		"c(5)PB", "c(-5)KB", "u(9,1)KB", "c(9223372036854775807)GB", "u(1,9223372036854775807)KiB",
		"h(1|2|3", "zipf(1,2)KB"} {
		text := fmt.Sprintf("<work name=\"m\" workers=\"1\" runtime=\"1\">\n<operation type=\"write\" "+
			"config=\"containers=c(1);objects=c(1);sizes=%s\"/></work>", s)
		if why, ok := fails(text, "5: sizes"); !ok {
			t.Errorf("sizes=%s: %s", s, why)
		}
	}
}

// TestPlaceholders checks that a placeholder instead of a value is an error.
func TestPlaceholders(t *testing.T) {
	for _, p := range []string{"<endpoint>", "&lt;endpoint&gt;", "{{endpoint}}", "[endpoint]", "...", "…", "MODIFYME",
		"CHANGE_ME", "YOUR_ENDPOINT", "HOSTNAME"} {
		text := fmt.Sprintf("<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"s3\" "+
			"config=\"endpoint=%s;accesskey=a;secretkey=b\"/>\n"+
			"<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work>", p)
		if why, ok := fails(text, "5: endpoint is still the placeholder"); !ok {
			t.Errorf("%s: %s", p, why)
		}
	}
}

// TestNamesThatCannotBeHosts checks that a bucket name that becomes part of a host name must be valid there.
func TestNamesThatCannotBeHosts(t *testing.T) {
	const text = "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"s3\" " +
		"config=\"endpoint=http://h;path_style_access=%s\"/>\n" +
		"<operation type=\"read\" config=\"containers=c(1);objects=c(1);cprefix=%s\"/></work>"
	if why, ok := fails(fmt.Sprintf(text, "false", "my/bucket "), `6: a bucket whose name has "my/bucket" in it`); !ok {
		t.Error(why)
	}
	for access, prefix := range map[string]string{"true": "my/bucket", "false": "my.bucket-"} {
		if _, problems := Parse(around(fmt.Sprintf(text, access, prefix)), Options{}); problems.Fatal() {
			t.Errorf("path_style_access=%s, cprefix=%s: %v", access, prefix, problems)
		}
	}
}

// TestWhereBucketsStand checks the warning if COSBench would put buckets into the host name and the file does
// not set path_style_access.
func TestWhereBucketsStand(t *testing.T) {
	for config, warned := range map[string]bool{
		"endpoint=http://s3.example.com": true, "endpoint=https://s3.example.com:9000": true,
		"endpoint=http://s3.example.com;path_style_access=true":  false,
		"endpoint=http://s3.example.com;path_style_access=false": false, "endpoint=http://192.0.2.1:9000": false,
		"endpoint=http://[2001:db8::1]:9000": false,
	} {
		_, problems := Parse(around("<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"s3\" "+
			"config=\""+config+"\"/>\n"+
			"<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work>"), Options{})
		if got := strings.Contains(fmt.Sprint(problems), "buckets are part of the path"); got != warned ||
			problems.Fatal() {
			t.Errorf("%s: %v", config, problems)
		}
	}
}

// TestSwiftWithoutAuth checks that the file must give the URL of a Swift account without auth, and that its
// token can be one of the credentials.
func TestSwiftWithoutAuth(t *testing.T) {
	const text = "<work name=\"m\" workers=\"1\" runtime=\"1\">\n<storage type=\"swift\" " +
		"config=\"%s\"/>\n<operation type=\"read\" config=\"containers=c(1);objects=c(1)\"/></work>"
	if why, ok := fails(fmt.Sprintf(text, "token=t"), "5: storage swift does not say how to get a token"); !ok {
		t.Error(why)
	}
	for _, config := range []string{"storage_url=http://h/v1/a", "storage_url=http://h/v1/a;token=t",
		"storage_url=http://h/v1/a;credentials=/keys"} {
		if _, problems := Parse(around(fmt.Sprintf(text, config)), Options{}); problems.Fatal() {
			t.Errorf("%s: %v", config, problems)
		}
	}
}

// TestNumbersThatCannotBe checks that numbers outside of their range are an error.
func TestNumbersThatCannotBe(t *testing.T) {
	for _, a := range []string{`workers="0"`, `workers="-1"`, `workers="1e3"`, `workers="2147483648"`,
		`workers="99999999999999999999"`, `runtime="-1"`, `runtime="1h1"`, `runtime="9223372036854775807"`,
		`rampup="soon"`, `interval="0"`, `totalOps="-5"`, `totalOps="1.5"`, `totalBytes="-1"`, `totalBytes="5XB"`,
		`afr="1000001"`, `afr="-1"`, `division="workers"`, `rate="constant(0)"`,
		`rate="poisson(-1)"`, `rate="poisson(1e99)"`, `rate="constant(NaN)"`, `rate="burst(0,1)"`, `rate="burst(5)"`,
		`rate="burst(5,NaN)"`, `runtime="-0.5"`, `runtime="Inf"`} {
		name, _, _ := strings.Cut(a, "=")
		attrs := "workers=\"1\" runtime=\"1\" "
		if name == "workers" || name == "runtime" {
			attrs = strings.Replace("workers=\"1\" runtime=\"1\" ", name+"=\"1\"", "", 1)
		}
		text := fmt.Sprintf("<work name=\"m\" %s\n%s>\n<operation type=\"read\" "+
			"config=\"containers=c(1);objects=c(1)\"/></work>", attrs, a)
		if _, problems := Parse(around(text), Options{}); !problems.Fatal() || problems[0].Line != 5 &&
			problems[0].Line != 4 {
			t.Errorf("%s: %v", a, problems)
		}
	}
}

// TestPartsOfSeconds checks that seconds can have a fraction.
func TestPartsOfSeconds(t *testing.T) {
	w, problems := Parse(around(`<work workers="1" runtime="1.5" rampup="500ms" rate="burst(50,0.25)"><operation type="read" config="containers=c(1);objects=c(1)"/></work>`), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := w.Stages[0].Works[0]
	if want := (schedule.Burst{Size: 50, Interval: 250 * time.Millisecond}); got.Runtime != 1500*time.Millisecond ||
		got.RampUp != time.Second/2 || got.Rate != want {
		t.Errorf("%v, %v, %v", got.Runtime, got.RampUp, got.Rate)
	}
}

// TestSamplesThatWereDamaged checks that damaged samples are parsed in limited time and without a panic: each
// sample is truncated at, and without, each of its quotes, brackets and equals signs.
func TestSamplesThatWereDamaged(t *testing.T) {
	files, err := filepath.Glob("testdata/samples/*.xml")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	n, taken := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range data {
			if !strings.ContainsRune("<>\"=/;()", rune(c)) {
				continue
			}
			for _, damaged := range []string{string(data[:i]), string(data[:i]) + string(data[i+1:])} {
				w, problems := Parse([]byte(damaged), Options{})
				if n++; !problems.Fatal() {
					taken++
					if len(w.Stages) == 0 {
						t.Errorf("%s without %q at %d is a workload of no stages", file, c, i)
					}
				}
			}
		}
	}
	if taken > n/10 {
		t.Errorf("%d of %d damaged files were taken", taken, n)
	}
}

// TestKeysOfAList checks the bounds of maxkeys, which convert writes as 32 bits.
func TestKeysOfAList(t *testing.T) {
	for keys, good := range map[string]bool{"1": true, "10000": true, "10001": false, "4294967297": false} {
		text := "<work name=\"m\" workers=\"1\" runtime=\"1\">\n" +
			"<operation type=\"list\" config=\"containers=c(1);maxkeys=" + keys + "\"/></work>"
		if why, failed := fails(text, "5: a list cannot have "+keys+" keys"); failed == good {
			t.Errorf("maxkeys=%s: %s", keys, why)
		}
	}
}

// TestOptionsWithoutEffect checks that an option which no operation of a work has is reported, unless it is inherited.
func TestOptionsWithoutEffect(t *testing.T) {
	const names = "containers=c(1);objects=c(1)"
	for _, tt := range []struct{ name, work, want string }{
		{"of another type", `<work name="m" workers="1" runtime="1"><operation type="listversions" config="` + names +
			`;maxkeys=10;allpages=true"/></work>`,
			"allpages is ignored: no operation of the work has it (listversions): it is for list"},
		{"of a special work", `<work type="init" workers="1" config="containers=r(1,1);batch=5"/>`,
			"batch is ignored: no operation of the work has it (init): it is for deleteobjects"},
		{"of the work", `<work name="m" workers="1" runtime="1" config="batch=5"><operation type="read" config="` +
			names + `"/></work>`, "batch is ignored: no operation of the work has it (read): it is for deleteobjects"},
		{"shared", `<work name="m" workers="1" runtime="1"><operation type="list" ratio="50" config="` + names +
			`;delimiter=/"/><operation type="read" ratio="50" config="` + names + `;delimiter=/"/></work>`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := Parse(around(tt.work), Options{})
			got := ""
			for _, p := range problems {
				if strings.Contains(p.String(), "no operation of the work has it") {
					if _, got, _ = strings.Cut(p.String(), ": warning: "); got != tt.want {
						t.Errorf("%s, want %q", p, tt.want)
					}
				}
			}
			if (got == "") != (tt.want == "") {
				t.Errorf("want %q, got %v", tt.want, problems)
			}
		})
	}
	whole := strings.Replace(string(around(`<work name="m" workers="1" runtime="1"><operation type="read" config="`+
		names+`"/></work>`)), "<workflow", `<workflow config="batch=5"`, 1)
	if _, problems := Parse([]byte(whole), Options{}); len(problems) > 1 || problems.Fatal() {
		t.Errorf("inherited: %v", problems)
	}
}

// TestWorkWithoutStorage checks that the warning names a work without a name by its kind.
func TestWorkWithoutStorage(t *testing.T) {
	text := strings.Replace(string(around(`<work workers="1" runtime="1"><operation type="read" `+
		`config="containers=c(1);objects=c(1)"/></work>`)), `<storage type="null"/>`, "", 1)
	_, problems := Parse([]byte(text), Options{})
	if got := fmt.Sprint(problems); !strings.Contains(got, `work "normal" has no storage`) {
		t.Error(got)
	}
}
