package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// lies are texts for places that name something: a path, a run, a server.
func lies(o *Outside) map[string]string {
	return map[string]string{"empty": "", "parent": "..", "root": "/", "outside": o.Dir,
		"way out": "../outside/precious", "file outside": o.file(), "another run": o.RunID, "endless": "/dev/zero", "server": o.URL, "socket": o.Socket,
		"pipe": filepath.Join(o.Dir, "pipe"), "long": strings.Repeat("x/", 1<<19)}
}

var lieNames = []string{"empty", "parent", "root", "outside", "way out", "file outside", "another run", "endless",
	"server", "socket", "pipe", "long"}

// identity is a forged identity, whose directories have its mark and the state of a driver.
func identity(o *Outside) owned.Identity {
	return owned.Identity{RunID: runID, Nonce: nonce, Scratch: o.scratch(), Storage: o.storage(), Namespace: "ns",
		Server: o.URL}
}

// named are the places of run.json that name something outside of the bundle, besides all texts of the identity. The
// others are the user's words, and varied by document.
var named = map[string]func(*bundle.Run) []*string{
	"run ID": func(r *bundle.Run) []*string { return []*string{&r.ID} },
	"source": func(r *bundle.Run) []*string { return []*string{&r.Source.File} },
	"engine": func(r *bundle.Run) []*string { return []*string{&r.Engine} },
	"trace": func(r *bundle.Run) []*string {
		r.Source.Traces = []bundle.Trace{{Rate: "often", SHA256: strings.Repeat("0", 64)}}
		return []*string{&r.Source.Traces[0].File}
	},
	"workload": func(r *bundle.Run) []*string {
		r.Source.Workloads = []bundle.Workload{{Origin: "x"}, {Name: "fio"}}
		return []*string{&r.Source.Workloads[0].Name, &r.Source.Workloads[1].Origin}
	},
}

// forged are bundles that name what is not theirs.
func forged() (list []Variant) {
	add := func(kind, name string, change func(r *bundle.Run, o *Outside)) {
		list = append(list, Variant{Name: "forged " + name, Group: "forged", Kind: kind,
			make: func(tb testing.TB, dir string, o *Outside) {
				r := good(kind)
				r.Identity = identity(o)
				change(&r, o)
				writeJSON(tb, filepath.Join(dir, "run.json"), r)
			}})
	}
	for _, kind := range []string{Local, Cluster, Object} {
		for _, lie := range lieNames {
			for i := range reflect.TypeFor[owned.Identity]().NumField() {
				add(kind, "identity "+reflect.TypeFor[owned.Identity]().Field(i).Name+": "+lie, func(r *bundle.Run, o *Outside) {
					if f := reflect.ValueOf(&r.Identity).Elem().Field(i); f.Kind() == reflect.String {
						f.SetString(lies(o)[lie])
					}
				})
			}
			for what, at := range named {
				add(kind, what+": "+lie, func(r *bundle.Run, o *Outside) {
					for _, s := range at(r) {
						*s = lies(o)[lie]
					}
				})
			}
			if kind == Object {
				add(kind, "store: "+lie, func(r *bundle.Run, o *Outside) { r.Plan = json.RawMessage(storeAt(lies(o)[lie])) })
			}
		}
	}
	list = append(list, forgedOutputs()...)
	list = append(list, forgedEntries()...)
	list = append(list, forgedState()...)
	return append(list, forgedStudies()...)
}

// storeAt is the plan of an object run on several kinds of stores at a place.
func storeAt(place string) string {
	quoted, _ := json.Marshal(place)
	stores := []string{`{"kind":"file","settings":{"root":%s}}`, `{"kind":"s3","settings":{"endpoint":%s}}`,
		`{"kind":"swift","settings":{},"authKind":"keystone","auth":{"auth_url":%s,"username":"u"}}`,
		`{"kind":"swift","settings":{},"authKind":"swauth","auth":{"auth_url":%s,"username":"u"}}`}
	var works []string
	for _, s := range stores {
		works = append(works, strings.Replace(objects, `{"kind":"file","settings":{"root":"/nonexistent"}}`,
			fmt.Sprintf(s, quoted), 1))
	}
	whole := map[string]any{}
	var stages []any
	for _, w := range works {
		_ = json.Unmarshal([]byte(w), &whole) // it is valid
		stages = append(stages, whole["stages"].([]any)...)
		delete(whole, "stages")
	}
	whole["stages"] = stages
	text, _ := json.Marshal(whole) // it was decoded from JSON
	return string(text)
}

// forgedOutputs are bundles whose Benchmark sends results, with credentials of the reader, to a server of the author.
func forgedOutputs() (list []Variant) {
	for kind, spec := range map[string]string{"elasticsearchSpec": `"url":%q,"index":"i"`, "otlpSpec": `"endpoint":%q`,
		"remoteWriteSpec": `"url":%q`, "s3Spec": `"endpoint":%q,"bucket":"b"`} {
		for _, credentials := range []string{"environment", "file"} {
			list = append(list, Variant{Name: "output " + kind + " with credentials of " + credentials,
				Group: "forged", Kind: Local, make: func(tb testing.TB, dir string, o *Outside) {
					of := ""
					if credentials == "file" {
						of = fmt.Sprintf(`,"credentials":{"file":%q}`, o.secret())
					}
					r := good(Local)
					r.Spec = json.RawMessage(strings.Replace(benchmark, `"fileSpec":{"path":"results.jsonl"}`,
						fmt.Sprintf(`"`+kind+`":{`+spec+"%s}", o.URL, of), 1))
					writeJSON(tb, filepath.Join(dir, "run.json"), r)
					write(tb, dir+".outbox", "{}")
				}})
		}
	}
	return list
}

// forgedEntries are bundles whose ledger names what is not the run's.
func forgedEntries() (list []Variant) {
	for i, entry := range []func(*Outside) op.LedgerEntry{
		func(o *Outside) op.LedgerEntry { return op.LedgerEntry{Kind: "dir", Name: o.Dir} },
		func(o *Outside) op.LedgerEntry { return op.LedgerEntry{Kind: "dir", Name: o.scratch()} },
		func(o *Outside) op.LedgerEntry {
			return op.LedgerEntry{Kind: "dir", Name: "x", Data: map[string]string{"path": filepath.Join(o.Dir, "precious")}}
		},
		func(o *Outside) op.LedgerEntry {
			return op.LedgerEntry{Kind: "driver", Name: "hostdir", Data: map[string]string{
				"baseDir": filepath.Join(o.storage(), runID, "hostdir")}}
		},
		func(o *Outside) op.LedgerEntry {
			return op.LedgerEntry{Kind: "driver", Name: "..", Data: map[string]string{"baseDir": o.Dir}}
		},
		func(o *Outside) op.LedgerEntry {
			return op.LedgerEntry{Kind: "process", Name: "p", Data: process(o.PID)}
		},
		func(*Outside) op.LedgerEntry { return op.LedgerEntry{Kind: "cgroup", Name: "/../../cnsbench-x"} },
		func(o *Outside) op.LedgerEntry { return ofDriver("volume", "w", o) },
		func(o *Outside) op.LedgerEntry { return ofDriver("snapshot", "s", o) },
		func(o *Outside) op.LedgerEntry { return ofDriver("group", "g", o) },
		func(*Outside) op.LedgerEntry {
			return op.LedgerEntry{Kind: "pods", Name: "../../kube-system/pods/p", Data: map[string]string{"namespace": ".."}}
		},
		func(o *Outside) op.LedgerEntry { return op.LedgerEntry{Kind: "unheard-of", Name: o.file()} },
	} {
		for _, kind := range []string{Local, Cluster, Object} {
			for _, left := range []bool{false, true} {
				name := fmt.Sprintf("forged entry %d, left %v", i, left)
				made := func(tb testing.TB, dir string, o *Outside) {
					r, e := good(kind), entry(o)
					r.Identity, r.State = identity(o), bundle.Running
					if left {
						r.Left = []op.LedgerEntry{e}
					}
					writeJSON(tb, filepath.Join(dir, "run.json"), r)
					write(tb, filepath.Join(dir, "ledger"), string(added(e)))
				}
				list = append(list, Variant{Name: name, Group: "forged", Kind: kind, make: made})
			}
		}
	}
	return list
}

// process identifies a process as the ledger does.
func process(pid int) map[string]string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // none: the entry lacks it
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, rest, _ := strings.Cut(string(stat), ") ")
	start := ""
	if fields := strings.Fields(rest); len(fields) > 19 {
		start = fields[19]
	}
	return map[string]string{"pid": strconv.Itoa(pid), "start": start, "boot": strings.TrimSpace(string(boot))}
}

// ofDriver is an entry of an object of a CSI driver.
func ofDriver(kind, name string, o *Outside) op.LedgerEntry {
	return op.LedgerEntry{Kind: kind, Name: name, Data: map[string]string{"endpoint": o.Socket, "id": "theirs",
		"request": `{"name":"cnsbench-` + runID + "-" + name + `"}`, "stage": filepath.Join(o.Dir, "precious"),
		"target": filepath.Join(o.Dir, "precious"), "source": "theirs"}}
}

// forgedState are bundles that are the storage of their run themselves, with state of a driver.
func forgedState() (list []Variant) {
	for _, driver := range []string{"hostdir", "loopback", "null", "..", "x/../../.."} {
		for _, what := range []string{"published", "link", "pipe"} {
			list = append(list, Variant{Name: "state of driver " + driver + ": " + what, Group: "forged", Kind: Local,
				make: func(tb testing.TB, dir string, o *Outside) {
					r := good(Local)
					r.Identity = identity(o)
					r.Identity.Storage = filepath.Join(dir, "storage")
					base := filepath.Join(r.Identity.Storage, runID, filepath.Base(driver))
					state := filepath.Join(base, "state", "volumes.jsonl")
					write(tb, filepath.Join(r.Identity.Storage, runID, ".cnsbench-run"), runID+" "+nonce+"\n")
					row, _ := json.Marshal(map[string]any{"ID": "../../..", "Row": map[string]any{"ID": "../../..", "Path": o.Dir,
						"Published": map[string]any{o.Dir: map[string]any{}}}})
					write(tb, state, string(row)+"\n")
					var err error
					switch what {
					case "link":
						err = os.Symlink(o.file(), state+".new")
					case "pipe":
						err = syscall.Mkfifo(state+".new", 0o644)
					}
					if err != nil {
						tb.Fatal(err)
					}
					writeJSON(tb, filepath.Join(dir, "run.json"), r)
					write(tb, filepath.Join(dir, "ledger"), string(added(op.LedgerEntry{Kind: "driver", Name: driver,
						Data: map[string]string{"baseDir": base}})))
				}})
		}
	}
	return list
}

// forgedStudies are studies whose trials and command are elsewhere.
func forgedStudies() (list []Variant) {
	for _, lie := range lieNames {
		for what, change := range map[string]func(d *storedDesign, to string){
			"trial":       func(d *storedDesign, to string) { d.Trials[0].Name = to },
			"files":       func(d *storedDesign, to string) { d.Command.Files = []string{to} },
			"directory":   func(d *storedDesign, to string) { d.Command.Dir = to },
			"arguments":   func(d *storedDesign, to string) { d.Command.Args = []string{"--storage-dir=" + to} },
			"output":      func(d *storedDesign, to string) { d.Command.Args = []string{"--out=" + to} },
			"source":      func(d *storedDesign, to string) { d.Sources[0].Name = to },
			"merged from": func(d *storedDesign, to string) { d.Merged = []string{to} },
		} {
			list = append(list, Variant{Name: "forged " + what + ": " + lie, Group: "forged", Kind: Study,
				make: func(tb testing.TB, dir string, o *Outside) {
					d := storedDesign{1, twoTrials()}
					change(&d, lies(o)[lie])
					writeJSON(tb, filepath.Join(dir, "study.json"), d)
				}})
		}
	}
	return list
}
