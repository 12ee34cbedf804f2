package parser

import "github.com/cnsbench/cnsbench/internal/imported"

// Tools are the formats that `cnsbench import` reads.
func Tools() []imported.Tool {
	return []imported.Tool{
		{Name: "fio", What: "JSON of fio 2 or 3 (--output-format=json or json+), also of --client", Is: isFioJSON,
			Read: readFio},
		{Name: "fio-text", What: "the report that fio prints without --output-format; its figures are rounded",
			Is: isFioText, Read: readFioText},
		{Name: "dbench", What: "the summary that dbench prints at its end", Is: isDbench, Read: readDbench},
		{Name: "kubestr", What: "the text output of kubestr fio", Is: isKubestr, Read: readKubestr},
		{Name: "cosbench", What: "the CSV file of a workload of COSBench, or of cnsbench object run", Is: isCOSBench,
			Read: readCOSBench},
		{Name: "warp", What: "the operations that warp writes with --full, FILE.csv.zst or FILE.csv", Is: isWarp,
			Read: readWarp},
		{Name: "kbench", What: "the summary of kbench, of one volume or of two (Longhorn)", Is: isKbench, Read: readKbench},
		{Name: "elbencho", What: "CSV of elbencho, --csvfile or --livecsv", Is: isElbencho, Read: readElbencho},
		{Name: "ior", What: "results of IOR, -O summaryFormat=CSV or JSON", Is: isIOR, Read: readIOR},
		{Name: "benchstat", What: "output of Go benchmarks, the input of benchstat", Is: isBenchmarks, Read: readBenchmarks},
	}
}
