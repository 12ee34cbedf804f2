package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/visible"
)

// Main runs the command line and returns the exit code. No command can print a control character of a text of others:
// both streams escape them.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	out, errs = &visible.Writer{To: out}, &visible.Writer{To: errs}
	args = current(args, errs)
	root := newRoot(&streams{in: in, out: out, err: errs})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := cmp.Or(unknownCommand(root, args), givenTwice(root, args))
	if err == nil {
		err = root.ExecuteContext(context.Background())
	}
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		// Indented, so that no line break of a file's text begins a line that reads as ours.
		fmt.Fprintln(errs, "cnsbench:", strings.ReplaceAll(text, "\n", "\n  "))
	}
	return codeOf(err)
}

func newRoot(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "cnsbench",
		Short: "Benchmark cloud native storage",
		Long: `CNSBench benchmarks cloud native storage. One file defines the volumes and workloads
to create, and the control operations (snapshot, restore, clone, resize, delete, …)
to run at the same time, with their rates. CNSBench measures every phase of every
operation; the result is a bundle, a summary and a report.`,
		Example: `  cnsbench run examples/quickstart.yaml      needs root for real file systems
  cnsbench doctor                            check what this machine supports`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDescriptions: false},
	}
	version := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *version {
			_, err := io.WriteString(s.out, versionLine())
			return err
		}
		return c.Help()
	}
	root.AddCommand(
		newRun(s), newStudy(s), newValidate(s), newShow(s), newReport(s), newCleanup(s),
		newWorkloads(s), newCSI(s), newDoctor(s), newVersion(s), newServe(s), newPage(s), newExport(s),
		newList(s), newScorecard(s), newVerify(s), newReproduce(s),
		newTrace(s), newOperator(s), newInstall(s), newUninstall(s), newObject(s), newIntegrity(s), newIotrace(s),
		newConvert(s), newImport(s), newCompare(s), newInit(s),
	)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[0] + ":"})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g[1]), c.Name()) {
				c.GroupID = g[0]
			}
		}
	}
	for name, instead := range removed {
		root.AddCommand(&cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return fmt.Errorf("%s was removed: %s", name, instead) }})
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		return cmp.Or(checkOut(c), refuseImported(c, args))
	}
	for _, c := range root.Commands() {
		addUsage(c)
	}
	addCompletions(root)
	calledAs(root)
	return root
}

// groups are the groups of commands in the root's help, with their titles.
var groups = [][2]string{
	{"Run, look and compare", "run study scorecard compare show report list serve verify reproduce"},
	{"Write", "validate init workloads doctor"}, {"Files", "import export convert trace"},
	{"Clusters", "install uninstall cleanup"}, {"Parts", "csi object"}}

// removed are the commands that earlier versions had, and what to use instead.
var removed = map[string]string{
	"index": "export the tables of the bundles as Parquet, and read them with DuckDB (docs/reference/export.md)",
}

// renamed are the commands that the version before had under other names. They work for one release.
var renamed = map[string]string{"study show": "show", "study status": "show --status", "study report": "report",
	"render": "validate --render", "object lint": "validate", "workloads list": "workloads show",
	"csi-driver": "csi driver", "csi-proxy": "csi proxy"}

// current replaces the former name of a command, and says so.
func current(args []string, errs io.Writer) []string {
	for n := range min(3, len(args)+1) {
		old := strings.Join(args[:n], " ")
		if now, ok := renamed[old]; ok {
			fmt.Fprintf(errs, "note: cnsbench %s is now cnsbench %s\n", old, now)
			return append(strings.Fields(now), args[n:]...)
		}
	}
	return args
}

// addUsage adds the usage line to the error on wrong arguments.
func addUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w; usage: %s", err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		addUsage(sub)
	}
}
