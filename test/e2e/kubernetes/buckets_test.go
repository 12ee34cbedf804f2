//go:build e2e

package kubernetes

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestBuckets takes buckets of COSI from a claim to the first PUT and back, and compares operations and times with the
// API server's audit log and with the requests that versitygw has answered. A run that is killed is cleaned up. In the
// end versitygw has no bucket and no account.
func TestBuckets(t *testing.T) {
	// Not parallel: it counts the buckets and accounts of the whole test bed.
	bed := newBed(t)
	gateway := filepath.Join(testbedDir(), "gateway")
	if _, err := os.Stat(gateway); err != nil {
		t.Skipf("needs versitygw of the test bed: %v", err)
	}
	for name, test := range map[string]func(*project){"measured": testBuckets, "killed": testBucketsKilled} {
		t.Run(name, func(t *testing.T) {
			p := bed.project(t, noRights)
			test(p)
			for _, kind := range []string{"bucketclaims", "bucketaccesses", "secrets"} {
				if left := p.kubectl("get", kind, "--output", "name"); left != "" {
					t.Errorf("left: %s", left)
				}
			}
			// A bucket is a directory; those of versitygw itself begin with a dot.
			if left, err := filepath.Glob(filepath.Join(gateway, "data", "[^.]*")); err != nil || len(left) > 0 {
				t.Errorf("buckets left: %v, %v", left, err)
			}
			accounts, err := os.ReadFile(filepath.Join(gateway, "iam", "users.json"))
			if err != nil || strings.Contains(string(accounts), `"ba-`) {
				t.Errorf("accounts left: %s, %v", accounts, err)
			}
		})
	}
}

var bucketsExample = filepath.Join("..", "..", "..", "examples", "kubernetes", "buckets.yaml")

func testBuckets(p *project) {
	audit := p.auditOfBuckets()
	c := p.commandOn("local", bucketsExample)
	p.ends(c, 0)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the audit log is written each second
	events := audit()
	n := map[string]int{}
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		if o.Outcome != op.OK {
			p.t.Errorf("%s: %s", &o, o.Message)
			continue
		}
		n[o.Action]++
		name := "cnsb-" + b.Run.ID + "-" + o.Target
		if o.Kind == op.Delete {
			p.inOrder(&o, op.Acked, op.Gone)
			p.agrees(b, &o, op.Acked, events[name].deleted)
			continue
		}
		p.agrees(b, &o, op.Acked, events[name].created)
		p.agrees(b, &o, op.ObjectReady, events[name].ready)
		if o.Action == "access" {
			p.inOrder(&o, op.Acked, op.ObjectReady, op.FirstPut, op.Ready)
		} else {
			p.inOrder(&o, op.Acked, op.ObjectReady, op.Ready)
		}
	}
	for _, action := range []string{"bucket", "access", "revoke", "remove"} {
		if n[action] != 10 {
			p.t.Errorf("%s: %d ops succeeded, want 10", action, n[action])
		}
	}
	if len(events) != 20 {
		p.t.Errorf("the audit log has %d objects, want 20", len(events))
	}
	puts, deletes := p.gatewayRequests("cnsb-" + b.Run.ID + "-access-")
	if puts != 10 || deletes != 10 {
		p.t.Errorf("versitygw has answered %d PUTs and %d DELETEs, want 10 each", puts, deletes)
	}
	p.nowhere(c.bundle, "accessSecretKey")
}

// testBucketsKilled kills the command after some episodes, and cleans up.
func testBucketsKilled(p *project) {
	audit := p.auditOfBuckets()
	text, err := os.ReadFile(bucketsExample)
	if err != nil {
		p.t.Fatal(err)
	}
	c := p.command("local", strings.NewReplacer("then: [access, revoke, remove]", "then: [access]",
		"    - name: revoke\n      deleteSpec: {actionName: access}\n", "",
		"    - name: remove\n      deleteSpec: {actionName: bucket}\n", "",
		"    - {name: removed, expr: 'count(remove) == 10.0'}\n", "").Replace(string(text)))
	p.start(c)
	p.during(c, "three accesses are granted", func() bool {
		granted := 0
		for name, e := range audit() {
			if strings.Contains(name, "-access-") && !e.ready.IsZero() {
				granted++
			}
		}
		return granted >= 3
	})
	if err := c.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-c.over
	if out, err := p.cnsbench(p.t, "cleanup", c.bundle); err != nil {
		p.t.Errorf("cleanup: %v\n%s", err, out)
	}
}

// bucketEvents are the times at which the API server ended the requests that made, completed and deleted an object.
type bucketEvents struct{ created, ready, deleted time.Time }

// auditOfBuckets returns a function that returns the events of all objects of COSI that runs have made in the
// namespace, by name.
func (p *project) auditOfBuckets() func() map[string]bucketEvents {
	p.t.Helper()
	path := os.Getenv("CNSBENCH_AUDIT_LOG")
	if path == "" {
		p.t.Skip("CNSBENCH_AUDIT_LOG does not name the API server's audit log")
	}
	return func() map[string]bucketEvents {
		f, err := os.Open(path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer f.Close()
		all := map[string]bucketEvents{}
		lines := bufio.NewReaderSize(f, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return all
			}
			var e struct {
				Stage, Verb    string
				ObjectRef      struct{ Resource, Namespace, Name, Subresource string }
				ResponseStatus struct{ Code int }
				StageTimestamp time.Time
				ResponseObject struct {
					Status struct{ BucketReady, AccessGranted bool }
				}
			}
			if json.Unmarshal(line, &e) != nil || e.Stage != "ResponseComplete" || e.ObjectRef.Namespace != p.name ||
				!slices.Contains([]string{"bucketclaims", "bucketaccesses"}, e.ObjectRef.Resource) {
				continue
			}
			o := all[e.ObjectRef.Name]
			switch status := e.ResponseObject.Status; {
			case e.Verb == "create" && e.ResponseStatus.Code == 201:
				o.created = e.StageTimestamp
			case e.Verb == "delete" && e.ResponseStatus.Code == 200:
				o.deleted = e.StageTimestamp
			case o.ready.IsZero() && e.ResponseStatus.Code == 200 && (status.BucketReady || status.AccessGranted):
				o.ready = e.StageTimestamp
			}
			all[e.ObjectRef.Name] = o
		}
	}
}

// agrees checks a milestone against a time of the audit log.
func (p *project) agrees(b *bundle.Bundle, o *op.Op, name string, at time.Time) {
	p.t.Helper()
	if at.IsZero() {
		p.t.Errorf("%s: the audit log has nothing for %s", o, name)
		return
	}
	for _, m := range o.Milestones {
		if m.Name == name {
			apart := b.Run.Clock.Start.Add(time.Duration(m.At)).Sub(at)
			if apart.Abs() > slack+time.Duration(m.Err) {
				p.t.Errorf("%s: %s is %v from the audit log's time, ± %v", o, name, apart, time.Duration(m.Err))
			}
			return
		}
	}
	p.t.Errorf("%s has no milestone %s", o, name)
}

// gatewayRequests counts the successful PUTs and DELETEs of objects whose key begins with prefix.
func (p *project) gatewayRequests(prefix string) (puts, deletes int) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(testbedDir(), "log", "versitygw-access.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // owner bucket [time zone] address requester id operation key path status …
		if len(f) < 11 || !strings.HasPrefix(f[8], prefix) || !strings.HasPrefix(f[10], "2") {
			continue
		}
		switch f[7] {
		case "s3_PutObject":
			puts++
		case "s3_DeleteObject":
			deletes++
		}
	}
	return puts, deletes
}
