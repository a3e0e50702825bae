package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	ingest "github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

const historyHelp = `Entries land in Postgres. With WEIR_INGEST_CLICKHOUSE_URL set, ingest moves them on to ClickHouse, in batches, each once.

  weir history schema --cluster=logs      what an administrator runs in ClickHouse: tables, users, row policies
  weir history move --to=clickhouse       move all that is in Postgres now, and go on so
  weir history move --to=postgres         bring all back, and leave new entries in Postgres
  weir history discard                    after Postgres was restored from a backup: see below

A move works beside running processes of ingest, which must have the setting, or without them. It may be killed and run again.

A restored Postgres does not know the last moves. Their entries are not found, and come again from the log; nothing moves
until discard has deleted them in ClickHouse.`

type historyCommand struct {
	Schema  historySchema  `cmd:"" help:"Print the statements that make ClickHouse's tables, users and row policies."`
	Move    historyMove    `cmd:"" help:"Move all entries to ClickHouse, or back to Postgres."`
	Discard historyDiscard `cmd:"" help:"Delete what ClickHouse has of moves that a restored Postgres does not know."`
}

// Help is called by kong.
func (historyCommand) Help() string { return historyHelp }

type historySchema struct {
	Database string `help:"Database of the tables." default:"weir"`
	Cluster  string `help:"Name of a cluster of replicas and shards. Without it, the table is on one server."`
	Policy   string `help:"Storage policy of the table."`
	ColdDays int    `help:"After how many days parts go to the policy's volume named cold. 0: never."`
}

// Run prints.
func (h *historySchema) Run() error {
	if h.ColdDays > 0 && h.Policy == "" {
		return fmt.Errorf("--cold-days=%d needs a --policy with a volume named cold", h.ColdDays)
	}
	_, err := fmt.Fprint(os.Stdout, ingest.HistorySchema(h.Database, h.Cluster, h.Policy, h.ColdDays))
	return err
}

// historyServers are where entries are.
type historyServers struct {
	DatabaseURL httpapi.Secret       `help:"Postgres of ingest." env:"WEIR_INGEST_DATABASE_URL"`
	ClickHouse  ingest.HistoryConfig `embed:""`
}

func (h *historyServers) validate() error {
	if h.ClickHouse.URL == "" {
		return errors.New("name a ClickHouse by WEIR_INGEST_CLICKHOUSE_URL")
	}
	if err := h.ClickHouse.Validate(); err != nil {
		return err
	}
	return process.CheckDatabaseURL("WEIR_INGEST_DATABASE_URL", h.DatabaseURL.Reveal())
}

type historyMove struct {
	historyServers `embed:""`

	Archive ingest.ArchiveConfig `embed:""`
	To      string               `help:"clickhouse or postgres." required:"" enum:"clickhouse,postgres"`
}

// Run moves until all is there.
func (h *historyMove) Run(ctx context.Context, logger *slog.Logger) error {
	if err := h.validate(); err != nil {
		return err
	}
	noun := "bytes of entries wait"
	if h.To == "postgres" {
		noun = "moves may still come back"
	}
	err := ingest.HistoryMove{
		DatabaseURL: h.DatabaseURL.Reveal(), ClickHouse: h.ClickHouse, Archive: h.Archive, To: h.To, Clock: time.Now, Logger: logger,
		Progress: func(moves int, left int64) { fmt.Fprintf(os.Stderr, "\r%d moves, %d %s   ", moves, left, noun) },
	}.Run(ctx)
	fmt.Fprintln(os.Stderr)
	if err == nil {
		fmt.Fprintf(os.Stdout, "all entries are in %s\n", h.To)
	}
	return err
}

type historyDiscard struct {
	historyServers `embed:""`
}

// Run deletes.
func (h *historyDiscard) Run(ctx context.Context) error {
	if err := h.validate(); err != nil {
		return err
	}
	discarded, err := ingest.DiscardHistory(ctx, h.DatabaseURL.Reveal(), h.ClickHouse, time.Now)
	if err == nil {
		fmt.Fprintf(os.Stdout, "discarded %d moves\n", discarded)
	}
	return err
}
