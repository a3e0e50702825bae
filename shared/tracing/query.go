package tracing

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Queries makes a span of each statement below a span, commits included.
// It has the statement's first word: neither text nor arguments.
type Queries struct{}

var (
	_ pgx.QueryTracer    = Queries{}
	_ pgx.BatchTracer    = Queries{}
	_ pgx.CopyFromTracer = Queries{}
)

// TraceQueryStart begins a statement.
func (Queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return startStatement(ctx, data.SQL)
}

// TraceQueryEnd ends it.
func (Queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endStatement(ctx, data.CommandTag, data.Err)
}

// TraceBatchStart begins one span for statements sent together.
func (Queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return startStatement(ctx, "batch")
}

// TraceBatchQuery is for pgx.
func (Queries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends them.
func (Queries) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endStatement(ctx, pgconn.CommandTag{}, data.Err)
}

// TraceCopyFromStart begins a COPY.
func (Queries) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return startStatement(ctx, "copy")
}

// TraceCopyFromEnd ends it.
func (Queries) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	endStatement(ctx, data.CommandTag, data.Err)
}

// startStatement always leaves a span in ctx that endStatement may end:
// its own, or one that does not record.
func startStatement(ctx context.Context, sql string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	operation := operationOf(sql)
	ctx, span := start(ctx, "postgres "+operation, trace.SpanKindClient)
	span.SetAttributes(attribute.String("db.system.name", "postgresql"), attribute.String("db.operation.name", operation))
	return ctx
}

func endStatement(ctx context.Context, tag pgconn.CommandTag, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(attribute.Int64("weir.rows", tag.RowsAffected()))
	}
	End(span, err)
}

// operations are known first words of statements; any other is named
// "query", as it might be anything.
var operations = map[string]bool{
	"begin": true, "commit": true, "rollback": true, "savepoint": true, "release": true, "set": true, "lock": true, "with": true,
	"select": true, "insert": true, "update": true, "delete": true, "merge": true, "copy": true, "batch": true,
}

func operationOf(sql string) string {
	words := strings.Fields(sql[:min(len(sql), 64)])
	if len(words) == 0 {
		return "query"
	}
	if word := strings.ToLower(strings.Trim(words[0], "();")); operations[word] {
		return word
	}
	return "query"
}
