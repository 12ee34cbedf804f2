package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/hints"
)

// unknownCommand returns an error if the arguments name a command that does not exist. cobra itself reports only those
// directly under root; for others it prints the help of the parent and succeeds.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 0 && strings.HasPrefix(args[0], "__") { // what shells call to complete
		return nil
	}
	c, rest, _ := root.Find(args) // its error is the one that is reported here
	if c.Name() == "help" {
		return unknownCommand(root, rest)
	}
	at := slices.IndexFunc(rest, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if at < 0 || c != root && c.Runnable() || !c.HasSubCommands() {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	hint := "see " + c.CommandPath() + " --help" // the commands under root are too many to list
	suggest := hints.Suggest
	if c == root {
		suggest = hints.Nearest
	}
	hint = cmp.Or(suggest(rest[at], names), hint)
	return fmt.Errorf("unknown command %q for %q (%s)", rest[at], c.CommandPath(), hint)
}

// wrongFlag adds to the error on a flag what to do.
func wrongFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		if near := hints.Nearest("--"+unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w (%s)", err, near)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}
