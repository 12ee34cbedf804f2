// Package runflags has the flags of cnsbench run in one table. The commands register their flags from it, and
// the command lines of runners are made from it.
package runflags

import (
	"time"

	"github.com/spf13/pflag"
)

// Cluster says which cluster a command uses.
type Cluster struct {
	Kubeconfig, Context, Namespace string
}

// Flags are the flags of cnsbench run. The zero value of a flag means that it is not set.
type Flags struct {
	Cluster
	Engine     string
	Set        []string // KEY=VALUE
	Endpoints  []string // of CSI drivers under test: [PROVISIONER=]SOCKET
	RetryStart time.Duration
	StorageDir string // volumes of the built-in drivers
	Inject     string // file, or its text
	Out        string
	DryRun     bool
	Strict     bool
	Keep       bool
	SendWithin time.Duration // after the run, to outputs
	Scrape     string        // HOST:PORT with metrics of the run in progress

	Runner     string // "pod" or "local"
	Listen     string
	Advertise  string
	Image      string
	Delivery   string // of the agent
	Proxies    []string
	Metrics    []string
	Concurrent bool
	CreateRBAC bool
	Patience   time.Duration // of a runner whose command ended

	// The runner's pod only.
	RunID    string
	Serve    string   // HOST:PORT that serves the growing bundle
	Files    []string // NAME=DIR: input files in parts
	Lease    string   // that the command which started this runner renews
	Identity string   // file with the identity of the run

	// The operator's Job only.
	InCluster bool
	Push      string // URL of the results service
	PushToken string // file
	PushPin   string
}

// Scope is a set of commands that accept a flag, and of lists of arguments that contain it.
type Scope uint8

const (
	// Plan is every command that loads a Benchmark: run, study run, validate, render.
	Plan Scope = 1 << iota
	// Run is cnsbench run.
	Run
	// Study is cnsbench study run.
	Study
	// Record is the list of arguments that a bundle keeps.
	Record
	// Trial is the list of arguments that all trials of a study share.
	Trial
	// Runner is the command line of a runner in a pod.
	Runner
	// Reproduce is cnsbench reproduce: the flags that say where and how, but not what is run.
	Reproduce
)

// ProxyTokenVariable is the environment variable with the token for CSI proxies.
const ProxyTokenVariable = "CNSBENCH_CSI_PROXY_TOKEN"

// flag is a row of the table. value points to a string, a list of strings, a bool or a duration.
type flag struct {
	name   string
	value  any
	in     Scope
	hidden bool
	usage  string
}

const both, hidden = Run | Study | Reproduce, true

// table lists the flags, in the order of argument lists.
func (f *Flags) table() []flag {
	return append([]flag{
		{"engine", &f.Engine, Plan | Trial | Runner, false, "engine that runs the Benchmark: local or kubernetes"},
		{"set", &f.Set, Plan | Record | Runner, false,
			"override a field or a variable, e.g. spec.runtime=10s or fio.bs=8k; may be repeated"},
		{"csi-endpoint", &f.Endpoints, Plan | Reproduce | Record | Trial, false,
			"[PROVISIONER=]SOCKET: unix socket (PATH or unix:///PATH) of the CSI driver of StorageClasses with that " +
				"provisioner, by default the driver's own name; may be repeated"},
		{"csi-retry-interval-start", &f.RetryStart, Plan | Reproduce | Record | Trial, false,
			"first wait before a call of a CSI driver is repeated; it doubles each time"},
		{"storage-dir", &f.StorageDir, both | Record | Trial, false,
			"directory for volumes of the built-in drivers: on the disk to measure"},
		{"inject", &f.Inject, Run | Study | Record | Trial, false,
			"file with delays, stalls and errors for the built-in drivers to inject"},
		{"kubeconfig", &f.Kubeconfig, Plan | Reproduce, false,
			"kubernetes: kubeconfig file (default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount)"},
		{"context", &f.Context, Plan | Reproduce, false, "kubernetes: context of the kubeconfig"},
		{"namespace", &f.Namespace, Plan | Reproduce | Runner, false,
			"kubernetes: namespace for all objects of the run (default the context's)"},

		{"runner", &f.Runner, both | Runner, false,
			"kubernetes: where the runner runs: pod, or local where pods can reach this machine"},
		{"listen", &f.Listen, both, false,
			"kubernetes: HOST:PORT where the runner listens for agents (default any port)"},
		{"advertise", &f.Advertise, both, false,
			"kubernetes: host where pods reach the runner (default the address with the route to the API server)"},
		{"image", &f.Image, both | Runner, false,
			"kubernetes: cnsbench image for the runner, the agents and the pods that hold volumes"},
		{"agent", &f.Delivery, both | Runner, false,
			"kubernetes: how the agent gets into pods: auto (an image volume where the cluster " +
				"has them, else init), init (an init container, which makes starts longer), image, or baked (in the workload's image)"},
		{"csi-proxy", &f.Proxies, both | Runner, false, "kubernetes: HOST:PORT of a cnsbench csi proxy whose records " +
			"to use, with the token in $" + ProxyTokenVariable + "; may be repeated (default the installed ones, if " +
			"the run may read them; none: no proxy at all)"},
		{"metrics", &f.Metrics, both | Runner, false, "kubernetes: URL, or NAME=URL, of a controller's or sidecar's " +
			"metrics, to read before and after the run; may be repeated"},
		{"concurrent", &f.Concurrent, both | Runner, false,
			"kubernetes: run although another run uses the same driver; both bundles record it"},
		{"create-rbac", &f.CreateRBAC, both, false,
			"kubernetes: create a ServiceAccount and its roles for the runner's pod, and remove them after the run"},
		{"runner-patience", &f.Patience, both, false, "kubernetes: how long a runner's pod continues after this " +
			"command has gone, before it ends the run and cleans up"},

		{"out", &f.Out, Run | Study | Runner, false,
			"directory for the bundle; must not exist or be empty (default cnsbench-NAME-TIME)"},
		{"dry-run", &f.DryRun, Run | Study, false, "check the file and print the budget; create nothing"},
		{"strict", &f.Strict, Run | Study | Runner, false, "exit with 4 when a figure cannot be trusted"},
		{"keep", &f.Keep, Run | Runner, false,
			"leave volumes and snapshots in place, for cnsbench cleanup BUNDLE to remove"},
		{"send-within", &f.SendWithin, both | Runner, false,
			"how long after the run to keep sending results to slow outputs"},
		{"serve-metrics", &f.Scrape, both | Runner, false,
			"HOST:PORT where Prometheus can read metrics of the run in progress, at /metrics (not encrypted)"},
	}, f.internal()...)
}

// internal lists the flags that only runners in pods have.
func (f *Flags) internal() []flag {
	return []flag{
		{"run-id", &f.RunID, Run | Runner, hidden, "ID of the run"},
		{"run-identity", &f.Identity, Run | Study | Runner, hidden, "file with the identity of the run"},
		{"runner-lease", &f.Lease, Run | Study | Runner, hidden, "Lease that the command which started this runner renews"},
		{"serve", &f.Serve, Run | Runner, hidden,
			"HOST:PORT that serves the growing bundle; --out must end in NAMESPACE/RUN"},
		{"file", &f.Files, Run | Runner, hidden,
			"NAME=DIR: directory with the parts of the file or folder that the Benchmark calls NAME; may be repeated"},
		{"in-cluster", &f.InCluster, Run | Runner, hidden, "report progress and result to the operator"},
		{"push", &f.Push, Run | Runner, hidden, "URL of the results service that receives the growing bundle"},
		{"push-token-file", &f.PushToken, Run | Runner, hidden, "file with the token for the results service"},
		{"push-pin", &f.PushPin, Run | Runner, hidden, "sha256:… pin of the results service's certificate"},
	}
}

// shorthands are the letters of flags that have one.
var shorthands = map[string]string{"namespace": "n", "out": "o"}

// Add registers the flags of a command. The present value of a field is the default of its flag.
func (f *Flags) Add(to *pflag.FlagSet, command Scope) {
	for _, row := range f.table() {
		if row.in&command == 0 {
			continue
		}
		switch v := row.value.(type) {
		case *string:
			to.StringVarP(v, row.name, shorthands[row.name], *v, row.usage)
		case *[]string:
			to.StringArrayVar(v, row.name, *v, row.usage)
		case *bool:
			to.BoolVar(v, row.name, *v, row.usage)
		case *time.Duration:
			to.DurationVar(v, row.name, *v, row.usage)
		}
		to.Lookup(row.name).Hidden = row.hidden
	}
}

// Args gives the flags of a list that are set, as arguments of a command line.
func (f *Flags) Args(list Scope) []string {
	var args []string
	for _, row := range f.table() {
		if row.in&list == 0 {
			continue
		}
		switch v := row.value.(type) {
		case *string:
			if *v != "" {
				args = append(args, "--"+row.name, *v)
			}
		case *[]string:
			for _, one := range *v {
				args = append(args, "--"+row.name, one)
			}
		case *bool:
			if *v {
				args = append(args, "--"+row.name)
			}
		case *time.Duration:
			if *v > 0 {
				args = append(args, "--"+row.name, v.String())
			}
		}
	}
	return args
}
