package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	otellog "go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"go.opentelemetry.io/otel/attribute"

	"github.com/weirlog/weir/shared/testenv"
)

// A program with the SDK of OpenTelemetry for Go sends logs by its address
// and key alone, and finds them; what a broker refuses comes later.
func testOpenTelemetry(t *testing.T, r *rig, p *replica) {
	r.account("org_otlp", nil)
	key := r.key("org_otlp", "prj_otlp", nil)
	p.admits(key)
	exporter, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpointURL(p.url+"/v1/otlp/v1/logs"), otlploghttp.WithHeaders(map[string]string{"x-api-key": key}),
		otlploghttp.WithTLSClientConfig(&tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12}), otlploghttp.WithCompression(otlploghttp.GzipCompression))
	testenv.Must(t, err)
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(sdk.NewBatchProcessor(exporter)),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "cart"))))
	record := otellog.Record{}
	record.SetTimestamp(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	record.SetSeverity(otellog.SeverityError)
	record.SetBody(otellog.StringValue("no cart"))
	record.AddAttributes(otellog.Int("ms", 12), otellog.String("exception.type", "KeyError"), otellog.String("exception.stacktrace", "KeyError: 7\n  at cart.go:3"))
	provider.Logger("shop", otellog.WithInstrumentationVersion("1.2")).Emit(t.Context(), record)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	testenv.Must(t, errors.Join(provider.ForceFlush(ctx), provider.Shutdown(ctx)))

	const want = `{"timestamp":"2026-01-31T12:00:00Z","level":"error","message":"no cart","error":{"type":"KeyError","stack_trace":["KeyError: 7","  at cart.go:3"]},` +
		`"metadata":{"ms":12,"service.name":"cart","scope":{"name":"shop","version":"1.2"}}}`
	testenv.Eventually(t, func() error {
		got := p.get(key, "/v1/logs?project=prj_otlp&q=metadata.service.name:cart")
		if !bytes.Contains(got.text, []byte(`"entry":`+want)) {
			return fmt.Errorf("%d %s, want %s", got.status, got.text, want)
		}
		return nil
	})
}
