package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/results"
)

// remoteFlags select a bundle at a results service, instead of a directory.
type remoteFlags struct {
	results.Options
	run string // NAMESPACE/RUN; empty: the bundle is a directory
}

func (f *remoteFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.run, "cluster", "",
		"NAMESPACE/RUN of a bundle at the cluster's results service, instead of a directory")
	fl.StringVar(&f.URL, "results", "",
		"URL of the results service, or its namespace (default that of install, reached by a port-forward)")
	fl.StringVar(&f.TokenFile, "results-token-file", "",
		"file with a token for the results service (default issued for --results-account)")
	fl.StringVar(&f.Pin, "results-pin", "",
		"sha256:… pin of the service's certificate (default the one it has published in the cluster)")
	fl.StringVar(&f.Account, "results-account", "default",
		"ServiceAccount in the run's namespace to read as, with a token that only the results service accepts")
	clusterFlags(c, &f.Cluster)
}

// args checks the arguments: a directory, unless --cluster is given.
func (f *remoteFlags) args(c *cobra.Command, args []string) error {
	if f.run != "" {
		return cobra.NoArgs(c, args)
	}
	return cobra.ExactArgs(1)(c, args)
}

// bundle returns the directory of the bundle, which it copies from the results service with --cluster; done removes
// the copy. The copy has the raw files of tools only if all is set.
func (f *remoteFlags) bundle(ctx context.Context, args []string, all bool) (dir string, done func(), err error) {
	if f.run == "" {
		return args[0], func() {}, nil
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	namespace, id, ok := strings.Cut(f.run, "/")
	if !ok {
		return "", nil, fmt.Errorf("invalid --cluster %q: want NAMESPACE/RUN", f.run)
	}
	f.Options.Namespace = config.DefaultNamespace
	if f.URL != "" && !strings.Contains(f.URL, "://") {
		f.Options.Namespace, f.URL = f.URL, ""
	}
	service, err := results.Open(f.Options)
	if err != nil {
		return "", nil, err
	}
	if err := service.Connect(ctx, namespace); err != nil {
		return "", nil, failed(err)
	}
	remote, err := service.Run(namespace, id)
	if err != nil {
		return "", nil, fmt.Errorf("--cluster: %w", err)
	}
	tmp, err := os.MkdirTemp("", "cnsbench-copy-")
	if err != nil {
		return "", nil, failed(err)
	}
	done = func() { _ = os.RemoveAll(tmp) }
	o := server.Options{}
	if !all {
		o.Skip = func(name string) bool { return strings.HasPrefix(name, "raw/") }
	}
	copied := filepath.Join(tmp, id)
	info, err := server.Fetch(ctx, remote, copied, o)
	if err == nil && info.Closed == server.Complete && !all {
		// The bundle is complete but for the raw files.
		err = fetchManifest(ctx, remote, copied)
	}
	if err != nil {
		done()
		return "", nil, failed(fmt.Errorf("copy %s: %w%s", f.run, err, f.hint(service, err)))
	}
	if info.Closed != "" {
		return copied, done, nil
	}
	return live(copied, done)
}

// hint says how to read as another ServiceAccount, if this one may not.
func (f *remoteFlags) hint(service *results.Service, err error) string {
	var status *server.StatusError
	if !service.Issued || !errors.As(err, &status) || status.Status != http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf("; ServiceAccount %s may not read it: select another one of the run's namespace with "+
		"--results-account, such as the run's own", f.Account)
}

// live marks the copy of a run in progress as such.
func live(dir string, remove func()) (string, func(), error) {
	folder, err := server.OpenFolder(dir, server.Limits{})
	if err == nil {
		err = folder.Lock()
	}
	if err != nil {
		remove()
		return "", nil, failed(err)
	}
	return dir, func() {
		_ = folder.Close() // only a mark
		remove()
	}, nil
}

func fetchManifest(ctx context.Context, from *server.Remote, dir string) error {
	r, err := from.Read(ctx, "manifest.json", 0)
	if err != nil {
		return err
	}
	return errors.Join(bounded.Dir(dir).Replace("manifest.json", func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}), r.Close())
}
