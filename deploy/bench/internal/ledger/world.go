package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/service"
)

// A world is a log, an empty schema, and the other modules' events.
type world struct {
	dir, url  string
	logger    *slog.Logger
	brokers   []string
	pool      *pgxpool.Pool // for the benchmark
	publisher *publisher.Publisher
	published int64         // records on weir.logs.v1
	checked   time.Duration // between ledgers' checks; 0: the default
}

// in makes a world with a broker of its own, for do.
func in(ctx context.Context, w world, do func(*world) error) (err error) {
	if w.pool, err = pgxpool.New(ctx, w.url); err != nil {
		return err
	}
	defer w.pool.Close()
	if _, err := w.pool.Exec(ctx, "DROP SCHEMA IF EXISTS ledger, ledger_rebuilding, ledger_rebuilt CASCADE"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.dir, "broker-")
	if err != nil {
		return err
	}
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Logger: w.logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	w.brokers = []string{broker.Addr()}
	if err := topics.Ensure(ctx, w.brokers, contract.Topics(0, 0)); err != nil {
		return err
	}
	if w.publisher, err = publisher.New(publisher.Config{Brokers: w.brokers}, w.logger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.publisher.Close()) }()
	return do(&w)
}

func organization(i int) string { return fmt.Sprintf("org_%04d", i) }

// accept creates the organizations, and publishes n requests of theirs
// as ingest does.
func (w *world) accept(ctx context.Context, n, organizations int) error {
	now := time.Now().UTC()
	if err := w.create(ctx, organizations, now); err != nil {
		return err
	}
	const perPublish = 1000
	for left := n; left > 0; left -= perPublish {
		if err := w.publish(ctx, min(perPublish, left), organizations, now); err != nil {
			return err
		}
	}
	return nil
}

// request returns the i-th request, of each organization and each of its
// three projects in turn.
func request(i, organizations int, at time.Time) contract.LogsAccepted {
	const projects = 3
	project := fmt.Sprintf("prj_%04d_%d", i%organizations, i/organizations%projects)
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization(i % organizations), Project: project,
		Environment: "prod", Key: "key_" + project, Source: "weir/ingest", Time: at, Entries: 100, Bytes: 20_000, RetentionDays: 90, Lines: []byte("{}\n"),
	}
}

// publish publishes the next n requests of so many organizations.
func (w *world) publish(ctx context.Context, n, organizations int, at time.Time) error {
	messages := make([]*message.Message, n)
	for i := range messages {
		r := request(int(w.published)+i, organizations, at)
		messages[i] = subject.Record(r.RecordKey(16), r.Headers(), r.Lines)
	}
	_, err := w.publisher.PublishContext(ctx, contract.TopicLogs, messages...)
	w.published += int64(n)
	return err
}

// create publishes tenants' facts of new organizations. Past periods
// are closed during the measurement.
func (w *world) create(ctx context.Context, organizations int, at time.Time) error {
	messages := make([]*message.Message, organizations)
	for i := range messages {
		created := contract.OrganizationCreated{Organization: organization(i), Name: "Organization", Tier: "scale", CreatedAt: at}
		var err error
		if messages[i], err = fact(contract.TypeOrganizationCreated, created.Organization, created); err != nil {
			return err
		}
	}
	_, err := w.publisher.PublishContext(ctx, contract.TopicTenants, messages...)
	return err
}

func fact(eventType, key string, value any) (*message.Message, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	attributes := contract.Attributes{ID: uuid.NewString(), Type: eventType, Source: "weir/tenants", Time: time.Now()}
	return subject.Record(key, attributes.Headers(), text), nil
}

// token publishes a service token that may read balances, and returns it.
func (w *world) token(ctx context.Context) (string, error) {
	var random [24]byte
	_, _ = rand.Read(random[:])
	secret := identity.ServiceTokenPrefix + hex.EncodeToString(random[:])
	credential := contract.Credential{
		Kind: contract.CredentialServiceToken, ID: "svc_1", Organization: organization(0), Scopes: []string{"billing:read"},
		State: contract.CredentialActive, Version: 1,
	}
	m, err := fact(contract.TypeCredentialChanged, contract.CredentialKey(secret), credential)
	if err == nil {
		_, err = w.publisher.PublishContext(ctx, contract.TopicCredentials, m)
	}
	return secret, err
}

func (w *world) replica(ctx context.Context) (*ledger.App, error) {
	return ledger.New(ctx, w.ledger(), w.logger)
}

// ledger returns the ledgers' configuration. Its limits of readers
// exceed what is measured.
func (w *world) ledger() ledger.Config {
	return ledger.Config{
		Config: service.Config{
			Servers: service.Servers{Brokers: w.brokers, DatabaseURL: httpapi.Secret(w.url)},
			Limits:  identity.Limits{ReadsPerMinute: 1 << 30},
		},
		CheckInterval: w.checked,
	}
}

// with runs replicas while it does something.
func (w *world) with(ctx context.Context, replicas int, do func(context.Context) error) error {
	var run []func(context.Context) error
	for range replicas {
		app, err := w.replica(ctx)
		if err != nil {
			return err
		}
		run = append(run, app.Run)
	}
	return beside(ctx, func(ctx context.Context) error { return lifecycle.Run(ctx, run...) }, do)
}

// beside does something while another runs, and then ends that.
func beside(ctx context.Context, other, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return lifecycle.Run(ctx, other, func(ctx context.Context) error {
		defer cancel()
		return do(ctx)
	})
}

// until polls until something is done, or fails. A shorter interval would
// distort the measurement.
func until(ctx context.Context, done func(context.Context) (bool, error)) error {
	return measure.Until(ctx, 10*time.Millisecond, done)
}

// await waits until at least so many records are committed, and returns
// how many were, and when.
func (w *world) await(ctx context.Context, least int64) (committed int64, at time.Time, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		committed, err = w.committed(ctx)
		return committed >= least, err
	})
	return committed, time.Now(), err
}

// committed returns how many records the ledger's positions cover. The
// log begins at offset 0.
func (w *world) committed(ctx context.Context) (n int64, err error) {
	err = w.pool.QueryRow(ctx, `SELECT coalesce(sum(next), 0)::bigint FROM ledger.bus_positions WHERE group_name = $1 AND topic = $2`,
		contract.GroupLedger, contract.TopicLogs).Scan(&n)
	return n, err
}

// settled reports whether all account states are published.
func (w *world) settled(ctx context.Context) (yes bool, err error) {
	err = pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM ledger.unpublished)`).Scan(&yes)
	})
	return yes, err
}

// A reader repeats one request, without a network between.
type reader struct {
	handler     http.Handler
	token, path string
}

// read runs a ledger, and lets do read a path of the first organization
// once all records are applied and the path is answered.
func (w *world) read(ctx context.Context, path string, do func(context.Context, *reader) error) error {
	secret, err := w.token(ctx)
	if err != nil {
		return err
	}
	replica, err := w.replica(ctx)
	if err != nil {
		return err
	}
	r := &reader{replica.Handler(), secret, "/v1/organizations/" + organization(0) + path}
	return beside(ctx, replica.Run, func(ctx context.Context) error {
		if _, _, err := w.await(ctx, w.published); err != nil {
			return err
		}
		var last error
		err := measure.Await(ctx, path+" is answered", func(ctx context.Context) (bool, error) {
			last = r.ask(ctx)
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(err, last)
		}
		return do(ctx, r)
	})
}

func (r *reader) ask(ctx context.Context) error {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, r.path, nil)
	request.Header.Set("Authorization", "Bearer "+r.token)
	recorder := httptest.NewRecorder()
	if r.handler.ServeHTTP(recorder, request); recorder.Code != http.StatusOK {
		return fmt.Errorf("%s is answered %d: %s", r.path, recorder.Code, recorder.Body.String())
	}
	return nil
}

// repeat asks for a time, 0: until ctx ends, with pauses that leave a core
// idle, and returns p50 and p99.
func (r *reader) repeat(ctx context.Context, long time.Duration) ([]time.Duration, error) {
	const gap = 5 * time.Millisecond
	var took measure.Samples
	_, err := measure.Load{Workers: 1, For: long}.Run(ctx, func(ctx context.Context, _ int, _ time.Time) error {
		lifecycle.Pause(ctx, gap)
		return took.Time(func() error { return r.ask(context.WithoutCancel(ctx)) })
	})
	return took.Percentiles(50, 99), err
}
