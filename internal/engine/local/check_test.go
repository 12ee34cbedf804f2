package local_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// killedRun is the state that a killed run has left on this machine, and objects that do not belong to it.
type killedRun struct {
	own    owned.Identity
	others string // directory that does not belong to the run
	victim string // PID of a process that does not belong to the run
}

func newKilledRun(f *testing.F) *killedRun {
	base := f.TempDir()
	r := &killedRun{own: owned.New("0abc"), others: filepath.Join(base, "others")}
	r.own.Scratch, r.own.Storage = filepath.Join(base, owned.ScratchName("0abc")), filepath.Join(base, "storage")
	r.own.Endpoint = filepath.Join(base, "socket")
	err := errors.Join(os.Mkdir(r.others, 0o755), os.WriteFile(filepath.Join(r.others, "canary"), nil, 0o600),
		r.own.Make(r.own.Scratch, 0o700), os.Mkdir(r.own.Storage, 0o755),
		r.own.Make(filepath.Join(r.own.Storage, "0abc"), 0o700))
	if err != nil {
		f.Fatal(err)
	}
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	r.victim = strconv.Itoa(victim.Process.Pid)
	return r
}

// expand replaces the placeholders of the corpus by paths of this machine.
func (r *killedRun) expand(text string) string {
	return strings.NewReplacer("SCRATCH", r.own.Scratch, "STORAGE", r.own.Storage, "OTHERS", r.others,
		"MEMORY", pod.MemoryDir(r.own.Scratch), "SOCKET", r.own.Endpoint).Replace(text)
}

// FuzzCheck checks that Check accepts a ledger entry only if its values follow from the run's identity, and if the
// object that it names carries the mark of that identity or does not exist.
func FuzzCheck(f *testing.F) {
	for _, seed := range [][4]string{
		{"dir", "SCRATCH", "", ""}, {"dir", "OTHERS", "", ""}, {"dir", "SCRATCH/../others", "", ""}, {"dir", "MEMORY-p",
			"", ""},
		{"dir", "MEMORY-p/../../etc", "", ""}, {"dir", "SCRATCH", "OTHERS", ""}, {"dir", "MEMORYx", "", ""},
		{"driver", "hostdir", "STORAGE/0abc/hostdir", ""}, {"driver", "..", "STORAGE", ""}, {"driver", "../../others",
			"OTHERS", ""},
		{"driver", ".", "STORAGE/0abc", ""}, {"process", "p", "", ""}, {"driver", "hostdir", "STORAGE/0abc/hostdir",
			"pid"},
		{"volume", "w", "SOCKET", `{"name":"cnsbench-0abc-w"}`}, {"snapshot", "w", "SOCKET", `{"name":"w"}`},
		{"group", "a/b", "SOCKET", `{"name":"cnsbench-0abc-a/b"}`}, {"volume", "w", "OTHERS",
			`{"name":"cnsbench-0abc-w"}`},
		{"pods", "p", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], true, true)
		f.Add(seed[0], seed[1], seed[2], seed[3], true, false)
		f.Add(seed[0], seed[1], seed[2], seed[3], false, true)
	}
	r := newKilledRun(f)
	stat, err := os.ReadFile("/proc/" + r.victim + "/stat")
	boot, berr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err := errors.Join(err, berr); err != nil {
		f.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	start := strings.Fields(after)[19]
	f.Fuzz(func(t *testing.T, kind, name, where, more string, identified, alive bool) {
		name, where = r.expand(name), r.expand(where)
		own := r.own
		if !identified {
			own.Nonce = owned.New("0abc").Nonce // the marks carry another nonce
		}
		d := map[string]string{"path": where, "baseDir": where, "endpoint": where, "request": more}
		if kind == "process" || more == "pid" {
			d["pid"], d["start"], d["boot"] = r.victim, start, strings.TrimSpace(string(boot))
			if !alive {
				d["boot"] = "another"
			}
		}
		entry := op.LedgerEntry{Kind: kind, Name: name, Data: d}
		if err := local.New(local.Options{Identity: own}).Check(entry); err != nil {
			return
		}
		if why := r.notOurs(entry, identified, alive); why != "" {
			t.Fatalf("%v is accepted: %s", entry, why)
		}
	})
}

// notOurs returns why an entry must not be accepted, or an empty string.
func (r *killedRun) notOurs(entry op.LedgerEntry, identified, alive bool) string {
	d := entry.Data
	switch entry.Kind {
	case "dir":
		memory := strings.HasPrefix(entry.Name, pod.MemoryDir(r.own.Scratch)+"-") &&
			filepath.Clean(entry.Name) == entry.Name
		if entry.Name != r.own.Scratch && !memory || d["path"] != "" && d["path"] != entry.Name {
			return "its path is not the run's"
		}
		return r.unmarked(entry.Name, identified)
	case "driver":
		if d["baseDir"] != filepath.Join(r.own.Storage, "0abc", entry.Name) || strings.Contains(entry.Name, "/") ||
			strings.Trim(entry.Name, ".") == "" {
			return "its directory is not the run's"
		}
		if d["pid"] != "" && alive {
			return "the process is not the run's"
		}
		return r.unmarked(filepath.Dir(d["baseDir"]), identified)
	case "process":
		if alive {
			return "the process is not the run's"
		}
		return ""
	case "volume", "snapshot", "group":
		var req struct{ Name string }
		if json.Unmarshal([]byte(d["request"]), &req) != nil || req.Name != "cnsbench-0abc-"+entry.Name ||
			d["endpoint"] != r.own.Endpoint {
			return "it is not an object of the run at its driver"
		}
		return r.unmarked(r.own.Scratch, identified)
	}
	return "its kind is not known"
}

// unmarked returns an error text if a directory exists and does not carry the mark of the identity.
func (r *killedRun) unmarked(dir string, identified bool) string {
	_, err := os.Lstat(dir)
	if gone := errors.Is(err, fs.ErrNotExist); gone || identified && (dir == r.own.Scratch ||
		dir == filepath.Join(r.own.Storage, "0abc")) {
		return ""
	}
	return "there is " + dir + ", without its mark"
}
