package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/measure"
	tenants "github.com/weirlog/weir/tenants/app"
)

// segmentBytes is small, so that segments of the log close
// within their retention.
const segmentBytes = 64 << 10

// An installation is all of Weir in this process, and its broker.
type installation struct {
	broker  *kafka.Broker
	app     *allinone.App
	api     *client.Client
	browser *subject.Browser // an unknown one at each sign-in
	db      *pgx.Conn
	closers []func() error // of what has started, in order
}

// start continues with the data in the directory and the database.
func (i *installation) start(ctx context.Context, config Config, now func() time.Time) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, i.stop())
		}
	}()
	i.broker, err = kafka.Start(kafka.Config{Dir: filepath.Join(config.Dir, "kafka"), Open: true, Clock: now, SegmentBytes: segmentBytes, Logger: config.Logger})
	if err != nil {
		return err
	}
	i.atStop(i.broker.Close)
	if err := topics.Ensure(ctx, []string{i.broker.Addr()}, fleetingTombstones()); err != nil {
		return err
	}
	if i.db, err = pgx.Connect(ctx, config.DatabaseURL); err != nil {
		return err
	}
	i.atStop(func() error { return i.db.Close(context.Background()) })
	modules, err := config.modules(now)
	if err != nil {
		return err
	}
	i.app, err = allinone.New(ctx, allinone.Config{
		Listen: "127.0.0.1:0", DataDir: filepath.Join(config.Dir, "weir"), DatabaseURL: httpapi.Secret(config.DatabaseURL), Brokers: []string{i.broker.Addr()},
		NoDemo: true, LogPartitions: logPartitions, LogRetention: logRetention, Modules: modules,
	}, config.Logger)
	if err != nil {
		return err
	}
	return i.run(ctx)
}

func (i *installation) atStop(end func() error) { i.closers = append(i.closers, end) }

// stop ends everything, the last first.
func (i *installation) stop() (err error) {
	for _, end := range slices.Backward(i.closers) {
		err = errors.Join(err, end())
	}
	*i = installation{}
	return err
}

// run runs the modules until stop, and returns once they are ready.
func (i *installation) run(ctx context.Context) (err error) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- i.app.Run(running) }()
	i.atStop(func() error {
		end()
		return <-ended
	})
	select {
	case <-i.app.Started():
	case err := <-ended:
		ended <- errors.Join(errors.New("the modules ended before they were ready"), err)
		return errors.New("not ready")
	case <-ctx.Done():
		return ctx.Err()
	}
	env := i.app.Env()
	if i.api, err = client.New(env.BaseURL, env.CAFile, 4); err != nil {
		return err
	}
	if i.browser, err = subject.NewBrowser(env); err != nil {
		return err
	}
	i.browser.Jar = nil
	i.atStop(func() error {
		i.api.Close()
		i.browser.CloseIdleConnections()
		return nil
	})
	return nil
}

const (
	logPartitions = 2
	logRetention  = 7 * day
)

// fleetingTombstones returns all topics, keeping tombstones for a
// second instead of a day: the broker compacts by the machine's clock,
// for which a month takes seconds.
func fleetingTombstones() []contract.Topic {
	all := contract.Topics(logPartitions, logRetention)
	for i, topic := range all {
		if topic.Config["cleanup.policy"] == "compact" {
			all[i].Config = maps.Clone(topic.Config)
			all[i].Config["delete.retention.ms"] = "1000"
		}
	}
	return all
}

// modules use the clock and the configured retentions.
func (c Config) modules(now func() time.Time) (allinone.Modules, error) {
	m, err := allinone.ModulesFromEnvironment()
	m.Ingest.Clock, m.Ledger.Clock, m.Grouping.Clock, m.Tenants.Clock = now, now, now, now
	m.Ledger.TierIndieRetention, m.Ledger.TierBootstrapperRetention = c.Kept.Tiers[0], c.Kept.Tiers[1]
	m.Ledger.TierComplianceRetention, m.Ledger.TierScaleRetention = c.Kept.Tiers[2], c.Kept.Tiers[3]
	m.Tenants.CheapPasswords = true                  // what hashing costs is nothing that grows
	m.Tenants.ConsoleOrigin = "https://weir.example" // passkeys need a name
	m.Tenants.Webhooks = tenants.WebhookConfig{Keys: httpapi.Secret(strings.Repeat("5a", 32)), Networks: []string{"127.0.0.0/8"}}
	parked, deletions := bus.Retention{ParkedDays: c.Kept.ParkedDays}, erasure.Retention{DeletionsMonths: c.Kept.DeletionsMonths}
	m.Ingest.Retention, m.Ledger.Retention, m.Grouping.Retention, m.Tenants.Retention = parked, parked, parked, parked
	m.Ingest.Deletions, m.Ledger.Deletions, m.Grouping.Deletions, m.Tenants.Deletions = deletions, deletions, deletions, deletions
	m.Ledger.TransfersMonths, m.Ledger.BooksMonths, m.Tenants.AuditDays = c.Kept.TransfersMonths, c.Kept.BooksMonths, c.Kept.AuditDays
	return m, err
}

// applied counts each consumer's records of the log before its
// position, less the deferred ones.
const applied = `least(
	(SELECT coalesce(sum(next), 0) FROM ingest.bus_positions WHERE topic = $1) - (SELECT count(*) FROM ingest.bus_deferred),
	(SELECT coalesce(sum(next), 0) FROM ledger.bus_positions WHERE topic = $1) - (SELECT count(*) FROM ledger.bus_deferred),
	(SELECT coalesce(sum(next), 0) FROM grouping.bus_positions WHERE topic = $1) - (SELECT count(*) FROM grouping.bus_deferred))::bigint`

// awaitApplied returns once every consumer has applied that many records.
func (i *installation) awaitApplied(ctx context.Context, records int64) error {
	return i.await(ctx, fmt.Sprintf("every consumer has applied %d records", records), `SELECT `+applied+` >= $2`, contract.TopicLogs, records)
}

// sealed: charges before an instant are in the chains.
const sealed = `SELECT NOT EXISTS (SELECT FROM ledger.ranges r WHERE booked_at < $1 AND next_offset > coalesce((
	SELECT max(c.next_offset) FROM ledger.cuts c JOIN ledger.seals s USING (hour) WHERE c.partition = r.partition AND s.root IS NOT NULL), 0))`

// awaitSealed returns once the ledger has sealed all charges before an
// instant: it keeps their ranges until then, whatever their age.
func (i *installation) awaitSealed(ctx context.Context, before time.Time) error {
	return i.await(ctx, "the charges of before "+before.Format(time.RFC3339)+" are sealed", sealed, before)
}

// awaitErased returns once all deletions are complete.
func (i *installation) awaitErased(ctx context.Context) error {
	return i.await(ctx, "what is deleted is gone", `SELECT NOT EXISTS (SELECT FROM tenants.deletions WHERE state IN ('deleting', 'erasing'))`)
}

// await returns once a query answers true; what describes it.
func (i *installation) await(ctx context.Context, what, query string, args ...any) error {
	if _, err := i.db.Exec(ctx, asSystem); err != nil {
		return err
	}
	return measure.Await(ctx, what, func(ctx context.Context) (done bool, err error) {
		err = i.db.QueryRow(ctx, query, args...).Scan(&done)
		return done, err
	})
}

// asSystem lets the connection see the rows of all organizations.
const asSystem = `SELECT set_config('weir.organization', '*', false)`

// A clock runs as the machine's does, and skips idle time.
type clock struct{ skipped atomic.Int64 }

// Now is Weir's time.
func (c *clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.skipped.Load()))
}

func (c *clock) skip(span time.Duration) { c.skipped.Add(int64(span)) }
