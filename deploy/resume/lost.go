package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/migrate"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A loss is what one consumer of weir.logs.v1 lacks, as far as the
// ledger knows it.
type loss struct {
	charged map[string]ledger.Charged // by organization
	unknown int64                     // offsets that the ledger has not applied either
}

// explainLost says whose records are lost, and of when, as far as
// anything knows.
func (i *installation) explainLost(ctx context.Context, out io.Writer, steps []Step) error {
	losses := map[string]*loss{}
	err := pg.InTxAsSystem(ctx, i.pools["ledger"], func(tx pgx.Tx) error {
		for _, step := range steps {
			if err := step.addLosses(ctx, tx, losses); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: cannot read whose records are lost: %w", err)
	}
	for _, group := range slices.Sorted(maps.Keys(losses)) {
		if err := losses[group].write(out, group); err != nil {
			return err
		}
	}
	return uncounted(out, steps)
}

// addLosses adds what consumers lack of a partition of weir.logs.v1.
func (s Step) addLosses(ctx context.Context, tx pgx.Tx, losses map[string]*loss) error {
	if s.Topic != contract.TopicLogs {
		return nil
	}
	known := int64(0)
	for _, o := range s.Outcomes {
		if o.Group == contract.GroupLedger {
			known = o.Next
		}
	}
	for _, o := range s.Outcomes {
		if o.LostTo <= o.LostFrom {
			continue
		}
		l := losses[o.Group]
		if l == nil {
			l = &loss{charged: map[string]ledger.Charged{}}
			losses[o.Group] = l
		}
		l.unknown += o.LostTo - max(o.LostFrom, min(known, o.LostTo))
		found, err := ledger.ChargedIn(ctx, tx, s.Partition, o.LostFrom, min(known, o.LostTo))
		if err != nil {
			return err
		}
		for _, c := range found {
			l.add(c)
		}
	}
	return nil
}

func (l *loss) add(c ledger.Charged) {
	was, known := l.charged[c.Organization]
	if known {
		c.Requests, c.Bytes = c.Requests+was.Requests, c.Bytes+was.Bytes
		if was.First.Before(c.First) {
			c.First = was.First
		}
		if was.Last.After(c.Last) {
			c.Last = was.Last
		}
	}
	l.charged[c.Organization] = c
}

func (l *loss) write(out io.Writer, group string) error {
	fmt.Fprintf(out, "\n%s lacks, as the ledger has charged it:\n", group)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ORGANIZATION\tREQUESTS\tBYTES\tACCEPTED FROM\tTO")
	for _, organization := range slices.Sorted(maps.Keys(l.charged)) {
		c := l.charged[organization]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", organization, c.Requests, c.Bytes, stamp(c.First), stamp(c.Last))
	}
	if l.unknown > 0 {
		fmt.Fprintf(t, "unknown\t%d records at most\tunknown\tunknown\tunknown\n", l.unknown)
	}
	return t.Flush()
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// uncounted says since when records may be lost that no consumer had
// applied: of those nothing is known. The zero time: at any time.
func uncounted(out io.Writer, steps []Step) error {
	since := map[string]time.Time{}
	for _, step := range steps {
		if !step.Fill {
			continue
		}
		var last time.Time
		for _, o := range step.Outcomes {
			if o.Last != nil && o.Last.Time.After(last) {
				last = o.Last.Time
			}
		}
		if was, known := since[step.Topic]; !known || last.Before(was) {
			since[step.Topic] = last
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(since)) {
		after := ""
		if !since[topic].IsZero() {
			after = " after " + stamp(since[topic])
		}
		_, err := fmt.Fprintf(out, "uncounted: what was written to %s%s, and no consumer had applied, may be lost too. Nothing knows how much that is.\n",
			topic, after)
		if err != nil {
			return err
		}
	}
	return nil
}

// stopTimeout is how long the database may take to stop.
const stopTimeout = 30 * time.Second

// openEmbedded starts the broker and the database of a data directory
// where no others are given, so that nobody else uses them meanwhile.
// Those of a running weir run are used as they are, to look. It makes no
// database: a directory without one was never a data directory.
func (i *installation) openEmbedded(ctx context.Context, out io.Writer) error {
	switch {
	case !isDir(i.DataDir), len(i.Brokers) > 0 && !databaseMissing(), databaseMissing() && !isDir(i.postgres()):
		return nil
	}
	release, err := allinone.Lock(i.DataDir)
	if errors.Is(err, allinone.ErrLocked) && !i.Yes {
		return nil
	}
	if err != nil {
		return err
	}
	i.alone = true
	i.ends = append(i.ends, release)
	logger := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelError}))
	if databaseMissing() {
		if err := i.startDatabase(ctx, logger); err != nil {
			return err
		}
	}
	if len(i.Brokers) == 0 {
		return i.startBroker(ctx, out, logger)
	}
	return nil
}

func (i *installation) postgres() string { return filepath.Join(i.DataDir, "postgres") }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// databaseMissing reports whether a module's database isn't given.
func databaseMissing() bool {
	return slices.ContainsFunc(endpoint.Modules, func(module string) bool {
		url, _ := endpoint.MigratingDatabaseURL(module, os.DevNull) // no weir run is at work there
		return url == ""
	})
}

// startDatabase starts the database, and brings it up to date as weir
// run would.
func (i *installation) startDatabase(ctx context.Context, logger *slog.Logger) error {
	server, err := postgres.Start(ctx, postgres.Config{Dir: i.postgres(), Logger: logger})
	if err != nil {
		return err
	}
	i.ends = append(i.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return server.Stop(ctx)
	})
	return migrate.Run(ctx, migrate.Config{DataDir: i.DataDir}, io.Discard)
}

// startBroker starts the broker. A damaged log is repaired first, if
// something is to be changed.
func (i *installation) startBroker(ctx context.Context, out io.Writer, logger *slog.Logger) error {
	dir := filepath.Join(i.DataDir, "kafka")
	if i.Yes && isDir(dir) {
		cuts, err := kafka.Repair(dir)
		if err != nil {
			return err
		}
		if err := showCuts(out, cuts); err != nil {
			return err
		}
	}
	broker, err := kafka.Start(kafka.Config{Dir: dir, Logger: logger})
	if errors.Is(err, kafka.ErrDamaged) {
		return fmt.Errorf("%w\nweir resume --yes cuts the log there, keeps what it cuts off in %s, shows what is lost, and goes on",
			err, filepath.Join(dir, "damaged"))
	}
	if err != nil {
		return err
	}
	i.ends = append(i.ends, broker.Close)
	brokers, dialer, err := i.Cluster()
	if err != nil {
		return err
	}
	return topics.EnsureWith(ctx, brokers, dialer, contract.Topics(i.LogPartitions, i.LogRetention))
}

// showCuts says what a repair has taken out of the log.
func showCuts(out io.Writer, cuts []kafka.Cut) error {
	var err error
	for _, cut := range cuts {
		upTo := "on"
		if cut.To >= 0 {
			upTo = fmt.Sprintf("up to %d", cut.To)
		}
		kept := "which the disk no longer has"
		if cut.Kept != "" {
			kept = fmt.Sprintf("%d bytes, kept in %s", cut.Bytes, cut.Kept)
		}
		_, failed := fmt.Fprintf(out, "damaged: partition %d of %s from offset %d %s: %s\n", cut.Partition, cut.Topic, cut.From, upTo, kept)
		err = errors.Join(err, failed)
	}
	return err
}
