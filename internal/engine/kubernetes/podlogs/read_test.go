package podlogs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/apitest"
)

const second = op.Time(time.Second)

// kubelet serves pods and logs as the API server does; a log is cut at sinceTime and limitBytes.
type kubelet struct {
	*apitest.Server
	t     *testing.T
	start time.Time
	// logs by POD/CONTAINER, and POD/CONTAINER/previous; each line begins with its time in seconds of the run.
	logs   map[string]string
	refuse string // a prefix of paths that are forbidden

	mu    sync.Mutex
	calls []string
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if k.refuse != "" && strings.HasPrefix(r.URL.Path, k.refuse) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403, Message: "no"})
		return
	}
	pod, isLog := strings.CutSuffix(r.URL.Path, "/log")
	if !isLog {
		k.Server.ServeHTTP(w, r)
		return
	}
	q := r.URL.Query()
	name := pod[strings.LastIndexByte(pod, '/')+1:] + "/" + q.Get("container")
	if q.Get("previous") == "true" {
		name += "/previous"
	}
	k.mu.Lock()
	k.calls = append(k.calls, name)
	k.mu.Unlock()
	var out strings.Builder
	for line := range strings.Lines(k.logs[name]) {
		stamp, text, _ := strings.Cut(line, " ")
		seconds, err := strconv.ParseFloat(stamp, 64)
		if err != nil {
			k.t.Errorf("%q: %v", line, err)
		}
		at := k.start.Add(time.Duration(seconds * 1e9))
		if since, err := time.Parse(time.RFC3339, q.Get("sinceTime")); err == nil && at.Before(since) {
			continue
		}
		out.WriteString(at.UTC().Format(time.RFC3339Nano) + " " + text)
	}
	limit, err := strconv.Atoi(q.Get("limitBytes"))
	if err != nil || q.Get("timestamps") != "true" {
		k.t.Errorf("query %v: want timestamps and a limit", q)
	}
	_, _ = w.Write([]byte(out.String()[:min(limit, out.Len())]))
}

// read reads the windows of a run that uses disk.example.
func (k *kubelet) read(windows ...engine.LogWindow) (lines, notes []string) {
	k.t.Helper()
	srv := httptest.NewServer(k)
	k.t.Cleanup(srv.Close)
	run := core.New(core.Options{Config: &rest.Config{Host: srv.URL}, Namespace: "bench"})
	run.Session.RunID, run.Session.Clock = "r1", op.NewClock()
	k.start = run.Session.Clock.Start().Round(0)
	run.Session.StorageClasses = map[string]storagev1.StorageClass{"disk": {Provisioner: "disk.example"}}
	if err := run.Connect(run.Session.Clock); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(run.Client.Close)
	var mu sync.Mutex
	notes = Read(k.t.Context(), run, windows, func(at op.Time, source, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf("%.1f %s: %.80s", float64(at)/1e9, source, line))
	})
	return lines, notes
}

// server returns a kubelet with a pod that serves disk.example.
func server(t *testing.T, status string, logs map[string]string) *kubelet {
	t.Helper()
	k := &kubelet{Server: apitest.Start(t), t: t, logs: logs}
	k.Add(t, "/api/v1/namespaces/disk/pods/controller", `{"spec":{"nodeName":"n1","containers":[{"name":"prov",`+
		`"image":"csi-provisioner:v6","args":["--x=disk.example"]}]},"status":{"containerStatuses":[{"name":"prov",`+
		`"containerID":"c://1"`+status+`}]}}`)
	return k
}

func TestRead(t *testing.T) {
	log := "1 before\n10.5 one\n11 two \x1b[2J\n20 between\n31 three\n40 after\n"
	windows := []engine.LogWindow{{From: 10 * second, To: 12 * second}, {From: 30 * second, To: 32 * second}}
	long := "10 " + strings.Repeat("x", 1<<20) + "\n11 next\n"
	flood := strings.Repeat("10.5 "+strings.Repeat("y", 1000)+"\n", 8<<10)
	tests := []struct {
		name, status string
		logs         map[string]string
		want, notes  []string
	}{
		{"windows only", "", map[string]string{"controller/prov": log},
			[]string{"10.5 disk/controller/prov: one", "11.0 disk/controller/prov: two \x1b[2J",
				"31.0 disk/controller/prov: three"}, nil},
		{"empty log", "", nil, nil, nil},
		{"a line of 1 MiB", "", map[string]string{"controller/prov": long},
			[]string{"10.0 disk/controller/prov: " + strings.Repeat("x", 80), "11.0 disk/controller/prov: next"}, nil},
		{"before a restart", `,"restartCount":1,"lastState":{"terminated":{"finishedAt":"2999-01-01T00:00:00Z"}}`,
			map[string]string{"controller/prov/previous": "11 died\n", "controller/prov": "12 again\n"},
			[]string{"11.0 disk/controller/prov before its restart: died", "12.0 disk/controller/prov: again"}, nil},
		{"rotated", `,"state":{"running":{"startedAt":"2000-01-01T00:00:00Z"}}`,
			map[string]string{"controller/prov": "31 late\n"}, []string{"31.0 disk/controller/prov: late"},
			[]string{"disk/controller/prov: its node keeps its log from 31 s of the run on: earlier lines are missing"}},
		{"a flood", "", map[string]string{"controller/prov": flood}, nil,
			[]string{"disk/controller/prov: more than 4 MiB of log in a window: the rest is not read"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines, notes := server(t, tt.status, tt.logs).read(windows...)
			if tt.name == "a flood" {
				if n := len(lines); n < 3900 || n > 4200 {
					t.Errorf("%d lines", n)
				}
				lines = nil
			}
			if diff := cmp.Diff(tt.want, lines); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadForbidden checks that missing rights are named once, and that what may be read is read.
func TestReadForbidden(t *testing.T) {
	tests := []struct {
		name, refuse string
		want         string
	}{
		{"list pods", "/api/v1/pods", "the logs of drivers, sidecars and controllers are not read: " +
			"the right is missing: list pods in all namespaces"},
		{"get pods/log", "/api/v1/namespaces/disk/pods/", "the right is missing: get pods/log in namespace disk: " +
			"logs of its pods are not kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := server(t, "", map[string]string{"controller/prov": "1 a\n", "controller/more": "1 a\n", "srv/nfs": "1 b\n"})
			k.Add(t, "/api/v1/namespaces/disk/pods/second", `{"spec":{"containers":[{"name":"att",`+
				`"image":"csi-attacher:v4"}]},"status":{"containerStatuses":[{"name":"att","containerID":"c://2"}]}}`)
			k.Add(t, "/api/v1/namespaces/bench/pods/srv", `{"metadata":{"labels":{"cnsbench.dev/run":"r1"}},`+
				`"spec":{"containers":[{"name":"nfs","image":"nfs"}]},`+
				`"status":{"containerStatuses":[{"name":"nfs","containerID":"c://3"}]}}`)
			k.refuse = tt.refuse
			lines, notes := k.read(engine.LogWindow{From: 0, To: 2 * second})
			if diff := cmp.Diff([]string{tt.want}, notes); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"1.0 bench/srv/nfs: b"}, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadCalls checks that many windows of many containers take a bounded number of requests.
func TestReadCalls(t *testing.T) {
	k := server(t, "", nil)
	for i := range 39 {
		k.Add(t, fmt.Sprintf("/api/v1/namespaces/disk/pods/p%d", i), `{"spec":{"containers":[{"name":"att",`+
			`"image":"csi-attacher:v4"}]},"status":{"containerStatuses":[{"name":"att","containerID":"c://2"}]}}`)
	}
	var windows []engine.LogWindow
	for i := range op.Time(60) {
		windows = append(windows, engine.LogWindow{From: 10 * i * second, To: (10*i + 1) * second})
	}
	_, notes := k.read(windows...)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(notes) > 0 || len(k.calls) > maxCalls || len(k.calls) < maxCalls/2 {
		t.Errorf("%d calls, want at most %d; %q", len(k.calls), maxCalls, notes)
	}
}

func TestMerge(t *testing.T) {
	windows := []engine.LogWindow{{From: 0, To: 1}, {From: 5, To: 6}, {From: 7, To: 8}, {From: 20, To: 21}}
	for most, want := range map[int][]engine.LogWindow{
		9: windows,
		3: {{From: 0, To: 1}, {From: 5, To: 8}, {From: 20, To: 21}},
		2: {{From: 0, To: 8}, {From: 20, To: 21}},
		1: {{From: 0, To: 21}},
	} {
		if diff := cmp.Diff(want, merge(windows, most)); diff != "" {
			t.Errorf("%d: %s", most, diff)
		}
	}
}
