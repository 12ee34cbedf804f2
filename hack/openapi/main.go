// Command openapi prints the description of the API of the web interface, in YAML.
package main

import (
	"fmt"
	"os"

	"github.com/cnsbench/cnsbench/internal/web"
)

func main() {
	text, err := web.OpenAPI()
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}
