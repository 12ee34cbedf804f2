package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/cli"
	"github.com/cnsbench/cnsbench/test/hostile"
)

// readers are the commands that take a bundle, a study or an imported folder: by name, the arguments with which each is
// tried. DIR is the hostile directory, PARENT the one above it, GOOD another bundle, OUT a file that does not exist.
// Those that write into DIR are last.
var readers = []struct {
	name  string
	lines []string
}{
	{"show", []string{"show DIR", "show --verify DIR", "show --events DIR", "show --op 1 DIR", "show --output json DIR",
		"show --output csv DIR", "show --status DIR", "show --status --output json DIR"}},
	{"list", []string{"list PARENT", "list --output json PARENT", "list DIR"}},
	{"verify", []string{"verify DIR", "verify --output json DIR"}},
	{"report", []string{"report -o - DIR", "report --output markdown -o - DIR", "report -o OUT DIR"}},
	{"compare", []string{"compare DIR GOOD", "compare --output markdown DIR GOOD", "compare DIR",
		"compare --history PARENT"}},
	{"reproduce", []string{"reproduce --dry-run DIR", "reproduce GOOD --with DIR"}},
	{"trace record", []string{"trace record --from-bundle DIR -o OUT.csv"}},
	{"show-in-bounds", []string{"show-in-bounds report DIR", "show-in-bounds summary DIR", "show-in-bounds study DIR"}},
	{"study merge", []string{"study merge DIR DIR --out OUT"}},
	{"study schedule", []string{"study schedule DIR --claim c"}},
	{"study add-occasion", []string{"study add-occasion --dry-run DIR"}},
	{"export", []string{"export --format csv DIR", "export --format json DIR", "export --format parquet -o OUT DIR",
		"export --format perfetto DIR", "export --format otlp -o OUT DIR", "export --pending --within 3s DIR",
		"export --all --within 3s DIR"}},
	{"object cleanup", []string{"object cleanup --dry-run DIR", "object cleanup DIR"}},
	{"cleanup", []string{"cleanup --dry-run DIR", "cleanup DIR"}},
}

// others are commands whose usage names a directory, but that take no bundle, with what holds instead.
var others = map[string]string{
	"import": "--out is a new directory", "import csv": "--out is a new directory",
	"study run": "--out is a directory of the user",
	"serve":     "does not end: internal/bundle/server and internal/web open what readers open",
}

// TestReaders checks that each command that takes a bundle is among those that are tried with hostile ones.
func TestReaders(t *testing.T) {
	takes := regexp.MustCompile(`\b(BUNDLE|DIR|STUDY)\b`)
	have := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "cnsbench"), " ")
		have[name] = true
		tried := slices.ContainsFunc(readers, func(r struct {
			name  string
			lines []string
		}) bool {
			return r.name == name
		})
		if takes.MatchString(c.Use) && !tried && others[name] == "" {
			t.Errorf("%q takes a bundle (%s) and is not tried with hostile ones: add it to readers", name, c.Use)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.Command())
	for _, r := range readers {
		if !have[r.name] {
			t.Errorf("there is no command %q", r.name)
		}
	}
}

// The limits of a command over a hostile bundle.
const (
	mostCPU  = 10 * time.Second
	mostWall = 60 * time.Second
	mostMiB  = 512
)

// TestHostileBundles tries a part of the hostile bundles, another one each day, with a part of the commands.
// CNSBENCH_SEED repeats that of another day; with CNSBENCH_HOSTILE=N it tries N bundles, or all, with all commands.
func TestHostileBundles(t *testing.T) {
	t.Parallel()
	attack(t, 45, 7)
}

// attack tries n of the variants, with one of parts of the command lines each.
func attack(t *testing.T, n, parts int) {
	seed := uint64(time.Now().YearDay())
	if s := os.Getenv("CNSBENCH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("CNSBENCH_SEED: %v", err)
		}
	}
	t.Logf("CNSBENCH_SEED=%d", seed)
	a := newAttack(t, seed)
	all := a.maker.Variants(t)
	if more := os.Getenv("CNSBENCH_HOSTILE"); more == "all" {
		n, parts = len(all), 1
	} else if more != "" {
		var err error
		if n, err = strconv.Atoi(more); err != nil {
			t.Fatalf("CNSBENCH_HOSTILE: %v, want a number or all", err)
		}
		parts = 1
	}
	total := len(all)
	chosen := a.maker.Choose(all, n)
	t.Run("variants", func(t *testing.T) {
		for i := range chosen {
			v := &chosen[i]
			t.Run(strings.ReplaceAll(v.String(), "/", "_"), func(t *testing.T) {
				t.Parallel()
				a.tries(t, v, parts, int(seed)+i)
			})
		}
	})
	t.Logf("%d of %d variants, %d commands, %v of CPU; slowest: %v", len(chosen), total, a.commands.Load(),
		time.Duration(a.cpu.Load()).Round(time.Second), a.slowest)
	if len(chosen) >= 45 && a.shown.Load() == 0 {
		t.Error("no command printed an evil text")
	}
	a.finish(t)
}

// attacked is the place of the attacks: a registered run of this user with volumes, and a process.
type attacked struct {
	*box
	maker                *hostile.Maker
	volumes              hostile.Outside // the directory of the volumes of the registered run
	runID                string
	victim               *exec.Cmd
	digest               string
	commands, cpu, shown atomic.Int64

	mu      sync.Mutex
	most    time.Duration
	slowest string
}

func newAttack(t *testing.T, seed uint64) *attacked {
	a := &attacked{box: newBox(t)}
	const spec = "spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}}]}\n"
	a.bench(head+spec+class("hostdir"), "--keep").wants(t, 0)
	text, err := os.ReadFile(a.in("bundle", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		ID string `json:"runID"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	a.runID, a.volumes = run.ID, hostile.Outside{Dir: a.in("storage")}
	a.digest = a.volumes.Digest(t)
	a.victim = exec.Command("sleep", "3600")
	if err := a.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.victim.Process.Kill(); _ = a.victim.Wait() })
	if err := os.Mkdir(a.in("good"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.maker = hostile.New(t, a.in("good"), seed)
	return a
}

// finish checks that the registered run and the process are as before, and that the run is cleaned up by its own bundle.
func (a *attacked) finish(t *testing.T) {
	if err := a.victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of somebody else has ended: %v", err)
	}
	if a.volumes.Digest(t) != a.digest {
		t.Error("the volumes of a registered run have changed")
	}
	a.run("cleanup", a.bundle()).wants(t, 0)
}

// trap is a server and a socket that count who comes.
type trap struct {
	server *httptest.Server
	socket net.Listener
	came   atomic.Int64
	secret atomic.Bool
}

func newTrap(t *testing.T, socket string) *trap {
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := &trap{socket: l}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.came.Add(1)
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20)) // what came, if it was cut
		if said := fmt.Sprint(r.URL, r.Header, string(body)); strings.Contains(said, hostile.Secret) ||
			strings.Contains(said, "c3dvcmRmaXNo") { // in base64
			p.secret.Store(true)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.came.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { p.server.Close(); _ = l.Close() })
	return p
}

// tries tries a variant with every parts-th command line.
func (a *attacked) tries(t *testing.T, v *hostile.Variant, parts, turn int) {
	h := fnv.New64()
	fmt.Fprint(h, v.String())
	root := a.in(fmt.Sprintf("h%x", h.Sum64()))
	dir, out := filepath.Join(root, "in", "bundle"), filepath.Join(root, "out", "x")
	for _, d := range []string{"in", "out", "cwd", "outside"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := newTrap(t, filepath.Join(root, "s"))
	o := hostile.Outside{Dir: filepath.Join(root, "outside"), URL: p.server.URL, Socket: filepath.Join(root, "s"),
		RunID: a.runID, PID: a.victim.Process.Pid}
	o.Make(t)
	a.maker.Make(t, v, dir, &o)
	before, places := o.Digest(t), strings.NewReplacer("DIR", dir, "PARENT", filepath.Dir(dir), "GOOD",
		a.maker.Good(hostile.Local), "OUT", out)
	i := 0
	for _, r := range readers {
		for _, line := range r.lines {
			if i++; (i+turn)%parts != 0 {
				continue
			}
			var args []string
			for _, arg := range strings.Fields(line) {
				args = append(args, places.Replace(arg))
			}
			came := p.came.Load()
			a.checks(t, v, line, dir, a.limited(t, filepath.Join(root, "cwd"), args))
			// Only export sends to the outputs of a bundle, and without credentials.
			sends := strings.Contains(line, "--pending") || strings.Contains(line, "--all")
			if p.secret.Load() || p.came.Load() > came && !sends {
				t.Fatalf("%s: it reached a server that the bundle names; with a secret: %v", line, p.secret.Load())
			}
			if o.Digest(t) != before {
				t.Fatalf("%s: something outside has changed", line)
			}
			if err := errors.Join(os.RemoveAll(filepath.Dir(out)), os.Mkdir(filepath.Dir(out), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "cwd")); err != nil || len(left) > 0 {
		t.Errorf("in the working directory: %v, %v", left, err)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Error(err)
	}
}

// limited runs a command with limits.
func (a *attacked) limited(t *testing.T, cwd string, args []string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mostWall)
	defer cancel()
	// Without the limit of addresses, a fault would take the memory of all.
	cmd := a.command(ctx, "/bin/sh", append([]string{"-c", `ulimit -v 4000000; exec "$0" "$@"`, a.cnsbench()}, args...)...)
	cmd.Dir = cwd
	for _, name := range []string{"OS_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"CNSBENCH_OUTPUT_LINES_AUTHORIZATION", "CNSBENCH_OUTPUT_LINES_ACCESSKEY", "CNSBENCH_OUTPUT_LINES_SECRETKEY"} {
		cmd.Env = append(cmd.Env, name+"="+hostile.Secret)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r := result{args: args, code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	use, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if ctx.Err() != nil || cpu > mostCPU || use.Maxrss>>10 > mostMiB {
		t.Errorf("%v: %v of CPU, %d MiB, %v", cmd.ProcessState, cpu, use.Maxrss>>10, r.brief())
	}
	a.commands.Add(1)
	a.cpu.Add(int64(cpu))
	a.mu.Lock()
	defer a.mu.Unlock()
	if cpu > a.most {
		a.most, a.slowest = cpu, fmt.Sprintf("%s, %v, %s", t.Name(), cpu, strings.Join(args[:min(2, len(args))], " "))
	}
	return r
}

// brief is String with the beginning of each stream.
func (r result) brief() string {
	r.stdout, r.stderr = fmt.Sprintf("%.600q\n", r.stdout), fmt.Sprintf("%.2000q\n", r.stderr)
	return r.String()
}

// checks checks the status, the message and the output of a command.
func (a *attacked) checks(t *testing.T, v *hostile.Variant, line, dir string, r result) {
	t.Helper()
	if strings.Contains(r.stderr, "goroutine ") || !slices.Contains([]int{0, 1, 2}, r.code) {
		t.Errorf("%s: %v", line, r.brief())
		return
	}
	said := r.said()
	reasons := []string{filepath.Base(dir), v.File, v.Want, "/nonexistent/", "--aa: ", "the condition ",
		"file name too long"}
	named := slices.ContainsFunc(reasons, func(what string) bool {
		return what != "" && strings.Contains(said, what)
	})
	if r.code != 0 && !(named && strings.Contains("\n"+r.stderr, "\ncnsbench: ")) && !strings.HasPrefix(line, "verify") {
		t.Errorf("%s: the message does not name the bundle or the reason: %v", line, r.brief())
	}
	if line == "show DIR" && v.Kind == hostile.Local {
		read := slices.Contains([]string{"run.json", "events/ops.parquet", "instances.jsonl"}, v.File)
		if read && !strings.Contains(said, v.Want) {
			t.Errorf("%s: want %q: %v", line, v.Want, r.brief())
		}
		if !strings.Contains(said, v.Says) {
			t.Errorf("%s: want %q: %v", line, v.Says, r.brief())
		}
	}
	if line == "verify DIR" && v.Group == "files" && v.Kind == hostile.Local && r.code == 0 && a.listed(v.File) {
		t.Errorf("%s: verified: %v", line, r.brief())
	}
	if line == "list PARENT" && v.Kind != hostile.Imported && !strings.Contains(said, filepath.Base(dir)) {
		t.Errorf("%s: not listed: %v", line, r.brief())
	}
	a.shows(t, line, r)
}

// listed reports whether the manifest of a good bundle has a file, or is it.
func (a *attacked) listed(file string) bool {
	if slices.Contains([]string{"report.html", "ledger"}, file) {
		return false
	}
	_, err := os.Stat(filepath.Join(a.maker.Good(hostile.Local), filepath.FromSlash(file)))
	return err == nil
}

var (
	rawMarkup  = regexp.MustCompile(`<script>x`)
	inMarkdown = regexp.MustCompile("<script|[^\\\\]\\|b|[^\\\\]`c|!\\[d\\]|[\u200b\u202e]")
)

// shows checks that texts of the bundle do not steer a terminal, and are no markup where that would be read.
func (a *attacked) shows(t *testing.T, line string, r result) {
	t.Helper()
	if strings.Contains(r.stdout, "evil") {
		a.shown.Add(1)
	}
	markdown, table := strings.Contains(line, "markdown"), strings.Contains(line, "csv")
	html := (strings.Contains(line, "report") || line == "show-in-bounds study DIR") && !markdown
	for where, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
		problem := func(what string, at int) {
			t.Errorf("%s (%d): %s on %s: %q", line, r.code, what, where, text[max(0, at-100):min(len(text), at+60)])
		}
		if at := strings.IndexFunc(text, unseen); at >= 0 {
			problem("raw control character", at)
		}
		if at := strings.Index("\n"+text, "\nFORGED"); at >= 0 && (where == "stderr" || !html && !table) {
			problem("a line of its own", at)
		}
		if where == "stderr" {
			continue
		}
		if at := inMarkdown.FindStringIndex(text); at != nil && markdown {
			problem("markup", at[0])
		}
		if at := rawMarkup.FindStringIndex(text); at != nil && html {
			problem("markup", at[0])
		}
	}
}

// unseen reports whether a character controls a terminal or cannot be seen.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}
