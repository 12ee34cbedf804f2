package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/version"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newVersion(s *streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
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

// outputFlag adds --output text|json: the form of what a command prints. Where it is written is --out.
func outputFlag(c *cobra.Command, to *string, more ...string) {
	c.Flags().StringVar(to, "output", "text", "")
	outputValues(c, to, append([]string{"text", "json"}, more...)...)
}

// forPrograms reports whether a value of --output is a format that programs read.
func forPrograms(output string) bool { return output == "json" || output == "csv" }

// outputValues sets the values of --output. The first is its default.
func outputValues(c *cobra.Command, to *string, values ...string) {
	f := c.Flags().Lookup("output")
	f.Usage = orList(values)
	setValues(f, values...)
	c.PreRunE = func(*cobra.Command, []string) error { return oneOf("--output", *to, values) }
}

func writeJSON(w io.Writer, v any) error {
	e := newEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// newEncoder writes JSON, with terminal control sequences escaped.
func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaping{w})
	e.SetEscapeHTML(false)
	return e
}

// escaping escapes what an encoder writes, a whole value at a time.
type escaping struct{ to io.Writer }

func (w escaping) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, visible.JSON(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
