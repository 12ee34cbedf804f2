package plan

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// No pod has credentials for the API that its template does not ask for, and
// validate names those that do.
func TestTokensOfPods(t *testing.T) {
	const pod = "spec: {%s containers: [{name: c, image: i, command: [a]}]}"
	with := func(fields string) string { return strings.Replace(pod, "%s", fields, 1) }
	for _, tt := range []struct {
		name, pod, want, rendered string
	}{
		{"says nothing of it", with(""), "", "automountServiceAccountToken: false"},
		{"names an account", with("serviceAccountName: me,"), `the template names ServiceAccount "me", but no token of it is mounted`, "automountServiceAccountToken: false"},
		{"asks for one", with("automountServiceAccountToken: true,"), `asks for the token of ServiceAccount "default"`, "automountServiceAccountToken: true"},
		{"asks for that of an account", with("automountServiceAccountToken: true, serviceAccountName: me,"), `asks for the token of ServiceAccount "me"`, "automountServiceAccountToken: true"},
		{"mounts one itself", with("volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}],"), `asks for the token of ServiceAccount "default"`, "automountServiceAccountToken: false"},
		{"does without", with("automountServiceAccountToken: false,"), "", "automountServiceAccountToken: false"},
	} {
		folder := func(string) (fs.FS, error) {
			return fstest.MapFS{"w/pod.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" + tt.pod + "\n")}}, nil
		}
		template := "{metadata: {labels: {a: b}}, " + tt.pod + "}"
		for kind, text := range map[string]string{
			"workload":   "  library: [{folderSpec: {path: lib}}]\n  actions: [{name: w, createObjSpec: {workload: w}}]\n",
			"Deployment": "  actions: [{name: d, createObjSpec: {manifest: {apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: " + template + "}}}}]\n",
			"CronJob":    "  actions: [{name: d, createObjSpec: {manifest: {apiVersion: batch/v1, kind: CronJob, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: " + template + "}}}}}}]\n",
			"Pod":        "  actions: [{name: d, createObjSpec: {manifest: {apiVersion: v1, kind: Pod, " + tt.pod + "}}}]\n",
		} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				p, problems := Load(t.Context(), Input{Folder: folder, Capabilities: everything(), Files: []File{{Name: "x.yaml", Data: []byte(head + "spec:\n" + text)}}})
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
