package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/cli"
)

// writeCommands writes one page per command and an index to a folder, which it empties first.
func writeCommands(folder string) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	var index bytes.Buffer
	root := cli.Command()
	root.InitDefaultCompletionCmd()
	err := writeCommand(folder, root, &index)
	text := "# Commands\n\nGenerated from the commands themselves; `cnsbench COMMAND --help` prints the same.\n\n" +
		"| command | what it does |\n|---|---|\n" + index.String()
	return errors.Join(err, os.WriteFile(filepath.Join(folder, "README.md"), []byte(text), 0o644))
}

// writeCommand writes the pages of a command and its subcommands, and their lines in the index.
func writeCommand(folder string, c *cobra.Command, index *bytes.Buffer) error {
	if c.Name() == "help" || c.Hidden {
		return nil
	}
	fmt.Fprintf(index, "| [`%s`](%s) | %s |\n", c.CommandPath(), pageOf(c), cell(c.Short))
	err := os.WriteFile(filepath.Join(folder, pageOf(c)), commandPage(c), 0o644)
	if c.Name() == "completion" { // its subcommands are from cobra, one per shell
		return err
	}
	for _, sub := range c.Commands() {
		err = errors.Join(err, writeCommand(folder, sub, index))
	}
	return err
}

func pageOf(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") + ".md" }

func commandPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n%s.\n\n", c.CommandPath(), c.Short)
	if c.Long != "" {
		fmt.Fprintf(&out, "```text\n%s\n```\n\n", strings.TrimSpace(c.Long))
	}
	if c.Runnable() {
		fmt.Fprintf(&out, "Usage: `%s`\n\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(&out, "```sh\n%s\n```\n\n", c.Example)
	}
	flags(&out, "Flags", c.NonInheritedFlags())
	flags(&out, "Flags of its parents", c.InheritedFlags())
	fmt.Fprintf(&out, "## See also\n\n")
	if c.HasParent() {
		fmt.Fprintf(&out, "- [`%s`](%s): %s\n", c.Parent().CommandPath(), pageOf(c.Parent()), c.Parent().Short)
	}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && c.Name() != "completion" {
			fmt.Fprintf(&out, "- [`%s`](%s): %s\n", sub.CommandPath(), pageOf(sub), sub.Short)
		}
	}
	return out.Bytes()
}

// flags writes the table of a flag set.
func flags(out *bytes.Buffer, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(out, "## %s\n\n| flag | type | default | meaning |\n|---|---|---|---|\n", title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		typ, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", name, typ, defaultOf(f), cell(usage))
	})
	fmt.Fprintln(out)
}

// defaultOf returns the default of a flag. It is empty for a zero value.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false", "0", "0s":
		return ""
	}
	if f.Name == "storage-dir" { // depends on the user
		return "`/var/lib/cnsbench`, or `~/.local/state/cnsbench` without root"
	}
	return "`" + f.DefValue + "`"
}
