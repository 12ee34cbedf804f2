package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// outIsFile records that --out of a command is a file, not a directory.
func outIsFile(c *cobra.Command) {
	if err := c.MarkFlagFilename("out"); err != nil {
		panic(err) // the command has no such flag
	}
}

// checkOut refuses a file to write that is a directory or in none, before the command begins: a trace of an hour or a
// report of a million operations must not be lost at its end.
func checkOut(c *cobra.Command) error {
	f := c.Flags().Lookup("out")
	if f == nil || f.Value.String() == "" || f.Value.String() == "-" {
		return nil
	}
	if _, file := f.Annotations[cobra.BashCompFilenameExt]; !file {
		return nil
	}
	path := f.Value.String()
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		name := "FILE"
		if f.DefValue != "-" {
			name = cmp.Or(f.DefValue, "report.html")
		}
		return fmt.Errorf("invalid --out %q: it is a directory: want a file, such as %s", path, filepath.Join(path, name))
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("invalid --out %q: there is no directory %s: create it, or name another file", path, dir)
	}
	return nil
}
