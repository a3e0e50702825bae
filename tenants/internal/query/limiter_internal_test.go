package query

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Organizations take turns. The process's own work is done at once beside them.
func TestReadersTakeTurns(t *testing.T) {
	limiter := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: 4, Module: "weir_tenants", Noun: "reads"}, prometheus.NewRegistry())
	reader := NewReader(pgtest.Open(t, "tenants")).Limited(limiter)
	limitertest.Check(t, 4, 16, func(ctx context.Context, organization string, work func()) error {
		err := reader.read(identity.NewContext(ctx, identity.Principal{Organization: organization}), pg.Organization(organization), func(pgx.Tx) error {
			work()
			return nil
		})
		if organization == "quiet" {
			err = errors.Join(err, reader.read(ctx, "noisy", func(pgx.Tx) error { return nil }))
		}
		return err
	})
}
