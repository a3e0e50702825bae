package transaction

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/tracing"
)

// traced begins the span of one transaction, linked to the requests
// of the records.
func (r *Runner) traced(ctx context.Context, records []bus.Record) (context.Context, trace.Span) {
	var parents []string
	if r.Tracer != nil {
		parents = traceparents(records)
	}
	return r.Tracer.Transaction(ctx, r.Store.Group, r.Store.Topic, len(records), parents)
}

// traceparents returns those of the first sampled requests among
// records. One request's records are consecutive.
func traceparents(records []bus.Record) (found []string) {
	for _, r := range records {
		text := r.Header(contract.HeaderTraceparent)
		if !tracing.IsSampled(text) || len(found) > 0 && found[len(found)-1] == text {
			continue
		}
		if found = append(found, text); len(found) == tracing.MaxLinks {
			break
		}
	}
	return found
}
