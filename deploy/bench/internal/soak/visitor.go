package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

// visitors come for a month, and are deleted: an organization that
// tries Weir, one with a test clock, and a project.
type visitors struct {
	trial, test, project string
	key                  string // of the project
}

// changeVisitors deletes last month's visitors and adds new ones.
func (r *run) changeVisitors(ctx context.Context, month int) error {
	before := r.visitors
	if err := r.receiveVisitors(ctx, month); err != nil || before == (visitors{}) {
		return err
	}
	for _, gone := range []string{"/organizations/" + before.trial, "/organizations/" + before.test, "/projects/" + before.project} {
		if _, err := decide(ctx, r.api, r.operator(), decision{http.MethodDelete, gone, ""}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) receiveVisitors(ctx context.Context, month int) error {
	trial, err := r.api.CreateOrganization(ctx, r.operator(), fmt.Sprintf("Trial %d", month), "indie")
	if err != nil {
		return err
	}
	if _, err := r.use(ctx, trial.ID); err != nil {
		return err
	}
	test, err := r.api.CreateOrganization(ctx, r.operator(), fmt.Sprintf("Test %d", month), "indie")
	if err != nil {
		return err
	}
	if err := r.useTest(ctx, test.ID); err != nil {
		return err
	}
	key, err := r.use(ctx, r.tenants[0].organization)
	r.visitors = visitors{trial.ID, test.ID, key.Project, key.Key}
	return err
}

// use makes a project of an organization with a key, and sends entries.
func (r *run) use(ctx context.Context, organization string) (key client.APIKey, err error) {
	made, err := r.api.CreateProject(ctx, r.operator(), organization, "Prototype")
	if err != nil {
		return key, err
	}
	key, err = r.api.CreateAPIKey(ctx, r.operator(), made.ID, "dev", "a trial's key")
	if err != nil {
		return key, err
	}
	if err := awaitKey(ctx, r.api, key.Key); err != nil {
		return key, err
	}
	r.accepted++
	_, err = r.api.Deliver(ctx, key.Key, client.Batch{Body: body(len(r.tenants), r.day, 0, r.clock.Now()), IdempotencyKey: made.ID})
	return key, err
}

// useTest gives an organization a test clock, and uses it.
func (r *run) useTest(ctx context.Context, organization string) error {
	clock := "/organizations/" + organization + "/test-clock"
	for _, d := range []decision{{http.MethodPut, clock, `{}`}, {http.MethodPost, clock + "/use", `{"bytes":1000}`}} {
		if _, err := decide(ctx, r.api, r.operator(), d); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) operator() string { return r.app.Env().OperatorToken }

// exceedBudget sets a budget of one byte for the first tenant's visiting
// project, and sends until it refuses. It returns the number accepted before.
func (r *run) exceedBudget(ctx context.Context) (accepted int64, err error) {
	budgets := fmt.Sprintf(`[{"project":%q,"bytes":1}]`, r.visitors.project)
	path := "/organizations/" + r.tenants[0].organization + "/budgets"
	if _, err := decide(ctx, r.api, r.operator(), decision{http.MethodPut, path, budgets}); err != nil {
		return 0, err
	}
	err = until(ctx, "a budget refuses a request", func(ctx context.Context) (bool, error) {
		_, err := r.api.Post(ctx, r.visitors.key, client.Batch{Body: body(len(r.tenants), r.day, 1, r.clock.Now())})
		if isProblem(err, http.StatusTooManyRequests) {
			return strings.Contains(err.Error(), "quota_exceeded"), nil // else it asks for time to count
		}
		accepted++
		return false, err
	})
	return accepted, err
}

// invalidRecords are what a failing producer leaves: an unreadable record, which
// is parked, and the first part of a request whose second never comes.
func (t *tenant) invalidRecords(now time.Time) []*message.Message {
	unreadable, incomplete := messageOf(t.record(now, 1)), messageOf(t.record(now, 2))
	unreadable.Metadata[contract.HeaderBytes] = "many"
	return []*message.Message{unreadable, incomplete}
}

// record is the first of so many parts of a request.
func (t *tenant) record(now time.Time, parts int) contract.LogsAccepted {
	line := routine(now, t.number, 1)
	return contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: parts, Organization: t.organization, Project: t.project, Environment: "prod", Key: t.key.ID,
		Source: "weir/ingest", Time: now, Entries: 1, Bytes: int64(len(line)), Lines: []byte(line + "\n"),
	}
}

func messageOf(logs contract.LogsAccepted) *message.Message {
	m := message.NewMessage(logs.ID(), logs.Lines)
	m.Metadata = logs.Headers()
	m.Metadata[bus.KeyMetadata] = logs.RecordKey(1)
	return m
}

// publishInvalidRecords publishes a tenant's invalidRecords.
func (r *run) publishInvalidRecords(ctx context.Context, t *tenant) (err error) {
	out, err := publisher.New(publisher.Config{Brokers: []string{r.broker.Addr()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	invalidRecords := t.invalidRecords(r.clock.Now())
	r.accepted += int64(len(invalidRecords))
	_, err = out.PublishContext(ctx, contract.TopicLogs, invalidRecords...)
	return err
}
