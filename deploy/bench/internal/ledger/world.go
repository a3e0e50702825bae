package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	kafkago "github.com/segmentio/kafka-go"

	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/service"
)

// A world is a log, an empty schema, and the other modules' events.
type world struct {
	dir, url  string
	logger    *slog.Logger
	brokers   []string      // none: the embedded one is started
	broker    *kafka.Broker // that was
	pool      *pgxpool.Pool // for the benchmark
	publisher *publisher.Publisher
	published int64         // records on weir.logs.v1
	checked   time.Duration // between ledgers' checks; 0: the default
}

func newWorld(ctx context.Context, made world) (w *world, err error) {
	w = &made
	if w.pool, err = pgxpool.New(ctx, w.url); err != nil {
		return nil, err
	}
	if _, err := w.pool.Exec(ctx, "DROP SCHEMA IF EXISTS ledger, ledger_rebuilding, ledger_rebuilt CASCADE"); err != nil {
		return nil, err
	}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context) (err error) {
	if len(w.brokers) == 0 {
		err = w.startBroker()
	} else {
		err = w.emptyTopics(ctx)
	}
	if err != nil {
		return err
	}
	if err := topics.Ensure(ctx, w.brokers, contract.Topics(0, 0)); err != nil {
		return err
	}
	w.publisher, err = publisher.New(publisher.Config{Brokers: w.brokers}, w.logger)
	return err
}

func (w *world) startBroker() (err error) {
	dir, err := os.MkdirTemp(w.dir, "broker-")
	if err != nil {
		return err
	}
	if w.broker, err = kafka.Start(kafka.Config{Open: true, Dir: dir, Logger: w.logger}); err == nil {
		w.brokers = []string{w.broker.Addr()}
	}
	return err
}

// emptyTopics deletes an earlier measurement's records from given brokers.
func (w *world) emptyTopics(ctx context.Context) error {
	client := &kafkago.Client{Addr: kafkago.TCP(w.brokers...), Timeout: 30 * time.Second}
	var names []string
	for _, topic := range contract.Topics(0, 0) {
		names = append(names, topic.Name)
	}
	_, err := client.DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: names})
	return err
}

func (w *world) close() (err error) {
	if w.publisher != nil {
		err = w.publisher.Close()
	}
	if w.broker != nil {
		err = errors.Join(err, w.broker.Close())
	}
	w.pool.Close()
	return err
}

func organization(i int) string { return fmt.Sprintf("org_%04d", i) }

// accept creates the organizations, and publishes n requests of theirs
// as ingest does.
func (w *world) accept(ctx context.Context, n, organizations int) error {
	now := time.Now().UTC()
	if err := w.create(ctx, organizations, now); err != nil {
		return err
	}
	for left := n; left > 0; left -= perPublish {
		if err := w.publish(ctx, min(perPublish, left), organizations, now); err != nil {
			return err
		}
	}
	return nil
}

const perPublish = 1000

// projects is an organization's number of projects.
const projects = 3

// request returns the i-th request, of each organization and each of
// its projects in turn.
func request(i, organizations int, at time.Time) contract.LogsAccepted {
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
		messages[i] = record(r.RecordKey(16), r.Headers(), r.Lines)
	}
	_, err := w.publisher.PublishContext(ctx, contract.TopicLogs, messages...)
	w.published += int64(n)
	return err
}

func record(key string, headers map[string]string, value []byte) *message.Message {
	m := message.NewMessage("", value)
	for name, value := range headers {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(bus.KeyMetadata, key)
	return m
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
	return record(key, attributes.Headers(), text), nil
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

func (w *world) replica(ctx context.Context, perTransaction int) (*ledger.App, error) {
	return ledger.New(ctx, w.ledger(perTransaction), w.logger)
}

// ledger returns the ledgers' configuration. Its limits of readers
// exceed what is measured.
func (w *world) ledger(perTransaction int) ledger.Config {
	return ledger.Config{
		Config: service.Config{
			Servers: service.Servers{Brokers: w.brokers, DatabaseURL: httpapi.Secret(w.url)},
			Limits:  identity.Limits{ReadsPerMinute: 1 << 30},
		},
		BatchRecords: perTransaction, CheckInterval: w.checked,
	}
}
