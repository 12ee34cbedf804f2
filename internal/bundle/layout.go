package bundle

// Names of the files in a bundle, relative to its directory.
const (
	runFile         = "run.json"
	environmentFile = "environment.json"
	planFile        = "plan.json"
	manifestFile    = "manifest.json"
	ledgerFile      = "ledger"
	// ReportFile is a page made from the bundle. It is derived, so the manifest does not list it.
	ReportFile  = "report.html"
	reserveFile = ".reserve"

	eventsDir     = "events"
	segmentSuffix = ".seg"
	columnarFile  = "events/ops.parquet"

	instancesFile  = "instances.jsonl"
	logFile        = "log.jsonl"
	opLogsFile     = "logs/ops.jsonl"
	samplesFile    = "series/samples.jsonl"
	machinesFile   = "series/machines.jsonl"
	queriesFile    = "series/queries.jsonl"
	volumesFile    = "series/volumes.jsonl"
	seriesFile     = "series/series.jsonl"
	scalarsFile    = "series/scalars.jsonl"
	histogramsFile = "histograms/histograms.jsonl"
	canaryFile     = "canary/canary.frames"

	remoteWriteDir = "remote-write"
	framesSuffix   = ".frames"

	rawDir    = "raw"
	tmpSuffix = ".tmp"
)

// linesFiles are the streams of JSON lines.
var linesFiles = []string{instancesFile, logFile, opLogsFile, samplesFile, machinesFile, queriesFile,
	volumesFile, seriesFile, scalarsFile, histogramsFile}
