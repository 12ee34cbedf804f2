package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// objectXML returns a workload on files below root, with the given works in its main stage.
func objectXML(root, main string) string {
	return fmt.Sprintf(`<workload name="files"><storage type="file" config="root=%s"/><workflow>
<workstage name="init"><work type="init" workers="2" config="containers=r(1,2)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="2" config="containers=r(1,2);objects=r(1,5);sizes=c(8)KB"/></workstage>
<workstage name="main">%s</workstage>
<workstage name="cleanup"><work type="cleanup" workers="1" config="containers=r(1,2);objects=r(1,5)"/></workstage>
<workstage name="dispose"><work type="dispose" workers="1" config="containers=r(1,2)"/></workstage>
</workflow></workload>`, root, main)
}

const mixedWork = `<work name="main" workers="3" totalOps="200">
<operation type="read" ratio="80" config="containers=u(1,2);objects=u(1,5);hashCheck=true"/>
<operation type="write" ratio="20" config="containers=u(1,2);objects=u(1,5);sizes=u(1,9)KB"/></work>`

// object runs a command line with a workload file as its last argument.
func object(t *testing.T, xml string, args ...string) (code int, out, errs string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "workload.xml")
	if err := os.WriteFile(file, []byte(xml), 0o644); err != nil {
		t.Fatal(err)
	}
	var o, e strings.Builder
	code = Main(append(args, file), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestObjectRun(t *testing.T) {
	for _, command := range [][]string{{"object", "run"}, {"run"}} {
		t.Run(strings.Join(command, " "), func(t *testing.T) {
			root, dir := t.TempDir(), filepath.Join(t.TempDir(), "bundle")
			code, out, errs := object(t, objectXML(root, mixedWork), append(command, "--out", dir)...)
			if code != exitOK {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
				t.Errorf("%d things are left, %v", len(left), err)
			}
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Verify(); err != nil {
				t.Error(err)
			}
			total := 0.0
			for s, err := range b.Scalars() {
				if err != nil {
					t.Fatal(err)
				}
				if s.Action == "main" && strings.HasSuffix(s.Metric, ".ok") {
					total += s.Value
				}
			}
			if total != 200 {
				t.Errorf("the bundle has %v operations of the main stage, want 200", total)
			}
			var shown strings.Builder
			if code := Main([]string{"show", dir}, nil, &shown, &shown); code != exitOK ||
				!strings.Contains(shown.String(), "main read") {
				t.Errorf("show: exit %d\n%s", code, shown.String())
			}
			for _, file := range []string{"s1-init.csv", "s3-main.csv", b.Run.ID + "-files.csv",
				b.Run.ID + "-files-rt-histogram.csv"} {
				if _, err := os.Stat(filepath.Join(dir, "raw", "cosbench", "csv", file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestObjectExitCodes(t *testing.T) {
	root := t.TempDir()
	theirs := filepath.Join(t.TempDir(), "store")
	for _, d := range []string{theirs, filepath.Join(theirs, "mycontainers1")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	precious := filepath.Join(theirs, "mycontainers1", "myobjects1")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := `<work name="main" workers="1" totalOps="5" afr="0"><operation type="read" config="containers=c(9);objects=c(1)"/></work>`
	tests := []struct {
		name string
		args []string
		xml  string
		code int
		says string
	}{
		{"a line that is wrong", []string{"object", "run"},
			"<workload name=\"w\">\n<workflow>\n<workstage/></workflow></workload>", exitUsage, "workload.xml:3: "},
		{"lint", []string{"validate"}, objectXML(root, mixedWork), exitOK, "files is valid: 5 stages"},
		{"lint of what COSBench ignores", []string{"validate"},
			strings.Replace(objectXML(root, mixedWork), `<work `, `<work id="1" `, 1), exitOK,
			": warning: <work> has no attribute id: it is ignored, as in COSBench\n"},
		{"dry run of what COSBench ignores", []string{"object", "run", "--dry-run"},
			strings.Replace(objectXML(root, mixedWork), `<work `, `<work id="1" `, 1), exitOK,
			": warning: <work> has no attribute id: it is ignored, as in COSBench\n"},
		{"flags of another kind of file", []string{"run", "--engine", "local"}, objectXML(root, mixedWork), exitUsage,
			"does not take --engine"},
		{"dry run", []string{"object", "run", "--dry-run"}, objectXML(root, mixedWork), exitOK, "nothing was sent"},
		{"dry run without files", []string{"object", "run", "--dry-run"},
			objectXML(root, `<work name="main" workers="1" totalOps="5"><operation type="filewrite" config="containers=c(1);files=`+t.TempDir()+`"/></work>`), exitOK, "bytes of these are not counted: the files to write: "},
		{"failures", []string{"object", "run"}, objectXML(root, missing), exitFailed, "404 ENOENT"},
		{"a container of somebody else's", []string{"object", "run"}, objectXML(theirs, mixedWork), exitFailed,
			"does not carry CNSBench's mark"},
		{"a server that refuses", []string{"object", "run"},
			strings.Replace(objectXML("x", missing), `type="file" config="root=x"`,
				`type="s3" config="endpoint=http://127.0.0.1:1;accesskey=a;secretkey=b"`, 1), exitFailed, "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code == exitFailed {
				tt.args = append(tt.args, "--out", filepath.Join(t.TempDir(), "bundle"))
			}
			code, out, errs := object(t, tt.xml, tt.args...)
			if code != tt.code || !strings.Contains(out+errs, tt.says) {
				t.Errorf("exit %d, want %d and %q in\n%s%s", code, tt.code, tt.says, out, errs)
			}
		})
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("somebody else's object: %q, %v", text, err)
	}
}

// TestObjectCredentialsStayOut checks that no file of a bundle contains credentials, whatever their source is, and even
// if the workload file repeats them elsewhere.
func TestObjectCredentialsStayOut(t *testing.T) {
	t.Setenv("SECRET_FROM_ENV", "s3cr3t-of-env")
	t.Setenv("AWS_ACCESS_KEY_ID", "s3cr3t-of-aws")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t&of-aws")
	root := t.TempDir()
	xml := strings.Replace(objectXML(root, mixedWork), "<workflow>", `<workflow><!-- password=s3cr3t-in-comment s3cr3t-of-env s3cr3t-of-aws s3cr3t&of-aws &#x73;3cr3t&amp;of-aws -->
<workstage name="nobody"><storage type="s3" config="endpoint=http://127.0.0.1:1;accesskey=s3cr3t-access;secret&#107;ey=s3cr3t-b"/>
<work name="a" workers="1" totalOps="2" afr="1000000"><operation type="read" config="containers=c(1);objects=c(1)"/></work>
<work name="b" workers="1" totalOps="2" afr="1000000"><storage type="s3" config="endpoint=http://127.0.0.1:1;accesskey=s3cr3t-access;secretkey=${SECRET_FROM_ENV}"/><operation type="read" config="containers=c(1);objects=c(1)"/></work>
<work name="c" workers="1" totalOps="2" afr="1000000"><storage type="s3" config="endpoint=http://127.0.0.1:1"/><operation type="read" config="containers=c(1);objects=c(1);password=s3cr3t-odd"/></work></workstage>`, 1)
	dir := filepath.Join(t.TempDir(), "bundle")
	code, out, errs := object(t, xml, "object", "run", "--out", dir)
	if code != exitOK {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	all := out + errs
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all += path + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"s3cr3t", "of-aws"} {
		if i := strings.Index(all, part); i >= 0 {
			t.Errorf("a secret came out: …%s…", all[max(0, i-60):min(len(all), i+60)])
		}
	}
	if !strings.Contains(all, "ey=***") {
		t.Error("the bundle has no copy of the file")
	}
	for _, secret := range []string{"s3cr3t&amp;of-aws", "s3cr3t-of-env",
		"s3cr&#x33;t-b"} { // the description is copied to many places, so the file is rejected
		dir := filepath.Join(t.TempDir(), "bundle")
		code, out, errs := object(t, strings.Replace(xml, `name="files"`,
			`name="files" description="with `+secret+`"`, 1), "object", "run", "--out", dir)
		if _, err := os.Stat(dir); code != exitUsage || err == nil || !strings.Contains(errs,
			"workload.xml:1: the description of <workload> contains a secret") || strings.Contains(out+errs, "s3cr3t") {
			t.Errorf("%s: exit %d\n%s%s", secret, code, out, errs)
		}
	}
}

// TestObjectStoresAreChecked checks that invalid settings of storages are reported with their line before the run
// starts. Paths that are missing on this machine are only warnings of lint, because they may exist on the hosts.
func TestObjectStoresAreChecked(t *testing.T) {
	xml := `<workload name="w">
<storage type="s3" config="endpoint=http://127.0.0.1:1;timeout=abc;signature=v5"/>
<workflow><workstage name="m">
<work name="a" workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work>
<work name="b" workers="1" totalOps="1"><storage type="file" config="root=/no/such/place"/>
<operation type="filewrite" config="containers=c(1);files=/no/such/files"/></work>
<work name="c" workers="1" totalOps="1"><operation type="read" config="containers=c(1);keysfile=/no/such/keys"/></work>
</workstage></workflow></workload>`
	for _, command := range []string{"run", "validate"} {
		code, _, errs := object(t, xml, command)
		for _, want := range []string{`.xml:2: s3: invalid timeout`, ".xml:5: ",
			"storage file: root: stat /no/such/place", ".xml:6: ", "/no/such/files",
			".xml:7: ", "open /no/such/keys"} {
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("%s: exit %d, and not said: %s\n%s", command, code, want, errs)
			}
		}
		if warned := strings.Contains(errs, "warning: storage file"); warned != (command == "validate") {
			t.Errorf("%s: %s", command, errs)
		}
	}
}

// TestConvertPaths checks that relative paths in a workload file become absolute paths in the Benchmark.
func TestConvertPaths(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := object(t, `<workload name="w"><storage type="s3" config="endpoint=https://h;cafile=ca.pem;credentials=/etc/keys;path_style_access=false"/>
<workflow><workstage name="m"><work name="a" workers="1" totalOps="1"><operation type="filewrite" config="containers=c(1);files=../dir"/></work></workstage></workflow></workload>`, "convert")
	for _, want := range []string{"caFile: " + here + "/ca.pem\n", "file: /etc/keys\n", "addressing: virtualHost\n",
		"files: " + filepath.Dir(here) + "/dir\n"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, and not there: %s\n%s%s", code, want, out, errs)
		}
	}
}

// TestConvertNamesOfOperations checks that the operations of a Benchmark have the names from the workload file, and no
// others.
func TestConvertNamesOfOperations(t *testing.T) {
	code, out, errs := object(t, `<workload name="w"><storage type="s3" config="endpoint=https://h"/><workflow><workstage name="m"><work name="a" workers="1" totalOps="1">
<operation type="read" ratio="60" config="containers=c(1);objects=c(1);name=small"/><operation type="read" ratio="40" config="containers=c(1);objects=c(2)"/></work></workstage></workflow></workload>`, "convert")
	if code != exitOK || strings.Count(out, "name: small\n") != 1 || strings.Contains(out, "name: read") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestConvertSamples checks that each COSBench sample becomes a valid Benchmark, or that an error with a line says why
// it cannot.
func TestConvertSamples(t *testing.T) {
	const samples = "../object/cosbench/testdata/samples"
	files, err := os.ReadDir(samples)
	if err != nil {
		t.Fatal(err)
	}
	converted := 0
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			xml, err := os.ReadFile(filepath.Join(samples, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			code, out, errs := object(t, string(xml), "convert")
			if code == exitUsage {
				why := slices.DeleteFunc(regexp.MustCompile(`workload\.xml:[1-9][0-9]*: .*`).FindAllString(errs, -1),
					func(s string) bool { return strings.Contains(s, ": warning: ") })
				if len(why) == 0 || out != "" {
					t.Errorf("it is not said where it is wrong\n%s%s", out, errs)
				}
				return
			}
			if converted++; code != exitOK {
				t.Fatalf("exit %d\n%s", code, errs)
			}
			bench := filepath.Join(t.TempDir(), "bench.yaml")
			if err := os.WriteFile(bench, []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			if code := Main([]string{"validate", bench}, nil, &said, &said); code != exitOK {
				t.Errorf("exit %d\n%s\nof\n%s", code, said.String(), out)
			}
		})
	}
	if converted < 16 {
		t.Errorf("only %d of %d samples were converted", converted, len(files))
	}
}

// TestConvertNames checks that arbitrary names become distinct valid names, so that the Benchmark is valid.
func TestConvertNames(t *testing.T) {
	const work = `<work name="%s" workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work>`
	var works strings.Builder
	for _, name := range []string{"a b", "a-b", "a_b", "a/b", "normal", "日本", "1", strings.Repeat("long name ", 9),
		strings.Repeat("long-name ", 9)} {
		fmt.Fprintf(&works, work, name)
	}
	xml := `<workload name="` + strings.Repeat("of letters ", 9) + `"><storage type="null"/><workflow>`
	for _, name := range []string{"main stage", "main-stage", "main-stage-2", strings.Repeat("x", 49) + "- y",
		strings.Repeat("x", 49) + "- z"} {
		xml += `<workstage name="` + name + `">` + works.String() + `</workstage>`
	}
	code, out, errs := object(t, xml+`</workflow></workload>`, "convert")
	bench := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(bench, []byte(out), 0o600); err != nil || code != exitOK {
		t.Fatal(err, code, errs)
	}
	var said strings.Builder
	if code := Main([]string{"validate", bench}, nil, &said, &said); code != exitOK {
		t.Errorf("exit %d\n%s\nof\n%s", code, said.String(), out)
	}
}

// TestConvertToken checks that the Benchmark has the storage URL of a workload file, but not its token.
func TestConvertToken(t *testing.T) {
	const secret = "AUTH_tk0123456789"
	code, out, errs := object(t, `<workload name="w"><storage type="swift" config="storage_url=http://h/v1/AUTH_a;token=`+secret+`"/>
<workflow><workstage name="m"><work name="a" workers="1" totalOps="1"><operation type="read" config="containers=c(1);objects=c(1)"/></work></workstage></workflow></workload>`, "convert")
	if code != exitOK || !strings.Contains(out, "storageURL: http://h/v1/AUTH_a\n") ||
		strings.Contains(out, "auth:") || strings.Contains(out+errs, secret) ||
		!strings.Contains(errs, "credentials of the file are left out") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestObjectFlagsThatMeanNothing checks that flags that are invalid, or have no effect together with the others, are
// rejected before any request is sent.
func TestObjectFlagsThatMeanNothing(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--repetitions 3", "--repetitions has no effect without --scale-workers"},
		{"--knee-gain 0.2 --find-max p99(read)<duration(\"1s\")", "--knee-gain has no effect"},
		{"--window 5s", "--window has no effect without --find-max"},
		{"--stage main", "--stage has no effect"},
		{"--find-most 5 --scale-workers 1,2", "--find-most has no effect without --find-max"},
		{"--ceiling-for 1s", "--ceiling-for has no effect without --ceiling"},
		{"--repetitions -1 --scale-workers 1,2", "--repetitions cannot be negative"},
		{"--window -1s --scale-workers 1,2", "--window cannot be negative"},
		{"--grace -1s", "cannot be negative"},
	} {
		out := filepath.Join(t.TempDir(), "bundle")
		code, _, errs := object(t, objectXML(t.TempDir(), mixedWork),
			append([]string{"object", "run", "--out", out}, strings.Fields(tt.flags)...)...)
		if _, err := os.Stat(out); code != exitUsage || !strings.Contains(errs, tt.want) || err == nil {
			t.Errorf("%s: exit %d, want %q\n%s", tt.flags, code, tt.want, errs)
		}
	}
}

// TestNoCredentials checks the warning about requests without a signature, which are valid but rarely intended.
func TestNoCredentials(t *testing.T) {
	const says = "there are no credentials for storage s3: its requests are not signed"
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, "")
	}
	of := func(config string) string {
		return strings.ReplaceAll(objectXML("x", mixedWork), `type="file" config="root=x"`,
			`type="s3" config="endpoint=http://127.0.0.1:1`+config+`"`)
	}
	for name, tt := range map[string]struct {
		xml  string
		args []string
		want int
	}{
		"lint":             {of(""), []string{"validate"}, 1},
		"before a run":     {of(""), []string{"object", "run", "--dry-run"}, 1},
		"hidden":           {of(";accesskey=***;secretkey=***"), []string{"validate"}, 1},
		"in the file":      {of(";accesskey=a;secretkey=b"), []string{"validate"}, 0},
		"in one elsewhere": {of(";credentials=/nowhere"), []string{"validate"}, 0},
		"no s3":            {objectXML(t.TempDir(), mixedWork), []string{"validate"}, 0},
	} {
		if code, out, errs := object(t, tt.xml, tt.args...); code != exitOK || strings.Count(errs, says) != tt.want {
			t.Errorf("%s: exit %d, want %d times %q\n%s%s", name, code, tt.want, says, out, errs)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	if _, out, errs := object(t, of(""), "validate"); strings.Contains(errs, says) {
		t.Errorf("from the environment:\n%s%s", out, errs)
	}
}
