package unitofwork

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/turns"
)

// A Writer writes what is decided.
type Writer struct {
	Pool      *pgxpool.Pool
	Decisions *postgres.DecisionStore
	Save      SaveEvents
	IDs       func() string // unique, URL-safe, at most 60 characters
	Rules     ledger.Rules
	Time      DatabaseTime
	Turns     *turns.Turns
}

// Deciders are turns for so many decisions at once, each of another
// organization: those of one wait for each other's lock anyway. Who
// decides holds a connection, also while it waits for a lock.
func Deciders(atOnce int, longest time.Duration) turns.Config {
	return turns.Config{Places: atOnce, PerOrganization: 1, Wait: longest, Module: "weir_ledger", Noun: "decisions", Asked: "changes"}
}

// DatabaseTime is the clock by which all replicas decide, read in the deciding
// transaction: who holds a lock must not wait for another connection.
type DatabaseTime func(ctx context.Context, tx pgx.Tx) (time.Time, error)

// SaveEvents keeps what others are to be informed of, in the transaction that
// makes it true, as the last thing that it does.
type SaveEvents func(ctx context.Context, tx pgx.Tx, events []ledger.Event) error
