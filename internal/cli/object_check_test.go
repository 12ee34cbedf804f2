package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// forgetful is an in-memory S3 server, with only the requests that the tests need. It applies some changes late: the
// next three reads, or listings, of the object show its previous state. It counts those of them that differ from the
// current state.
type forgetful struct {
	everyRead, everyList int // every n-th change is shown late

	mu      sync.Mutex
	buckets map[string]bool
	objects map[string]*kept
	changes int
	late    map[string]int
}

type kept struct {
	now, before         []byte // content; nil: the object does not exist
	lateReads, lateList int
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	k := f.objects[r.URL.Path]
	if k == nil && object != "" {
		k = &kept{}
		f.objects[r.URL.Path] = k
	}
	switch {
	case object == "" && r.Method == http.MethodGet:
		f.list(w, bucket, r.URL.Query().Get("prefix"))
	case object == "" && r.Method == http.MethodPut:
		f.buckets[bucket] = true
	case object == "" && !f.buckets[bucket]:
		w.WriteHeader(http.StatusNotFound)
	case object == "":
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		f.change(k, object, body)
	case r.Method == http.MethodDelete:
		f.change(k, object, nil)
		w.WriteHeader(http.StatusNoContent)
	default:
		shown := k.now
		if k.lateReads > 0 {
			shown, k.lateReads = k.before, k.lateReads-1
		}
		if shown == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(shown)
	}
}

func (f *forgetful) change(k *kept, object string, to []byte) {
	k.before, k.now = k.now, to
	if object == ".cnsbench-owner" {
		return
	}
	f.changes++
	verb := "write"
	if to == nil {
		verb = "delete"
	}
	if f.everyRead > 0 && f.changes%f.everyRead == 0 && (k.before != nil || to != nil) {
		k.lateReads = 3
		kind := "stale"
		switch {
		case to == nil:
			kind = "remains"
		case k.before == nil:
			kind = "missing"
		}
		f.late[verb+" read "+kind]++
	}
	if f.everyList > 0 && f.changes%f.everyList == 0 && (k.before == nil) != (to == nil) {
		k.lateList = 3
		f.late[verb+" list"]++
	}
}

func (f *forgetful) list(w io.Writer, bucket, prefix string) {
	k := f.objects["/"+bucket+"/"+prefix]
	fmt.Fprint(w, "<ListBucketResult>")
	if k != nil {
		there := k.now != nil
		if k.lateList > 0 {
			there, k.lateList = !there, k.lateList-1
		}
		if there {
			fmt.Fprintf(w, "<Key>%s</Key>", prefix)
		}
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

// checked is a work that writes and deletes objects, and checks both operations.
const checked = `<work name="main" workers="7" totalOps="3000" config="check=readAfterWrite,listAfterWrite,readAfterDelete,listAfterDelete">
<operation type="write" ratio="60" config="containers=u(1,2);objects=u(1,5);sizes=u(1,9)KB"/>
<operation type="delete" ratio="40" config="containers=u(1,2);objects=u(1,5)"/></work>`

// TestObjectChecks checks that the violations in a bundle equal the late responses of a server, and that there are none
// for a consistent server and for files.
func TestObjectChecks(t *testing.T) {
	tests := []struct {
		name string
		f    *forgetful // nil: the storage type is file
		code int
	}{
		{"a server that forgets", &forgetful{everyRead: 17, everyList: 23}, exitInvalid},
		{"a server that does not", &forgetful{}, exitOK},
		{"files", nil, exitOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			xml := objectXML(t.TempDir(), checked)
			want := map[string]float64{}
			if tt.f != nil {
				tt.f.buckets, tt.f.objects, tt.f.late = map[string]bool{}, map[string]*kept{}, map[string]int{}
				server := httptest.NewServer(tt.f)
				defer server.Close()
				i, j := strings.Index(xml, "<storage"), strings.Index(xml, "<workflow")
				xml = xml[:i] + `<storage type="s3" config="endpoint=` + server.URL + `;accesskey=a;secretkey=b"/>` + xml[j:]
				// Without the prepare and cleanup stages, all changes are made by operations that are checked.
				xml = strings.Replace(xml, `<workstage name="prepare"><work type="prepare" workers="2" config="containers=r(1,2);objects=r(1,5);sizes=c(8)KB"/></workstage>`, "", 1)
				xml = xml[:strings.Index(xml, `<workstage name="cleanup">`)] + "</workflow></workload>"
			}
			dir := filepath.Join(t.TempDir(), "bundle")
			code, out, errs := object(t, xml, "object", "run", "--strict", "--out", dir)
			if strings.Contains(out, "client-bound") && code == exitInvalid {
				tt.code = exitInvalid // the machine is busy, so that --strict fails the run
			}
			if code != tt.code || !strings.Contains(errs, "main/main write: readAfterWrite: ") {
				t.Fatalf("exit %d, want %d\n%s%s", code, tt.code, out, errs)
			}
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if tt.f != nil {
				l := tt.f.late
				want = map[string]float64{"write.readAfterWrite": float64(l["write read stale"] + l["write read "+
					"missing"]), "write.listAfterWrite": float64(l["write list"]),
					"delete.readAfterDelete": float64(l["delete read remains"]),
					"delete.listAfterDelete": float64(l["delete list"])}
			}
			seen := 0
			for s, err := range b.Scalars() {
				if err != nil {
					t.Fatal(err)
				}
				if name, ok := strings.CutSuffix(s.Metric, ".violations"); ok {
					if seen++; s.Value != want[name] {
						t.Errorf("%s: %v violations, want %v", name, s.Value, want[name])
					}
				}
				if strings.HasSuffix(s.Metric, ".checks") && s.Value < 500 {
					t.Errorf("%s: %v", s.Metric, s.Value)
				}
			}
			if seen != 4 {
				t.Errorf("%d kinds of checks in the bundle, want 4", seen)
			}
			if tt.f != nil && tt.f.everyRead > 0 &&
				(want["write.readAfterWrite"] < 20 || want["delete.listAfterDelete"] < 5) {
				t.Errorf("%v were injected: too few to tell", want)
			}
		})
	}
}

// TestObjectChecksThatCannotBe checks that a configuration in which a violation would prove nothing is rejected.
func TestObjectChecksThatCannotBe(t *testing.T) {
	op := func(config string) string {
		return "<work name=\"main\" workers=\"3\" totalOps=\"10\">\n<operation type=\"write\" ratio=\"100\" " +
			"config=\"containers=c(1);objects=u(1,9);" + config + "\"/></work>"
	}
	tests := []struct{ name, main, want string }{
		{"an unknown check", op("sizes=c(1)KB;check=sometimes"), `invalid check "sometimes"`},
		{"a check that has no meaning", op("sizes=c(1)KB;check=listAfterDelete"),
			"listAfterDelete cannot be checked after write"},
		{"zeros", op("sizes=c(1)KB;content=zero;check=readAfterWrite"), "zeros do not"},
		{"too small", op("sizes=c(8)B;check=readAfterWrite"), "at least 32 bytes"},
		{"cannot be divided", strings.Replace(op("sizes=c(1)KB;check=readAfterWrite"), "u(1,9)", "s(1,9)", 1),
			"cannot be divided"},
		{"another work writes the same", op("sizes=c(1)KB;check=readAfterWrite") +
			"\n" + strings.Replace(op("sizes=c(1)KB"), "main", "other",
			1), "may change objects while work \"main\" checks"},
		{"another work deletes near", op("sizes=c(1)KB;check=readAfterWrite") +
			"\n" + strings.Replace(op("sizes=c(1)KB;oprefix=myobjects1"), "main", "other",
			1), "may change objects while work \"main\" checks"},
		{"another work writes elsewhere", op("sizes=c(1)KB;check=readAfterWrite") +
			"\n" + strings.Replace(op("sizes=c(1)KB;oprefix=others"), "main", "other", 1), "is valid"},
		{"another work reads", op("sizes=c(1)KB;check=listAfterWrite") + `<work name="r" workers="1" totalOps="9"><operation type="read" config="containers=c(1);objects=u(1,9)"/></work>`, "is valid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, out, errs := object(t, objectXML(t.TempDir(), tt.main), "object",
				"lint"); !strings.Contains(out+errs, tt.want) {
				t.Errorf("want %q in\n%s%s", tt.want, out, errs)
			}
		})
	}
}
