package front

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/testenv/port"
)

// collectorConfig receives over TLS, as the front door does.
const collectorConfig = `receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:%d", tls: {cert_file: %q, key_file: %q}}}}
processors:
  batch: {}
exporters:
  debug: {}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    logs: {receivers: [otlp], processors: [batch], exporters: [debug]}
`

// collector measures the Collector, if its program was given.
func (r *run) collector(ctx context.Context) (err error) {
	if r.Collector == "" {
		subject.Say("  WITHOUT THE COLLECTOR, beside which OTLP is measured: make bin/collector, then --collector=bin/collector")
		return nil
	}
	at, err := port.Free()
	if err != nil {
		return err
	}
	config := filepath.Join(r.dir, "collector.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, collectorConfig, at, r.files.Server, r.files.ServerKey), 0o600); err != nil {
		return err
	}
	server, err := measure.Start(r.dir, r.Collector, "--config="+config, nil, nil)
	if err != nil {
		return fmt.Errorf("collector: %w", err)
	}
	base := fmt.Sprintf("https://127.0.0.1:%d", at)
	api, err := client.New(base, r.files.CA, 1)
	if err != nil {
		return errors.Join(err, stop(server))
	}
	defer api.Close()
	if err := server.Await(ctx, func(ctx context.Context) (bool, error) {
		_, err := api.Call(ctx, client.Request{Method: "GET", Path: "/"})
		return err == nil, nil
	}); err != nil {
		return fmt.Errorf("collector: %w", err)
	}
	defer func() { err = errors.Join(err, stop(server)) }()
	return r.measure(ctx, server.Pid, base, kind{byExporter, "/v1/logs", "", protobuf, r.hundredOTLP, 200, 0})
}
