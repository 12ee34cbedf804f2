package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
)

// kube is the cluster of a run.
type kube struct {
	on     *cluster.Cluster
	runner podrunner.Owner
	engine *kubernetes.Engine
	log    io.Writer
}

// connect connects to the cluster that a run's identity names.
func connect(run string, own owned.Identity, o Options) (platform, error) {
	if err := own.OnCluster(); err != nil {
		return unproved{fmt.Errorf("%w%s", err, byHand(run))}, nil
	}
	o.Cluster.Namespace = own.Namespace
	on, err := o.Cluster.Connect()
	if err != nil {
		return nil, err
	}
	options := kubernetes.Options{Config: on.Config, Namespace: on.Namespace, Identity: own}
	switch {
	case o.SameCluster:
		options.Server = own.Server
	case own.Server != on.Config.Host:
		return nil, fmt.Errorf("run %s was on the cluster at %s, the kubeconfig's is at %s: select that cluster with "+
			"--kubeconfig or --context, or use --same-cluster if both addresses are of one cluster",
			own.RunID, own.Server, on.Config.Host)
	}
	return &kube{on, podrunner.Owner{Run: own.RunID, Proof: own.Proof()}, kubernetes.New(options), o.Log}, nil
}

func (k *kube) check(ctx context.Context, entry op.LedgerEntry) ([]string, error) {
	if err := k.engine.Check(ctx, entry); err != nil || kubernetes.IsOfKind(entry) { // further lists its objects
		return nil, err
	}
	return []string{entry.Kind + " " + entry.Name}, nil
}

func (k *kube) further(ctx context.Context, ledger engine.Ledger) ([]string, error) {
	pods, refused, err := k.runner.Pods(ctx, k.on)
	if err != nil {
		return nil, err
	}
	list, left := k.engine.Owed(ctx, ledger)
	for _, name := range pods {
		list = append(list, "runner pod "+name)
	}
	return list, errors.Join(left, refused)
}

func (k *kube) teardown(ctx context.Context, ledger engine.Ledger) error {
	if err := k.runner.Stop(ctx, k.on, k.log); err != nil {
		return err
	}
	return k.engine.Teardown(ctx, ledger)
}

// unproved leaves everything alone: no object can be proved to be the run's.
type unproved struct{ why error }

func (u unproved) check(context.Context, op.LedgerEntry) ([]string, error) {
	return nil, owned.Refuse("it cannot be proved to be the run's")
}

func (u unproved) further(context.Context, engine.Ledger) ([]string, error) { return nil, u.why }

func (u unproved) teardown(_ context.Context, ledger engine.Ledger) error {
	errs := []error{u.why}
	for _, entry := range ledger.Open() {
		errs = append(errs, fmt.Errorf("%s %s is left alone", entry.Kind, entry.Name))
	}
	return errors.Join(errs...)
}

// byHand says how to find and remove the objects of a run without proof.
func byHand(run string) string {
	if owned.CheckRunID(run) != nil {
		return ""
	}
	return fmt.Sprintf("; kubectl get pods,services,configmaps,secrets,leases,persistentvolumeclaims "+
		"--all-namespaces -l %s=%s lists what carries the run's label, and cnsbench cleanup --engine kubernetes "+
		"--namespace NAMESPACE --run %s removes it", names.LabelRun, run, run)
}
