package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// givenTwice returns an error if the arguments give a flag of one value two different ones. pflag itself keeps the last
// and says nothing. Flags that may be repeated are those with a list or a map.
func givenTwice(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], "__") { // what shells call to complete
		return nil
	}
	c, rest, unknown := root.Find(args)
	if unknown != nil {
		return nil //nolint:nilerr // cobra reports it
	}
	c.InitDefaultHelpFlag() // as ParseFlags needs it; it also adds the flags of the parents
	first := map[string]string{}
	var twice error
	// Another error of the flags is reported when they are parsed for use.
	_ = c.Flags().ParseAll(rest, func(f *pflag.Flag, value string) error {
		_, list := f.Value.(pflag.SliceValue)
		list = list || strings.HasPrefix(f.Value.Type(), "stringTo")
		before, given := first[f.Name]
		if given && before != value && !list && twice == nil {
			twice = fmt.Errorf("--%s is given twice, %q and %q: give it once; see %s --help", f.Name, before, value,
				c.CommandPath())
		}
		first[f.Name] = value
		return nil
	})
	return twice
}
