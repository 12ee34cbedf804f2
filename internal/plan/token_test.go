package plan

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTokensOfPods checks that a pod has a ServiceAccount token only if its template asks
// for it, and that such pods give a warning.
func TestTokensOfPods(t *testing.T) {
	const pod = "spec: {%s containers: [{name: c, image: i, command: [a]}]}"
	with := func(fields string) string { return strings.Replace(pod, "%s", fields, 1) }
	const denied, allowed = "automountServiceAccountToken: false", "automountServiceAccountToken: true"
	for _, tt := range []struct {
		name, pod, want, rendered string
	}{
		{"says nothing of it", with(""), "", denied},
		{"names an account", with("serviceAccountName: me,"),
			`the template names ServiceAccount "me", but no token of it is mounted`, denied},
		{"asks for one", with(allowed + ","), `asks for the token of ServiceAccount "default"`, allowed},
		{"asks for that of an account", with(allowed + ", serviceAccountName: me,"),
			`asks for the token of ServiceAccount "me"`, allowed},
		{"mounts one itself", with("volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}],"),
			`asks for the token of ServiceAccount "default"`, denied},
		{"does without", with(denied + ","), "", denied},
	} {
		folder := func(string) (fs.FS, error) {
			entry := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" + tt.pod + "\n"
			return fstest.MapFS{"w/pod.yaml": {Data: []byte(entry)}}, nil
		}
		manifest := func(text string) string {
			return "  actions: [{name: d, createObjSpec: {manifest: {" + text + "}}}]\n"
		}
		template := "template: {metadata: {labels: {a: b}}, " + tt.pod + "}"
		for kind, text := range map[string]string{
			"workload": "  library: [{folderSpec: {path: lib}}]\n  actions: [{name: w, createObjSpec: {workload: w}}]\n",
			"Deployment": manifest("apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, " +
				template + "}"),
			"CronJob": manifest("apiVersion: batch/v1, kind: CronJob, spec: {schedule: '* * * * *', jobTemplate: {spec: {" +
				template + "}}}"),
			"Pod": manifest("apiVersion: v1, kind: Pod, " + tt.pod),
		} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				files := []File{{Name: "x.yaml", Data: []byte(head + "spec:\n" + text)}}
				p, problems := Load(t.Context(), Input{Folder: folder, Capabilities: everything(), Files: files})
				if p == nil {
					t.Fatal(problems)
				}
				said := fmt.Sprint(p.Warnings)
				if !strings.Contains(said, tt.want) || tt.want == "" && strings.Contains(said, "ServiceAccount") {
					t.Errorf("said %q, want %q", said, tt.want)
				}
				out, err := Render(p, "r1")
				if err != nil || !strings.Contains(string(out), " "+tt.rendered+"\n") {
					t.Errorf("%v: want %q in\n%s", err, tt.rendered, out)
				}
			})
		}
	}
}
