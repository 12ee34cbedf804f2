//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// cosbenchFile is a workload of COSBench with one work, whose storage, auth and
// operation are to be put in.
const cosbenchFile = `<workload name="w">%s<workflow><workstage name="main">
<work name="main" workers="1" totalOps="10">%s</work></workstage></workflow></workload>`

const readOne = `<operation type="read" config="containers=c(1);objects=c(1)"/>`

// TestObjectLint: what COSBench takes is taken, what it refuses is refused, and
// what could mean two things is not guessed.
func TestObjectLint(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, tt := range []struct {
		name, stores, operation string
		code                    int
		says                    string
	}{
		{"sizes without a unit", `<storage type="null"/>`,
			`<operation type="write" config="containers=c(1);objects=c(1);sizes=c(64)"/>`, 1,
			`2: sizes "c(64)": missing unit: write c(64)B for bytes, c(64)KB or c(64)KiB`},
		{"endpoint without a scheme", `<storage type="s3" config="endpoint=192.0.2.1:9000;accesskey=a;secretkey=b"/>`,
			readOne, 1,
			"has no scheme: write endpoint=http://192.0.2.1:9000, or endpoint=https://192.0.2.1:9000 for TLS"},
		{"no storage", "", readOne, 0, `2: warning: work "main" has no storage: storage none is used, as in COSBench`},
		{"other names of keys", `<storage type="swift"/>
<auth type="keystone" config="url=http://h/v3;username=u;tenname=t"/>`,
			readOne, 0, "w is valid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := b.run("object", "lint", b.write("w.xml", fmt.Sprintf(cosbenchFile, tt.stores, tt.operation))).wants(t, tt.code)
			if !strings.Contains(r.stdout+r.stderr, tt.says) {
				t.Errorf("want %q\n%v", tt.says, r)
			}
		})
	}
}
