package plan

import (
	"slices"
	"strings"
	"testing"
)

// TestFirstPut checks the annotation that requests a first PUT: where it is accepted, and the right that it needs.
func TestFirstPut(t *testing.T) {
	for _, tt := range []struct{ name, manifest, want string }{
		{"an access", `kind: BucketAccess, metadata: {annotations: {cnsbench.dev/firstPut: "true"}},
          spec: {bucketClaimName: c, bucketAccessClassName: a, credentialsSecretName: s, protocol: S3}`, ""},
		{"none", `kind: BucketAccess, metadata: {annotations: {cnsbench.dev/firstPut: "false"}},
          spec: {bucketClaimName: c, bucketAccessClassName: a, credentialsSecretName: s, protocol: Azure}`, ""},
		{"a claim", `kind: BucketClaim, metadata: {annotations: {cnsbench.dev/firstPut: "true"}},
          spec: {bucketClassName: c, protocols: [S3]}`, "a BucketClaim has no credentials for a first PUT"},
		{"another value", `kind: BucketAccess, metadata: {annotations: {cnsbench.dev/firstPut: "yes"}},
          spec: {bucketClaimName: c, bucketAccessClassName: a, credentialsSecretName: s}`,
			`"yes" is neither true nor false`},
		{"another protocol", `kind: BucketAccess, metadata: {annotations: {cnsbench.dev/firstPut: "true"}},
          spec: {bucketClaimName: c, bucketAccessClassName: a, credentialsSecretName: s, protocol: Azure}`,
			"a first PUT is by S3, the protocol is Azure"},
		{"no Secret", `kind: BucketAccess, metadata: {annotations: {cnsbench.dev/firstPut: "true"}},
          spec: {bucketClaimName: c, bucketAccessClassName: a}`, "without the name of a Secret"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: x}
spec:
  actions:
    - name: b
      createObjSpec:
        manifest: {apiVersion: objectstorage.k8s.io/v1alpha1, ` + tt.manifest + `}
`
			in := Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}, Capabilities: everything(), Seed: 1}
			p, problems := Load(t.Context(), withObjects(in))
			said := ""
			for _, problem := range problems {
				said += problem.String() + "\n"
			}
			if (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
				t.Fatalf("said %q, want %q", said, tt.want)
			}
			if p == nil {
				return
			}
			reads := slices.ContainsFunc(Rights(p), func(r Right) bool { return r.Resource == "secrets" && r.Verb == "get" })
			if reads != (tt.name == "an access") {
				t.Errorf("the right to read Secrets: %v", reads)
			}
		})
	}
}
