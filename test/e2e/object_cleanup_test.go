//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cnsbench/cnsbench/test/servers"
)

// TestObjectCleanup checks that cleanup removes what a killed run has written, including multipart
// objects and incomplete uploads.
func TestObjectCleanup(t *testing.T) {
	t.Parallel() // most of the time is the start of the servers
	t.Run("a Benchmark's bundle, S3 over TLS", func(t *testing.T) {
		needRoot(t)
		b, v := newBox(t), servers.ForTest(t, servers.StartVersityTLS)
		keys := []string{"AWS_ACCESS_KEY_ID=" + servers.VersityKey, "AWS_SECRET_ACCESS_KEY=" + servers.VersitySecret}
		text := head + fmt.Sprintf(`spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        objectSpec:
          storage: {s3Spec: {endpoint: %q, caFile: %q}, credentials: {file: %q}}
          stages:
            - {name: init, works: [{type: init, workers: 1, containers: "r(1,2)", containerPrefix: cnsbench-kill-}]}
            - name: main
              works:
                - {name: small, workers: 2, runtime: 60s, containers: c(1), containerPrefix: cnsbench-kill-, operations: [{type: write, objects: "s(1,1000000)", sizes: c(4)KiB}]}
                - {name: large, workers: 2, runtime: 60s, containers: c(2), containerPrefix: cnsbench-kill-, operations: [{type: multipart, objects: "s(1,1000000)", sizes: c(30)MiB}]}
`, v.Address, v.Cert, b.private("keys", strings.ToLower(strings.Join(keys, "\n"))))
		l := b.launch(b.command(context.Background(), b.cnsbench(), b.runArgs(b.write("bench.yaml", text))...))
		written := func(container string) int {
			objects, err := os.ReadDir(filepath.Join(v.Data, container))
			if err != nil {
				return 0
			}
			return len(objects)
		}
		l.until("objects were written", func() bool {
			return written("cnsbench-kill-1") > 50 &&
				written("cnsbench-kill-2") > 2
		})
		l.signal(syscall.SIGKILL)
		<-l.exited
		if r := b.run("cleanup", b.bundle()).wants(t, 0); !strings.Contains(r.stdout,
			"cnsbench object cleanup "+b.bundle()) {
			t.Errorf("the remaining buckets are not reported\n%v", r)
		}
		removed(b, b.bundle(), keys, v.Address, v.Cert, b.in("keys"))
		for _, container := range []string{"cnsbench-kill-1", "cnsbench-kill-2"} {
			if _, err := os.Stat(filepath.Join(v.Data, container)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", container, err)
			}
		}
		b.clean()
	})
	t.Run("a file, Swift", func(t *testing.T) {
		b, v := newBox(t), servers.ForTest(t, servers.StartSwift)
		file := b.write("kill.xml", fmt.Sprintf(`<workload name="kill"><auth type="tempauth" config="auth_url=%s;username=%s"/><storage type="swift"/><workflow config="cprefix=cnsbench-kill-">
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2)"/></workstage>
<workstage name="prepare"><work type="prepare" workers="4" config="containers=r(1,2);objects=r(1,20);sizes=c(4)KiB"/></workstage>
<workstage name="parts"><work workers="1" totalOps="2"><operation type="multipart" config="containers=c(1);objects=s(1,2);oprefix=large-;sizes=c(10)MiB"/></work></workstage>
<workstage name="main"><work workers="2" runtime="60"><operation type="write" config="containers=u(1,2);objects=s(1,100000);oprefix=new-;sizes=c(4)KiB"/></work></workstage>
</workflow></workload>`, v.AuthURL, servers.SwiftUser))
		password := []string{"OS_PASSWORD=" + servers.SwiftPassword}
		cmd := b.command(context.Background(), b.cnsbench(), "object", "run", file, "--out", b.bundle())
		cmd.Env = append(cmd.Env, password...)
		l := b.launch(cmd)
		l.reaches("stage main")
		l.signal(syscall.SIGKILL)
		<-l.exited
		if r := removed(b, file, password); !strings.Contains(r.stdout, "2 containers removed, with ") {
			t.Error(r)
		}
		b.clean()
	})
}

// removed runs cleanup for a file or a bundle and checks that nothing remains. The run of a bundle is forgotten then, so
// that its endpoints have to be named.
func removed(b *box, of string, credentials []string, endpoints ...string) result {
	b.Helper()
	clean := func(more ...string) result {
		cmd := b.command(b.Context(), b.cnsbench(), append([]string{"object", "cleanup", of}, more...)...)
		cmd.Env = append(cmd.Env, credentials...)
		return b.finish(b.Context(), cmd).wants(b, 0)
	}
	r := clean()
	look := []string{"--dry-run"}
	for _, e := range endpoints {
		look = append(look, "--endpoint", e)
	}
	if again := clean(look...); !strings.Contains(again.stdout, "0 containers there, 2 not") {
		b.Errorf("something is left\n%v\n%v", r, again)
	}
	return r
}
