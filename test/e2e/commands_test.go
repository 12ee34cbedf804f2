package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestCommands checks the exit codes, the output and the output stream of commands that create no
// files.
func TestCommands(t *testing.T) {
	t.Parallel()
	quickstart := filepath.Join(module, "examples", "quickstart.yaml")
	tests := []struct {
		args string
		code int
		says []string // texts on standard output
	}{
		{"validate " + quickstart, 0, []string{"quickstart is valid", "2 actions", "1 rate"}},
		{"run --dry-run " + quickstart, 0, []string{"volumes", "3", "snapshots", "nothing was created"}},
		{"workloads show", 0, []string{"fio", "idle", "write-once"}},
		{"workloads show fio", 0, []string{"iodepth", "kind: Pod", "(required)"}},
		{"workloads show foi", 1, nil},
		{"version", 0, []string{"cnsbench ", "bundle format"}},
		{"completion bash", 0, []string{"__start_cnsbench"}},
		{"completion zsh", 0, []string{"compdef"}},
		{"completion fish", 0, []string{"complete -c cnsbench"}},
		{"help", 0, []string{"run", "validate", "show", "report", "cleanup", "workloads", "csi",
			"doctor", "version"}},
		{"run --help", 0, []string{"Exit status", "130"}},
		{"show nowhere", 1, nil},
		{"show .", 1, nil},
		{"report nowhere", 1, nil},
		{"export --format csv .", 1, nil},
		{"export nowhere", 1, nil},
		{"list", 0, []string{"no bundle and no study in ."}},
		{"list nowhere", 1, nil},
		{"cleanup nowhere", 1, nil},
		{"cleanup .", 1, nil},
		{"cleanup --run nowhere", 1, nil},
		{"csi driver --backend null", 1, nil},
		{"csi driver --backend nul --socket x --base-dir y", 1, nil},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.args, module+"/", ""), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			r := b.run(strings.Fields(tt.args)...).wants(t, tt.code)
			for _, want := range tt.says {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("does not print %q\n%v", want, r)
				}
			}
			if tt.code != 0 && (!strings.HasPrefix(r.stderr, "cnsbench: ") || r.stdout != "") {
				t.Errorf("an error goes to the standard error alone\n%v", r)
			}
			b.emptyHanded()
		})
	}
}

// emptyHanded fails the test if a command created a file.
func (b *box) emptyHanded() {
	b.Helper()
	b.clean()
	entries, _ := os.ReadDir(b.dir)
	for _, e := range entries {
		if !slices.Contains([]string{"bin", "home", "storage", "tmp"}, e.Name()) {
			b.Errorf("it made %s", e.Name())
		}
	}
}

// TestRendered checks that each example renders to a self-contained, valid Benchmark with the same
// budget as the example.
func TestRendered(t *testing.T) {
	t.Parallel()
	for _, file := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			text := b.run("validate", "--render", file).wants(t, 0).stdout
			again := b.write("again.yaml", text)
			b.run("validate", again).wants(t, 0)
			// Others use the disk too: there may be room the first time and not the second.
			free := regexp.MustCompile(`(?s)"freeBytes": *[0-9]+|,\s*"warnings": \[[^\]]*\]`)
			budget := func(file string) string {
				return free.ReplaceAllString(b.run("run", "--dry-run", "--output", "json", file).wants(t, 0).stdout, "")
			}
			if first, second := budget(file), budget(again); first != second {
				t.Errorf("budget %s, when rendered %s", first, second)
			}
		})
	}
}

// examples lists the files of examples/ with a Benchmark for the local host. Those in
// examples/kubernetes need a cluster.
func examples(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"examples/*.yaml", "examples/*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(module, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if filepath.Base(filepath.Dir(f)) == "kubernetes" {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if regexp.MustCompile(`(?m)^kind: Benchmark$`).Match(text) {
				found = append(found, f)
			}
		}
	}
	if len(found) < 4 {
		t.Fatalf("only %d examples: %v", len(found), found)
	}
	return found
}

// TestMachineReadable checks that machine-readable output is valid JSON and the only text on
// standard output. Messages go to standard error.
func TestMachineReadable(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("bench.yaml", atRate+class("null"))
	r := b.run(b.runArgs(file, "--output", "json")...).wants(t, 0)
	var s summaryJSON
	decode(t, r.stdout, &s)
	if s.State != "complete" || len(s.Actions) != 1 || s.Actions[0].Outcomes["ok"] != 5 {
		t.Errorf("summary %+v", s)
	}
	if !strings.Contains(r.stderr, "running") {
		t.Errorf("progress does not go to the standard error\n%v", r)
	}
	if shown := b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout; shown != r.stdout {
		t.Errorf("run prints\n%s\nshow prints\n%s", r.stdout, shown)
	}
	if page := b.run("report", b.bundle(), "-o", "-").wants(t, 0); !strings.HasPrefix(page.stdout, "<!") ||
		page.stderr != "" {
		t.Errorf("report -o - prints %.100q, and on the standard error %q", page.stdout, page.stderr)
	}
	for _, args := range [][]string{{"version"}, {"doctor"}, {"run", "--dry-run", file}} {
		r := b.run(append(args, "--output", "json")...).wants(t, 0)
		if !json.Valid([]byte(r.stdout)) {
			t.Errorf("%v: no JSON\n%v", args, r)
		}
	}
	again := b.run("run", file, "--out", b.in("again"), "--storage-dir", b.in("storage"), "--output", "csv").wants(t, 0)
	if shown := b.run("show", b.in("again"), "--output", "csv").wants(t, 0).stdout; shown != again.stdout ||
		!strings.HasPrefix(shown, "run_id,scope,") {
		t.Errorf("run prints\n%s\nshow prints\n%s", again.stdout, shown)
	}
	b.run("show", b.bundle(), "--verify").wants(t, 0)
	b.clean()
}

// TestStorageDirectory checks that a nonexistent --storage-dir is rejected and not created, that a
// run and doctor name the device, and that a dry run compares the volume sizes with the free space.
func TestStorageDirectory(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	typo := b.in("storrage")
	volumes := func(backend string, options ...string) string {
		const spec = "spec: {actions: [{name: v, createObjSpec: {count: 2, volume: {storageClass: sut, size: 1Gi}}}]}\n"
		return b.write(backend+".yaml", head+spec+class(backend, options...))
	}
	file := volumes("hostdir")
	for _, args := range [][]string{{"run", file, "--out", b.bundle()}, {"run", "--dry-run", file}, {"doctor"}} {
		r := b.run(append(args, "--storage-dir", typo)...)
		if said := r.stdout + r.stderr; r.code == 0 ||
			!strings.Contains(said, "--storage-dir "+typo+" does not exist") {
			t.Errorf("the misspelt directory is not refused\n%v", r)
		}
	}
	for _, path := range []string{typo, b.bundle()} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v, want it not to be made", path, err)
		}
	}
	named := regexp.MustCompile(regexp.QuoteMeta(b.in("storage")) + ` \(\S+ on \S+, \d+\.\d GiB free\)`)
	for _, args := range [][]string{{"run", "--dry-run", file}, {"doctor"}, {"run", file, "--out", b.bundle()}} {
		r := b.run(append(args, "--storage-dir", b.in("storage"))...)
		if !named.MatchString(r.stdout) {
			t.Errorf("the device is not named\n%v", r)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	r := b.run("run", "--dry-run", "--storage-dir", b.in("storage"), volumes("loopfile", "pool-size: 1Gi")).wants(t, 0)
	const small = "warning: the volumes of sut ask for 2Gi, the pool of loopfile has 1Gi"
	if strings.Contains(r.stdout, "pool of loopfile: 1Gi") != strings.Contains(r.stdout, small) {
		t.Errorf("a pool that is too small is not reported\n%v", r)
	}
}

// TestRoomOfClasses checks that a dry run compares the volumes of each StorageClass with the
// capacity that backs them: the pool of that class, independent of other classes, and the disk. A
// dry run of a study does so for each cell.
func TestRoomOfClasses(t *testing.T) {
	t.Parallel()
	needRoot(t)
	b := newBox(t)
	small := b.in("small") // without support for shared blocks, so loopfile creates a pool
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=4g"); err != nil { // the tests write no data to it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	volume := func(name, class, size string) string {
		return fmt.Sprintf("{name: %s, createObjSpec: {volume: {storageClass: %s, size: %s}}}", name, class, size)
	}
	dry := func(kind string, args ...string) result {
		return b.run(append([]string{kind}, append(args, "--dry-run", "--storage-dir", small)...)...).wants(t, 0)
	}
	pool := class("loopfile", "pool-size: 1Gi")
	for name, tt := range map[string]struct {
		volumes    []string
		says, lack string
	}{
		"the pool of one of two classes": {[]string{volume("a", "sut", "3Gi"), volume("b", "hostdir", "1Gi")},
			"warning: the volumes of sut ask for 3Gi, the pool of loopfile has 1Gi", "free:"},
		"within its pool": {[]string{volume("a", "sut", "1Gi"), volume("b", "hostdir", "2Gi")},
			"from a pool of 1Gi", "warning"},
		"the disk, by both": {[]string{volume("a", "sut", "1Gi"), volume("b", "hostdir", "3584Mi")},
			"warning: the volumes of hostdir, sut can take 4608Mi", "the pool of loopfile has"},
		"what takes no room": {[]string{volume("a", `"null"`, "100Gi"), volume("b", "hostdir", "1Gi")},
			"StorageClass hostdir (hostdir): 1 volume, 1Gi requested", "warning"},
	} {
		file := b.write("bench.yaml", spec("{actions: ["+strings.Join(tt.volumes, ", ")+"]}")+pool)
		if r := dry("run", file); !strings.Contains(r.stdout, tt.says) || strings.Contains(r.stdout, tt.lack) {
			t.Errorf("%s: want %q, and not %q\n%v", name, tt.says, tt.lack, r)
		}
	}
	file := b.write("bench.yaml", spec("{actions: ["+volume("a", "sut", "3Gi")+"]}")+pool)
	r := b.run("study", "run", file, "--dry-run", "--storage-dir", small, "--out", b.in("study"),
		"--factor", "spec.actions.a.createObjSpec.volume.storageClass=sut,hostdir,null").wants(t, 0)
	for _, want := range []string{"storage: " + small + " (tmpfs on",
		"cell storageClass=sut: StorageClass sut (loopfile): 1 volume, 3Gi requested, from a pool of 1Gi\n",
		"warning: cell storageClass=sut: the volumes of sut ask for 3Gi, the pool of loopfile has 1Gi",
		"cell storageClass=hostdir: StorageClass hostdir (hostdir): 1 volume, 3Gi requested\n"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("does not say %q\n%v", want, r)
		}
	}
	if strings.Count(r.stdout, "warning") != 1 || strings.Contains(r.stdout, "cell storageClass=null:") {
		t.Errorf("warns of more than the pool\n%v", r)
	}
	b.clean(small)
}

// TestVerify checks that verify detects a changed bundle.
func TestVerify(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.bench(atRate+class("null")).wants(t, 0)
	b.run("show", b.bundle(), "--verify").wants(t, 0)
	ops := b.in("bundle", "events", "ops.parquet")
	text, err := os.ReadFile(ops)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	b.write("bundle/events/ops.parquet", string(text))
	if r := b.run("show", b.bundle(), "--verify").wants(t, 2); !strings.Contains(r.stderr, "ops.parquet") {
		t.Errorf("does not name the file\n%v", r)
	}
}

// TestDoctor checks that doctor reports the host's tools and fails if fio is missing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var found []struct {
		What, Detail string
		OK, Needed   bool
	}
	decode(t, b.run("doctor", "--output", "json").stdout, &found)
	seen := map[string]bool{}
	for _, f := range found {
		seen[f.What] = f.OK
	}
	for _, what := range []string{"user", "agent", "backend null", "backend hostdir"} {
		if !seen[what] {
			t.Errorf("%s is not all right: %v", what, found)
		}
	}
	b.path = b.in("home")
	if r := b.run("doctor").wants(t, 2); !strings.Contains(r.stdout, "apt-get install fio") {
		t.Errorf("does not say how to get fio\n%v", r)
	}
}

// done reports whether an action of an example did what it is for. The snapshots of triggers.yaml wait for a stall,
// which a quiet machine does not have.
func done(example, action string, ok int) bool {
	return ok > 0 || example == "triggers.yaml" && action == "snapshots"
}

// TestExamplesShort checks the long examples with shorter runtimes, on drivers that need no privileges. TestExamples runs
// the others unmodified.
func TestExamplesShort(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	for name, args := range short {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			r := b.run(b.runArgs(filepath.Join(module, "examples", name), args...)...)
			s, ops := b.readable(b.bundle())
			b.judged(r, s)
			for _, a := range s.Actions {
				if !done(name, a.Name, a.Outcomes["ok"]) || a.Outcomes["ok"]+a.Outcomes["dropped"] != a.N {
					t.Errorf("action %s: %v of %d", a.Name, a.Outcomes, a.N)
				}
			}
			if len(ops) == 0 || s.State != "complete" {
				t.Errorf("state %q, %d ops", s.State, len(ops))
			}
			b.clean()
		})
	}
}

// short lists the arguments that shorten each example.
var short = map[string][]string{
	"null-poisson.yaml": {"--set", "spec.runtime=3s"},
	"paper/section-5.2.yaml": {"--set", "vars.storageClass=hostdir", "--set", "spec.runtime=3s", "--set",
		"vars.volumeSize=64Mi", "--set", "spec.rates.parallel.concurrencySpec.parallelism=3"},
	"paper/section-5.3.yaml": {"--set", "vars.storageClass=hostdir", "--set", "db.runtime=2", "--set",
		"vars.volumeSize=64Mi"},
	"paper/section-5.3-snapshots.yaml": {"--set", "vars.storageClass=hostdir", "--set", "db.runtime=3", "--set",
		"vars.volumeSize=64Mi", "--set", "spec.rates.halfMinute.constantRateSpec.interval=1s"},
}

// judged checks that the exit code agrees with the SLO verdicts.
func (b *box) judged(r result, s summaryJSON) {
	b.Helper()
	want := 0
	for _, v := range s.Verdicts {
		if v.Status != "pass" {
			want = 3
		}
	}
	r.wants(b, want)
}

// makeCommand matches make and its target, in inline code or at the start of a line of a code
// block.
var makeCommand = regexp.MustCompile("(^|`)make ([a-z0-9-]+)")

// TestMakeHelp checks that make help lists the promised targets, and that every target in a document exists.
func TestMakeHelp(t *testing.T) {
	t.Parallel()
	needProgram(t, "make")
	help := maker(t, "help")
	for _, target := range []string{"help", "demo", "build", "test", "lint", "verify", "e2e", "bench"} {
		if !strings.Contains(help, "\n  make "+target+" ") && !strings.HasPrefix(help, "  make "+target+" ") {
			t.Errorf("make help does not list %s:\n%s", target, help)
		}
	}
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			for _, m := range makeCommand.FindAllStringSubmatch(line, -1) {
				if fenced || m[1] == "`" {
					maker(t, "--dry-run", m[2])
				}
			}
		}
	}
}

func maker(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = module
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("make %v: %v\n%s", args, err, out)
	}
	return string(out)
}
