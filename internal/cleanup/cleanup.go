// Package cleanup removes what a dead run has left: the entries of its bundle's ledger on its platform, the objects
// with its label on a cluster, or the directories of drivers.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
)

// Options configure a clean-up.
type Options struct {
	// Cluster selects the cluster of a bundle's run.
	Cluster cluster.Options
	// SameCluster says that it is the run's cluster although its address differs.
	SameCluster bool
	// Secrets are those that CSI drivers need for the removals, in addition to those of the files with which the run
	// was started here.
	Secrets engine.Secrets
	// ReadSecrets reads the Secrets in a file.
	ReadSecrets func(file string) (engine.Secrets, error)
	// Driver is the command of the built-in CSI drivers.
	Driver func() ([]string, error)
	Log    io.Writer
}

// Bundle is the bundle of a run to clean up after.
type Bundle struct {
	dir    string
	ledger *bundle.Ledger
	run    bundle.Run
	own    owned.Identity // zero: nothing can be proved to be the run's
	Options
}

// platform removes what a run has left on its platform.
type platform interface {
	// check says why the clean-up would leave an entry of the ledger alone.
	check(ctx context.Context, entry op.LedgerEntry) error
	// further lists what the clean-up would remove besides the ledger's entries; the error lists what it would
	// leave alone.
	further(ctx context.Context, ledger *bundle.Ledger) ([]string, error)
	teardown(ctx context.Context, ledger *bundle.Ledger) error
}

// Open opens a bundle and its ledger. An error means that the arguments are wrong.
func Open(dir string, o Options) (*Bundle, error) {
	if err := bundle.CheckBundle(dir); err != nil {
		return nil, err
	}
	run, err := bundle.ReadRun(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	b := &Bundle{dir: dir, run: run, Options: o}
	if run.Identity.RunID == run.ID {
		b.own = run.Identity
	}
	if b.run.OnCluster() && b.own.OnCluster() == nil {
		if n := o.Cluster.Namespace; n != "" && n != b.own.Namespace {
			return nil, fmt.Errorf("--namespace %s: run %s was in namespace %s", n, b.own.RunID, b.own.Namespace)
		}
		b.Cluster.Namespace = b.own.Namespace
	}
	b.ledger, err = bundle.OpenLedger(dir)
	return b, err
}

// platform connects to the platform of the run.
func (b *Bundle) platform() (platform, error) {
	if err := bundle.VerifyLedger(b.dir); err != nil {
		return nil, err
	}
	if b.run.OnCluster() {
		return b.connect()
	}
	secrets, err := b.secrets()
	return &machine{b.own, b.Driver, secrets}, err
}

// secrets returns those of the options, and those of the files with which this user started the run on this machine.
// A bundle names no files: it may be somebody else's.
func (b *Bundle) secrets() (engine.Secrets, error) {
	all := maps.Clone(b.Secrets)
	if all == nil {
		all = engine.Secrets{}
	}
	registered, ok, err := owned.Registered(b.own)
	if err != nil || !ok {
		return all, err
	}
	for _, file := range registered.SecretFiles {
		more, err := b.ReadSecrets(file)
		if err != nil { // it may not be needed, or --secrets has it
			fmt.Fprintf(b.Log, "Secrets of the run: %v\n", err)
		}
		for r, values := range more {
			if _, given := all[r]; !given {
				all[r] = values
			}
		}
	}
	return all, nil
}

// Remove removes what the run has left and closes the ledger. It returns how many entries were open.
func (b *Bundle) Remove(ctx context.Context) (open int, err error) {
	open = len(b.ledger.Open())
	p, err := b.platform()
	if err != nil {
		return open, errors.Join(err, b.ledger.Close())
	}
	err = p.teardown(ctx, b.ledger)
	if err = errors.Join(err, b.ledger.Close()); err != nil {
		return open, fmt.Errorf("not everything was removed: %w", err)
	}
	return open, owned.Unregister(b.own)
}

// List prints what Remove would remove and what it would leave alone, and closes the ledger. The error says that it
// would leave something.
func (b *Bundle) List(ctx context.Context, out io.Writer) error {
	p, err := b.platform()
	if err == nil {
		err = b.list(ctx, out, p)
	}
	return errors.Join(err, b.ledger.Close())
}

func (b *Bundle) list(ctx context.Context, out io.Writer, p platform) error {
	left := 0
	listed := map[string]bool{}
	for _, entry := range b.ledger.Open() {
		listed[entry.Kind+" "+entry.Name] = true
		if err := p.check(ctx, entry); err != nil {
			left++
			fmt.Fprintf(out, "%s %s: %v\n", entry.Kind, entry.Name, err)
			continue
		}
		if !kubernetes.IsOfKind(entry) { // further lists its objects
			fmt.Fprintf(out, "%s %s: would be removed\n", entry.Kind, entry.Name)
		}
	}
	further, err := p.further(ctx, b.ledger)
	for _, what := range further {
		if !listed[what] {
			fmt.Fprintf(out, "%s: would be removed\n", what)
		}
	}
	switch {
	case err != nil:
		return err
	case left == 1:
		return errors.New("1 entry would be left alone")
	case left > 1:
		return fmt.Errorf("%d entries would be left alone", left)
	}
	return nil
}

// machine is this machine.
type machine struct {
	own     owned.Identity
	driver  func() ([]string, error)
	secrets engine.Secrets
}

func (m *machine) check(_ context.Context, entry op.LedgerEntry) error {
	return local.New(local.Options{Identity: m.own}).Check(entry)
}

func (m *machine) further(context.Context, *bundle.Ledger) ([]string, error) { return nil, nil }

func (m *machine) teardown(ctx context.Context, ledger *bundle.Ledger) error {
	command, err := m.driver()
	if err != nil {
		return err
	}
	e := local.New(local.Options{DriverCommand: command, Identity: m.own, Secrets: m.secrets})
	return errors.Join(e.Teardown(ctx, ledger), e.Close())
}

// Run removes what carries a run's label in the namespace of a cluster, with its runner.
func Run(ctx context.Context, on *cluster.Cluster, run string, log io.Writer) error {
	if err := (podrunner.Owner{Run: run}).Stop(ctx, on, log); err != nil {
		return err
	}
	if err := podrunner.Teardown(ctx, on, run, owned.Identity{}); err != nil {
		return fmt.Errorf("not everything was removed: %w", err)
	}
	return nil
}
