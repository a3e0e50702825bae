package unitofwork

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

// A Writer writes decisions.
type Writer struct {
	Pool      *pgxpool.Pool
	Decisions *postgres.DecisionStore
	Save      SaveEvents
	IDs       func() string // unique, URL-safe, at most 60 characters
	Time      DatabaseTime
	Limiter   *httpapi.Limiter
}

// Deciders configures the limiter of so many concurrent decisions, each of
// another organization, as those of one wait for its lock anyway. A
// decision holds a connection, even while it waits for a lock.
func Deciders(places int, longest time.Duration) httpapi.LimiterConfig {
	return httpapi.LimiterConfig{Slots: places, PerOrganization: 1, Wait: longest, Module: "weir_ledger", Noun: "decisions", Asked: "changes"}
}

// DatabaseTime is the common clock of all replicas, read in the
// deciding transaction: a lock's holder must not wait for another connection.
type DatabaseTime func(ctx context.Context, tx pgx.Tx) (time.Time, error)

// SaveEvents saves events for publication, as the last step of their transaction.
type SaveEvents func(ctx context.Context, tx pgx.Tx, events []ledger.Event) error
