package backend_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// tenants is as much of an S3 server as is asked here, whose accounts have
// buckets of their own: what there is by account and path.
type tenants struct {
	mu    sync.Mutex
	there map[string]string
}

func (s *tenants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, who, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	who, _, _ = strings.Cut(who, "/")
	name := who + r.URL.Path
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	had, ok := s.there[name]
	switch {
	case r.Method == "PUT":
		s.there[name] = string(text)
	case !ok:
		w.WriteHeader(404)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
	case r.Method == "DELETE":
		delete(s.there, name)
		w.WriteHeader(204)
	default:
		fmt.Fprint(w, had)
	}
}

// What is one account's is not another's, though their buckets have the same
// name on the same server: the mark of one protects nothing of the other.
func TestBucketsOfOtherAccounts(t *testing.T) {
	fake := &tenants{there: map[string]string{"theirs/b1": "", "theirs/b1/o1": "precious"}}
	server := httptest.NewServer(fake)
	defer server.Close()
	storage := func(key string) string {
		return fmt.Sprintf(`<storage type="s3" config="endpoint=%s;accesskey=%s;secretkey=s"/>`, server.URL, key)
	}
	const config = `workers="1" config="cprefix=b;oprefix=o;containers=c(1);objects=c(1);sizes=c(1)B"`
	w, problems := cosbench.Parse([]byte(`<workload name="w"><workflow>
<workstage name="init">`+storage("ours")+`<work type="init" `+config+`/></workstage>
<workstage name="prepare">`+storage("ours")+`<work type="prepare" `+config+`/></workstage>
<workstage name="cleanup">`+storage("theirs")+`<work type="cleanup" `+config+`/></workstage>
</workflow></workload>`), cosbench.Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	clock := op.NewClock()
	opener := backend.Opener{Clock: clock, Getenv: func(string) string { return "" }}
	r := loadtest.Run(t.Context(), loadgen.Config{Workload: w, Open: opener.Store, Clock: clock, Seed: 1,
		Grace: time.Second})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "b1 does not carry CNSBench's mark") {
		t.Errorf("the run: %v", r.Err)
	}
	if fake.there["theirs/b1/o1"] != "precious" || fake.there["ours/b1/o1"] == "" {
		t.Errorf("what is there: %q", fake.there)
	}
}
