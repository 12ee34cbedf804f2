package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// benchmarkHead matches the kind of a Benchmark, in YAML or JSON.
var benchmarkHead = regexp.MustCompile(`(?m)^[\s{]*["']?kind["']?[ \t]*:[ \t]*["']?Benchmark\b`)

// notXML names the commands for a Benchmark that was given in place of a COSBench workload.
func notXML(file string, data []byte) error {
	if isXML(data) || !benchmarkHead.Match(data) {
		return nil
	}
	word := shellWord(file)
	return fmt.Errorf("%s is a Benchmark, not a COSBench workload: check it with cnsbench validate %s, run it "+
		"with cnsbench run %s, and remove containers that a run left with cnsbench object cleanup BUNDLE", file, word,
		word)
}

// notBenchmark names the commands for XML that was given in place of a Benchmark.
func notBenchmark(file string, data []byte) error {
	if !isXML(data) {
		return nil
	}
	word := shellWord(file)
	return fmt.Errorf("%s is XML, not a Benchmark: check a COSBench workload with cnsbench validate %s, run it "+
		"with cnsbench object run %s, and print its Benchmark with cnsbench convert %s", file, word, word, word)
}

// isXML reports whether a file begins like XML, which no Benchmark does.
func isXML(data []byte) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(string(data), "\ufeff"), " \t\r\n"), "<")
}
