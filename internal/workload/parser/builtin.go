package parser

import (
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// builtIn are the parsers by the name that a library entry gives in its `parser` annotation.
func builtIn() map[string]Parser {
	return map[string]Parser{
		"db_bench":        {DBBench, rocksMetrics},
		"dbench":          {Dbench, dbenchMetrics},
		"etcd":            {Etcd, etcdMetrics},
		"filebench":       {Filebench, filebenchMetrics},
		"fio":             {Fio, fioMetrics},
		IntegrityName:     {Integrity, integrityMetrics},
		"megahit":         {Megahit, megahitMetrics},
		"pgbench":         {Pgbench, pgbenchMetrics},
		"redis-benchmark": {Redis, redisMetrics},
		"sysbench":        {Sysbench, sysbenchMetrics},
		"sysbench-oltp":   {SysbenchOLTP, oltpMetrics},
		"wrk":             {Wrk, wrkMetrics},
		"ycsb":            {Ycsb, ycsbMetrics},
	}
}

// Parsers are the built-in ones and those in more, by name.
func Parsers(more map[string]Func) map[string]Func {
	all := map[string]Func{}
	for name, p := range builtIn() {
		all[name] = p.Parse
	}
	maps.Copy(all, more)
	return all
}

// Names of the parsers, sorted.
func Names(more map[string]Func) []string { return slices.Sorted(maps.Keys(Parsers(more))) }

// Declared returns the metrics that a built-in parser can report; none of other parsers.
func Declared(name string) []metric.Declaration { return builtIn()[name].Metrics }
