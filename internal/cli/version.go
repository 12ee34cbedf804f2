package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/version"
)

func newVersion(s *streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs, Hidden: true, // --version says it, too
		Example: "  cnsbench version --output json",
		RunE: func(*cobra.Command, []string) error {
			if output == "json" {
				return writeJSON(s.out, versions())
			}
			_, err := io.WriteString(s.out, versionLine())
			return err
		},
	}
	outputFlag(c, &output)
	return c
}

func versions() map[string]string {
	return map[string]string{"cnsbench": version.Version, "go": runtime.Version(),
		"bundleFormat": fmt.Sprint(bundle.Version), summary.AnalysisKey: fmt.Sprint(summary.AnalysisVersion)}
}

// versionLine is what version and --version print.
func versionLine() string {
	v := versions()
	return fmt.Sprintf("cnsbench %s (%s, bundle format %d, analysis %d)\n", v["cnsbench"], v["go"], bundle.Version,
		summary.AnalysisVersion)
}
