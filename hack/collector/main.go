// Command collector is an OpenTelemetry collector for tests of the output otlpSpec. It has the collector's own receiver
// otlp, and the exporter jsonl, which appends what it receives to a file: one OTLP request as JSON in each line.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "collector for tests"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			DefaultScheme:     "file",
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func factories() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](jsonlFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	return otelcol.Factories{Receivers: receivers, Exporters: exporters,
		Telemetry: telemetry.NewFactory(func() component.Config { return &struct{}{} })}, nil
}

// config of the exporter jsonl.
type config struct {
	Path string `mapstructure:"path"`
}

func jsonlFactory() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("jsonl"), func() component.Config { return &config{} },
		exporter.WithTraces(func(ctx context.Context, s exporter.Settings, c component.Config) (exporter.Traces, error) {
			return exporterhelper.NewTraces(ctx, s, c, func(_ context.Context, t ptrace.Traces) error {
				line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(t)
				return write(c, line, err)
			})
		}, component.StabilityLevelStable),
		exporter.WithMetrics(func(ctx context.Context, s exporter.Settings, c component.Config) (exporter.Metrics, error) {
			return exporterhelper.NewMetrics(ctx, s, c, func(_ context.Context, m pmetric.Metrics) error {
				line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(m)
				return write(c, line, err)
			})
		}, component.StabilityLevelStable))
}

// write appends a line by one write, so that lines of concurrent requests are whole.
func write(c component.Config, line []byte, err error) error {
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.(*config).Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close() // the write failed
		return err
	}
	return f.Close()
}
