package cli

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// arguments are the completions of arguments, by the command's path beneath root.
var arguments = map[string]cobra.CompletionFunc{
	"run": completeFiles, "validate": completeFiles, "study run": completeFiles,
	"study schedule": completeFiles, "object run": completeObjectFiles,
	"convert": completeObjectFiles, "workloads show": completeWorkloads, "workloads test": completeWorkloads,
	"show": completeBundles, "report": completeBundles, "verify": completeBundles, "export": completeBundles,
	"cleanup": completeBundles, "reproduce": completeBundles, "compare": completeBundles,
	"study add-occasion": completeBundles, "study merge": completeBundles,
}

// addCompletions adds the completion of arguments and of the values of flags to a command and its subcommands.
func addCompletions(c *cobra.Command) {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	if complete, ok := arguments[path]; ok {
		c.ValidArgsFunction = complete
	}
	shared := flagValues()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch values := f.Annotations[valuesKey]; {
		case f.Name == "set":
			complete = completeSet
		case values != nil:
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		case shared[f.Name] != nil:
			complete = cobra.FixedCompletions(shared[f.Name], cobra.ShellCompDirectiveNoFileComp)
		default:
			return
		}
		if err := c.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // the flag is of this command, and is visited once
		}
	})
	for _, sub := range c.Commands() {
		addCompletions(sub)
	}
}

// completeFiles completes files of Benchmarks and names of suites.
func completeFiles(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if typed == "" || !strings.HasPrefix(typed, suitePrefix) && !strings.HasPrefix(suitePrefix, typed) {
		return []string{"yaml", "yml", "json", "xml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	var names []string
	for _, name := range suites() {
		names = append(names, suitePrefix+name+"\t"+describeSuite(name))
	}
	return names, cobra.ShellCompDirectiveDefault
}

func completeObjectFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"xml", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeWorkloads completes names of built-in workloads, with what each does.
func completeWorkloads(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	library, err := plan.BuiltIn()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range library.Names() {
		e, _ := library.Get(name)
		names = append(names, name+"\t"+summaryOf(e))
	}
	if c.Name() == "test" { // takes a file, too
		return names, cobra.ShellCompDirectiveDefault
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeBundles completes the directories of bundles and studies, and those on the way to them.
func completeBundles(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	dir, _ := filepath.Split(typed)
	entries, _ := os.ReadDir(cmp.Or(dir, ".")) // without one, there is nothing to complete
	var found []string
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, e := range entries {
		path := dir + e.Name()
		if !e.IsDir() || !strings.HasPrefix(path, typed) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		switch {
		case isBundle(path):
			found = append(found, path+"\tbundle")
		case hasFile(path, studyFile):
			found = append(found, path+"\tstudy", path+"/")
		default:
			found = append(found, path+"/")
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return found, directive
}

// completeSet completes keys of --set, with the names in the files that are given before the flag.
func completeSet(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var files []plan.File
	for _, name := range args {
		if name == "-" { // it is the terminal
			continue
		}
		read, err := readFiles(&streams{out: io.Discard, err: io.Discard}, []string{name})
		if err == nil {
			files = append(files, read...)
		}
	}
	return plan.SetKeys(files, typed), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
