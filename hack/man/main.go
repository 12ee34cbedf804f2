// Command man writes the manual pages of cnsbench's commands to a folder: man -l FOLDER/cnsbench-run.1 shows one.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cnsbench/cnsbench/internal/cli"
	"github.com/cnsbench/cnsbench/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(1)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func generate(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.Command()
	plain(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "cnsbench " + version.Version,
		Manual: "CNSBench"}, folder)
}

// plain prepares commands for the generator, which takes their text for Markdown: what is laid out by hand, in lines of
// its own, is kept so.
func plain(c *cobra.Command) {
	c.DisableAutoGenTag = true // with the date of the build: pages of one version must be equal
	if c.Long != "" {
		c.Long = "```\n" + c.Long + "\n```"
	}
	for _, sub := range c.Commands() {
		plain(sub)
	}
}
