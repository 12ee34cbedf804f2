// Package cleanup removes what a dead run has left. On this machine the registry says what that is; on a cluster, the
// labels of the objects, with the ledger of the bundle for those of unknown kinds.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"syscall"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/registry"
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

// Run is a dead run to clean up after. Its methods are not safe for concurrent use; List or Remove is called once, and
// ends its use.
type Run struct {
	connect func() (platform, error)
	ledger  ledger
	entry   *registry.Run // nil: a run on a cluster that was started elsewhere
}

// ledger is what List and Remove need of one.
type ledger interface {
	engine.Ledger
	io.Closer
}

// platform removes what a run has left on its platform.
type platform interface {
	// check lists what the clean-up would remove of an entry of the ledger; the error says why it would leave it alone.
	check(ctx context.Context, entry op.LedgerEntry) ([]string, error)
	// further lists what the clean-up would remove besides the ledger's entries; the error lists what it would
	// leave alone.
	further(ctx context.Context, ledger engine.Ledger) ([]string, error)
	teardown(ctx context.Context, ledger engine.Ledger) error
}

// Elsewhere says that a run has not been on this machine, or was another user's.
type Elsewhere struct{ why string }

func (e *Elsewhere) Error() string { return e.why + "; nothing was touched" }

// OfBundle opens the run of a bundle. Of a run on a machine only its ID is used. The error wraps registry.ErrUnknown if
// nothing of the run is left on this machine.
func OfBundle(dir string, o Options, dryRun bool) (*Run, error) {
	if err := bundle.CheckBundle(dir); err != nil {
		return nil, err
	}
	run, err := bundle.ReadRun(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if run.ID == "" {
		return nil, &Elsewhere{dir + " does not say which run it is of: run.json is missing"}
	}
	if !run.OnCluster() {
		found, err := OfID(run.ID, o, dryRun)
		switch {
		case errors.Is(err, registry.ErrUnknown):
			return nil, errors.Join(elsewhere(dir, &run), err)
		case err != nil:
			return nil, err
		}
		if err := found.entry.CheckBundle(dir); err != nil {
			return nil, errors.Join(err, found.ledger.Close(), found.release(false))
		}
		return found, nil
	}
	own := identityOf(&run)
	if n := o.Cluster.Namespace; n != "" && own.OnCluster() == nil && n != own.Namespace {
		return nil, fmt.Errorf("--namespace %s: run %s was in namespace %s", n, own.RunID, own.Namespace)
	}
	r := &Run{connect: func() (platform, error) {
		if err := bundle.VerifyLedger(dir); err != nil {
			return nil, err
		}
		return connect(run.ID, own, o)
	}}
	r.entry, err = registry.Open(run.ID)
	if err != nil && !errors.Is(err, registry.ErrUnknown) {
		return nil, fmt.Errorf("run %s: %w", run.ID, err)
	}
	if r.entry != nil && r.entry.Identity.Nonce != own.Nonce { // the bundle only claims the ID
		if err := r.release(false); err != nil {
			return nil, err
		}
		r.entry = nil
	}
	if dryRun {
		var left []op.LedgerEntry
		left, err = bundle.ReadLedger(dir)
		r.ledger = listed(left)
	} else {
		r.ledger, err = bundle.OpenLedger(dir)
	}
	if err != nil {
		return nil, errors.Join(err, r.release(false))
	}
	return r, nil
}

// identityOf returns the identity of a run on a cluster; the zero one proves nothing to be the run's.
func identityOf(run *bundle.Run) owned.Identity {
	if run.Identity.RunID != run.ID {
		return owned.Identity{}
	}
	return run.Identity
}

// elsewhere tells a run that left nothing here from one that was not here, as far as its bundle says.
func elsewhere(dir string, run *bundle.Run) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &Elsewhere{fmt.Sprintf("%s belongs to the user with ID %d: run cnsbench cleanup as the user who started "+
			"run %s", dir, st.Uid, run.ID)}
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // a killed run may have written nothing that can be read
	}
	e, err := b.Environment()
	if host, _ := os.Hostname(); err == nil && e.Hostname != "" && e.Hostname != host {
		return &Elsewhere{fmt.Sprintf("run %s was on machine %s: run cnsbench cleanup there", run.ID, e.Hostname)}
	}
	return nil
}

// OfID opens a run that this user has started on this machine. The error wraps registry.ErrUnknown if there is none.
func OfID(id string, o Options, dryRun bool) (r *Run, err error) {
	entry, err := registry.Open(id)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if own := &entry.Identity; own.Server != "" {
		return nil, errors.Join(fmt.Errorf("run %s was on the cluster at %s: cnsbench cleanup %s removes what it has left",
			id, own.Server, entry.Bundle), entry.Close())
	}
	r = &Run{entry: entry, connect: func() (platform, error) {
		return &machine{entry.Identity, o.Driver, o.secrets(&entry.Entry)}, nil
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, entry.Close())
		}
	}()
	if dryRun {
		left, err := bundle.LedgerIn(entry.Dir())
		r.ledger = listed(left)
		return r, err
	}
	r.ledger, err = bundle.OpenLedgerIn(entry.Dir())
	return r, err
}

// ID returns the ID of a run that was started on this machine; empty: elsewhere.
func (r *Run) ID() string {
	if r.entry == nil {
		return ""
	}
	return r.entry.Identity.RunID
}

// Bundle returns where the bundle of a run on this machine was at its start.
func (r *Run) Bundle() string {
	if r.entry == nil {
		return ""
	}
	return r.entry.Bundle
}

// MadeContainers reports whether a run on this machine made containers in object stores, which are removed by another
// command.
func (r *Run) MadeContainers() bool { return r.entry != nil && len(r.entry.Places) > 0 }

// listed is the ledger of a dry run.
type listed []op.LedgerEntry

func (l listed) Open() []op.LedgerEntry    { return l }
func (l listed) Add(op.LedgerEntry) error  { return errDry }
func (l listed) Note(op.LedgerEntry) error { return errDry }
func (l listed) Done(string, string) error { return errDry }
func (l listed) Close() error              { return nil }

var errDry = errors.New("a dry run changes no ledger")

// secrets returns those of the options, and those of the files with which the run was started. A file that cannot be
// read is reported only: it may not be needed, or the options have its Secrets.
func (o *Options) secrets(entry *registry.Entry) engine.Secrets {
	all := maps.Clone(o.Secrets)
	if all == nil {
		all = engine.Secrets{}
	}
	for _, file := range entry.SecretFiles {
		more, err := o.ReadSecrets(file)
		if err != nil {
			fmt.Fprintf(o.Log, "Secrets of the run: %v\n", err)
		}
		for r, values := range more {
			if _, given := all[r]; !given {
				all[r] = values
			}
		}
	}
	return all
}

// Remove removes what the run has left. It returns how many entries of the ledger were open.
func (r *Run) Remove(ctx context.Context) (open int, err error) {
	open = len(r.ledger.Open())
	p, err := r.connect()
	if err != nil {
		return open, errors.Join(err, r.ledger.Close(), r.release(false))
	}
	err = errors.Join(p.teardown(ctx, r.ledger), r.ledger.Close())
	if err == nil && r.entry != nil {
		err = owned.RemoveAll(r.entry.Identity.Scratch)
	}
	if err != nil {
		return open, errors.Join(fmt.Errorf("not everything was removed: %w", err), r.release(false))
	}
	return open, r.release(!r.MadeContainers())
}

// release ends the hold of the registry's entry, and forgets the run if nothing is left.
func (r *Run) release(forget bool) error {
	switch {
	case r.entry == nil:
		return nil
	case forget:
		return r.entry.Remove()
	}
	return r.entry.Close()
}

// List prints what Remove would remove and what it would leave alone. The error says that it would leave something.
func (r *Run) List(ctx context.Context, out io.Writer) error {
	p, err := r.connect()
	if err == nil {
		err = r.list(ctx, out, p)
	}
	return errors.Join(err, r.ledger.Close(), r.release(false))
}

func (r *Run) list(ctx context.Context, out io.Writer, p platform) error {
	left := 0
	printed := map[string]bool{}
	would := func(what string) {
		if !printed[what] {
			fmt.Fprintf(out, "%s: would be removed\n", what)
		}
		printed[what] = true
	}
	for _, entry := range r.ledger.Open() {
		found, err := p.check(ctx, entry)
		for _, what := range found {
			would(what)
		}
		if err != nil {
			left++
			fmt.Fprintf(out, "%s %s: %v\n", entry.Kind, entry.Name, err)
		}
	}
	if r.entry != nil {
		if scratch := r.entry.Identity.Scratch; exists(scratch) {
			would("directory " + scratch)
		}
	}
	further, err := p.further(ctx, r.ledger)
	for _, what := range further {
		would(what)
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// machine is this machine.
type machine struct {
	own     owned.Identity
	driver  func() ([]string, error)
	secrets engine.Secrets
}

func (m *machine) check(_ context.Context, entry op.LedgerEntry) ([]string, error) {
	return local.New(local.Options{Identity: m.own}).Owed(entry)
}

func (m *machine) further(context.Context, engine.Ledger) ([]string, error) { return nil, nil }

func (m *machine) teardown(ctx context.Context, ledger engine.Ledger) error {
	command, err := m.driver()
	if err != nil {
		return err
	}
	e := local.New(local.Options{DriverCommand: command, Identity: m.own, Secrets: m.secrets})
	return errors.Join(e.Teardown(ctx, ledger), e.Close())
}

// Labelled removes what carries a run's label in the namespace of a cluster, with its runner.
func Labelled(ctx context.Context, on *cluster.Cluster, run string, log io.Writer) error {
	if err := (podrunner.Owner{Run: run}).Stop(ctx, on, log); err != nil {
		return err
	}
	if err := podrunner.Teardown(ctx, on, run, owned.Identity{}); err != nil {
		return fmt.Errorf("not everything was removed: %w", err)
	}
	return nil
}
