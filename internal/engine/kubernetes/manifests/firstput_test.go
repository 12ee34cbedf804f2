package manifests

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// TestFirstPut checks attempts, milestones and errors of a first PUT. The Secret is as COSI v0.2.2 writes it.
func TestFirstPut(t *testing.T) {
	const info = `{"metadata":{"name":"bc-1"},"spec":{"bucketName":"bucket-1","authenticationType":"Key",` +
		`"secretS3":{"endpoint":"http://s3:1","region":"r","accessKeyID":"id","accessSecretKey":"hidden"},` +
		`"secretAzure":null,"protocols":["S3"]}}`
	refusal, failure := errors.New("403 AccessDenied"), errors.New("no route")
	for _, tt := range []struct {
		name, info string
		refusals   int
		last       error // after the refusals
		deletion   error
		says       string
		attempts   int
	}{
		{name: "at once", info: info, attempts: 1},
		{name: "after two refusals", info: info, refusals: 2, attempts: 3},
		{name: "no answer", info: info, last: failure, says: "no route", attempts: 1},
		{name: "the object stays", info: info, deletion: errors.New("delete the object: 500"), says: "delete the object",
			attempts: 1},
		{name: "Azure", info: `{"spec":{"secretAzure":{"accessToken":"hidden"}}}`, says: "no credentials of S3", attempts: 1},
		{name: "no JSON", info: `hidden`, says: "is not the JSON of COSI", attempts: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := apitest.Start(t)
			server.Add(t, "/api/v1/namespaces/ns/secrets/s", fmt.Sprintf(`{"data": {"BucketInfo": %q}}`,
				base64.StdEncoding.EncodeToString([]byte(tt.info))))
			clock, puts := op.NewClock(), 0
			e := New(pods.New(core.New(core.Options{Config: &rest.Config{Host: server.URL}, PutOnce: func(
				_ context.Context, _ op.Clock, b engine.Bucket, _ string) (op.Time, bool, error) {
				if want := (engine.Bucket{Endpoint: "http://s3:1", Region: "r", Name: "bucket-1", AccessKey: "id",
					SecretKey: "hidden"}); b != want {
					t.Errorf("bucket %+v", b)
				}
				switch puts++; {
				case puts <= tt.refusals:
					return op.Never, true, refusal
				case tt.last != nil:
					return op.Never, false, tt.last
				}
				return clock.Now(), false, tt.deletion
			}})), nil)
			e.Session.Clock = clock
			if err := e.Connect(clock); err != nil {
				t.Fatal(err)
			}
			access := object(t, "{metadata: {name: access, namespace: ns}, spec: {credentialsSecretName: s}}")
			tr := op.NewTrace(clock)
			tr.Attempt()
			err := firstPut(t.Context(), e.Run, access, tr)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error has the credentials: %v", err)
			}
			var o op.Op
			tr.Fill(&o)
			marked := 0
			for _, ms := range o.Milestones {
				if ms.Name == op.FirstPut || ms.Name == op.Ready {
					marked++
				}
			}
			if done := tt.says == "" || tt.deletion != nil; o.Attempts != tt.attempts || done != (marked == 2) {
				t.Errorf("%d attempts, milestones %v", o.Attempts, o.Milestones)
			}
		})
	}
}
