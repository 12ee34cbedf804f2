package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine/local/iolimit"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
	"github.com/cnsbench/cnsbench/internal/storagedir"
)

// finding is the result of one check.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // without it nothing can be measured
	Detail string `json:"detail"`
}

func newDoctor(s *streams) *cobra.Command {
	var output, storage, rbac, account string
	run := runFlags{offline: true}
	run.Engine = "kubernetes"
	c := &cobra.Command{
		Use: "doctor", Short: "Check what this machine supports and what is missing", Args: cobra.NoArgs,
		Long: `Checks this machine for engine local: user, agent, programs, drivers, loop devices,
I/O limits, the storage directory, and what samples of processes can have. The exit status
is 2 if something is missing that every run needs.

With --rbac it checks nothing, and prints the ServiceAccount and the roles that a Benchmark
needs on Kubernetes, for an administrator to apply.`,
		Example: `  cnsbench doctor --storage-dir /mnt/disk
  cnsbench doctor --rbac benchmark.yaml -n measure >rights.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rbac != "" {
				return printRights(cmd.Context(), s, &run, rbac, account)
			}
			found := examine(cmd.Context(), storage)
			if err := s.print(output, found, listTable(found, func(f *finding) []any {
				return []any{f.What, f.OK, f.Needed, f.Detail}
			}, "what", "ok", "needed", "detail"), func() error { return printFindings(s, found) }); err != nil {
				return err
			}
			for _, f := range found {
				if f.Needed && !f.OK {
					return &exit{code: exitFailed}
				}
			}
			return nil
		},
	}
	outputFlag(c, &output, "csv")
	c.Flags().StringVar(&storage, "storage-dir", storagedir.Default(), "directory for volumes of the built-in drivers")
	c.Flags().StringVar(&rbac, "rbac", "", "Benchmark whose rights on Kubernetes are printed as a manifest")
	c.Flags().StringVar(&account, "service-account", "", "for --rbac: ServiceAccount (default the Benchmark's, or bench)")
	c.Flags().StringVarP(&run.Namespace, "namespace", "n", "",
		"for --rbac: namespace of the run (default the kubeconfig's)")
	c.Flags().StringVar(&run.Kubeconfig, "kubeconfig", "", "for --rbac: kubeconfig (default $KUBECONFIG)")
	return c
}

// printRights prints the objects that let a ServiceAccount run a Benchmark.
func printRights(ctx context.Context, s *streams, f *runFlags, file, account string) error {
	p, _, on, err := load(ctx, s, f, []string{file})
	if err != nil {
		return err
	}
	if on == nil {
		on = &cluster.Cluster{Namespace: f.Namespace}
	}
	if on.Namespace == "" {
		return errors.New("--rbac: without a cluster the namespace of the run must be named: --namespace")
	}
	text, err := podrunner.RightsManifest(ctx, on, p, cmp.Or(account, p.Benchmark.Spec.ServiceAccountName, "bench"))
	if err != nil {
		return failed(err)
	}
	_, err = s.out.Write(text)
	return err
}

func examine(ctx context.Context, storage string) []finding {
	found := []finding{user(), agentFinding(), program(ctx, "fio", "fio", true), userNamespaces()}
	for _, b := range csidriver.Backends() {
		found = append(found, driverFinding(b))
	}
	return append(found, loops(), limitsFinding(), storageFinding(storage), ioWaitFinding(), pressureFinding())
}

func user() finding {
	if os.Geteuid() == 0 {
		return finding{"user", true, false, "root: all backends"}
	}
	return finding{"user", true, false,
		"not root: hostdir replaces loopfile and btrfs, workloads run in a user namespace"}
}

func agentFinding() finding {
	path, err := pod.FindAgent("")
	if err != nil {
		return finding{"agent", false, true, err.Error()}
	}
	return finding{"agent", true, true, path}
}

func program(ctx context.Context, name, pkg string, needed bool) finding {
	path, err := exec.LookPath(name)
	if err != nil {
		return finding{name, false, needed, "not installed: apt-get install " + pkg}
	}
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return finding{name, true, needed, strings.TrimSpace(path + "  " + first)}
}

func userNamespaces() finding {
	b, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	n := strings.TrimSpace(string(b))
	ok := err == nil && n != "0"
	needed := os.Geteuid() != 0
	if !ok {
		return finding{"user namespaces", false, needed,
			"not available: only root can run workloads (sysctl user.max_user_namespaces)"}
	}
	return finding{"user namespaces", true, needed, "up to " + n}
}

func driverFinding(name string) finding {
	r := csidriver.Requirements(name)
	var missing []string
	if r.Root && os.Geteuid() != 0 {
		missing = append(missing, "needs root")
	}
	for _, p := range r.Missing() {
		missing = append(missing, fmt.Sprintf("%s is missing: apt-get install %s", p.Name, p.Package))
	}
	if len(missing) > 0 {
		return finding{"backend " + name, false, false, strings.Join(missing, "; ")}
	}
	detail := "ready"
	if limit := csidriver.Limit(name); limit != "" {
		detail += "; " + limit
	}
	return finding{"backend " + name, true, false, detail}
}

func loops() finding {
	if os.Geteuid() != 0 {
		return finding{"loop devices", false, false, "need root"}
	}
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return finding{"loop devices", false, false, err.Error() + " (modprobe loop)"}
	}
	_ = f.Close()
	return finding{"loop devices", true, false, "/dev/loop-control"}
}

// limitsFinding says whether the limits of tenants can be enforced by control groups.
func limitsFinding() finding {
	c, err := iolimit.Find()
	if err != nil {
		return finding{"I/O limits", false, false, err.Error()}
	}
	return finding{"I/O limits", true, false, fmt.Sprintf("control groups of version %d at %s", c.Version, c.Dir)}
}

// ioWaitFinding says whether samples can have the time for which threads wait for block I/O.
func ioWaitFinding() finding {
	if _, counted := machine.Accounting(); !counted {
		return finding{"block I/O wait", false, false, op.DelayAccountingOff.Words()}
	}
	return finding{"block I/O wait", true, false, "counted (kernel.task_delayacct)"}
}

// pressureFinding says whether the kernel counts pressure.
func pressureFinding() finding {
	if counted, _ := machine.Accounting(); !counted {
		return finding{"pressure", false, false, op.NoPressure.Words()}
	}
	return finding{"pressure", true, false, "of the machine (/proc/pressure)"}
}

func printFindings(s *streams, found []finding) error {
	wide := 0
	for _, f := range found {
		wide = max(wide, len(f.What))
	}
	for _, f := range found {
		mark := "ok"
		if !f.OK {
			mark = "-"
			if f.Needed {
				mark = "NO"
			}
		}
		label := fmt.Sprintf("%-2s  %-*s  ", mark, wide, f.What)
		fmt.Fprint(s.out, terminal.Hang(label, f.Detail, terminalOptions(s.out).Width))
	}
	return nil
}
