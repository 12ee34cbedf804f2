package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// benchmarkHead matches the line by which a file says that it is a Benchmark, in
// YAML or JSON.
var benchmarkHead = regexp.MustCompile(`(?m)^[\s{]*["']?kind["']?[ \t]*:[ \t]*["']?Benchmark\b`)

// notXML says, of a file that is a Benchmark where a workload of COSBench was
// wanted, which commands take it.
func notXML(file string, data []byte) error {
	if isXML(data) || !benchmarkHead.Match(data) {
		return nil
	}
	word := shellWord(file)
	return fmt.Errorf("%s is a Benchmark, no workload of COSBench: cnsbench validate %s checks it, cnsbench run %s carries it out; containers that its run has left, cnsbench object cleanup BUNDLE removes", file, word, word)
}

// notBenchmark says the same of XML where a Benchmark was wanted.
func notBenchmark(file string, data []byte) error {
	if !isXML(data) {
		return nil
	}
	word := shellWord(file)
	return fmt.Errorf("%s is XML, no Benchmark: if it is a workload of COSBench, cnsbench object lint %s checks it, cnsbench object run %s carries it out, and cnsbench convert %s prints the Benchmark that it is", file, word, word, word)
}

// isXML looks at how a file begins: no YAML of ours begins so.
func isXML(data []byte) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(string(data), "\ufeff"), " \t\r\n"), "<")
}
