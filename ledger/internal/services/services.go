package services

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/booking"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/forecasts"
	"github.com/weirlog/weir/ledger/internal/grants"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/ledger/internal/usage"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/replica"
)

// Services are those of all concepts, on one database.
type Services struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer

	Accounts   *accounts.Service
	Balances   *balances.Service
	Booking    *booking.Service
	Budgets    *budgets.Service
	Forecasts  *forecasts.Service
	Grants     *grants.Service
	Integrity  *integrity.Service
	Plans      *plans.Service
	TestClocks *plans.TestClocks
	Statements *balances.Statements
	Usage      *usage.Service
}

// Config configures the services.
type Config struct {
	Reads     Reads
	Decisions Decisions
	Tiers     ledger.Tiers // upgrades to propose
	Kept      ledger.Retention
	Clock     func() time.Time
	Owns      ledger.Owns
	End       snapshot.LogEnd       // nil: the end of the log is unknown
	Metrics   prometheus.Registerer // nil: none
}

// Reads are where and how the services read.
type Reads struct {
	Pool    *pgxpool.Pool
	Replica *replica.Reader // for lists; nil: none
	Limiter *httpapi.Limiter
}

// Decisions are where and how the services decide.
type Decisions struct {
	Pool    *pgxpool.Pool
	Limiter *httpapi.Limiter
	Save    unitofwork.SaveEvents
	IDs     func() string // unique, URL-safe, at most 60 characters
	Time    unitofwork.DatabaseTime
}

// New returns the services.
func New(c Config) *Services {
	reads := &snapshot.Reader{Pool: c.Reads.Pool, Limiter: c.Reads.Limiter, Clock: c.Clock}
	lists, to := reads.From(c.Reads.Replica), c.Decisions
	waiter := &balances.Waiter{Reads: reads, End: c.End}
	work := &unitofwork.Writer{
		Pool: to.Pool, Decisions: postgres.NewDecisionStore(to.Pool), Save: to.Save, IDs: to.IDs, Time: to.Time, Limiter: to.Limiter,
		Settle: waiter.Settle,
	}
	balance := &balances.Service{Reads: reads, Lists: lists, Kept: c.Kept, Waiter: waiter}
	budget := &budgets.Service{Reads: reads, Work: work, Owns: c.Owns}
	return &Services{
		Reads: reads, Work: work,
		Accounts:   &accounts.Service{Reads: reads, Balances: balance},
		Balances:   balance,
		Booking:    booking.New(c.Metrics),
		Budgets:    budget,
		Forecasts:  &forecasts.Service{Reads: reads, Tiers: c.Tiers, Balances: balance, Budgets: budget, Owns: c.Owns},
		Grants:     &grants.Service{Reads: reads, Work: work},
		Integrity:  &integrity.Service{Reads: reads, Kept: c.Kept},
		Plans:      &plans.Service{Reads: reads, Work: work, Balances: balance},
		TestClocks: &plans.TestClocks{Reads: reads, Work: work, Owns: c.Owns},
		Statements: &balances.Statements{Reads: lists},
		Usage:      &usage.Service{Reads: lists, Tiers: c.Tiers},
	}
}
