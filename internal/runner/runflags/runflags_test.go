package runflags

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// The arguments that the table makes parse to the same flags: a runner has those of the command that starts it.
func TestArgsParse(t *testing.T) {
	want := Flags{Engine: "kubernetes", Set: []string{"a=b,c", "d=e"}, Runner: "local", Image: "i", Delivery: "init",
		Proxies: []string{"none"}, Metrics: []string{"m=http://x"}, Concurrent: true, Strict: true, Keep: true,
		SendWithin: 90 * time.Second, Out: "/bundle/n/r", RunID: "r", Serve: "127.0.0.1:1", Files: []string{"f=d"},
		Lease: "l", Identity: "i", InCluster: true, Push: "p", PushToken: "t", PushPin: "sha256:0"}
	want.Namespace = "n"
	var got Flags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	got.Add(set, Plan|Run)
	if err := set.Parse(want.Args(Runner)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The list of a study's flags keeps its order: a study continues only under equal flags.
func TestTrialArgs(t *testing.T) {
	f := Flags{Engine: "local", Endpoints: []string{"e"}, StorageDir: "/s", Inject: "i", Set: []string{"a=b"}, Strict: true}
	want := []string{"--engine", "local", "--csi-endpoint", "e", "--storage-dir", "/s", "--inject", "i"}
	if diff := cmp.Diff(want, f.Args(Trial)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A flag that only a runner or a Job has is hidden, and study run has none of them.
func TestScopes(t *testing.T) {
	var f Flags
	run, study := pflag.NewFlagSet("run", 0), pflag.NewFlagSet("study", 0)
	f.Add(run, Plan|Run)
	f.Add(study, Plan|Study)
	for _, name := range []string{"run-id", "serve", "file", "in-cluster", "push", "run-identity", "runner-lease"} {
		if fl := run.Lookup(name); fl == nil || !fl.Hidden {
			t.Errorf("--%s is not a hidden flag of run", name)
		}
	}
	if study.Lookup("in-cluster") != nil || study.Lookup("keep") != nil || study.Lookup("strict") == nil {
		t.Error("study run has the wrong flags")
	}
}
