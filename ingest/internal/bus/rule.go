package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

// SaveRules puts new rules of a project into the outbox, in the transaction
// that makes them true: for replicas, and for the audit.
func SaveRules(ctx context.Context, tx pgx.Tx, c rules.Change) error {
	v := &c.Rules
	before, after := ruletext.Changed(c.Former, v.Version)
	report := contract.ChangeReported{
		Organization: v.Organization, Project: v.Project, Action: "ingest_rules.set", Target: contract.ReportedTarget{Kind: "project", ID: v.Project},
		Actor: v.By, Request: c.Request, Address: c.Address, Client: httpapi.ClipUserAgent(c.Client, contract.MaxClient),
		Before: contract.Reported(before), After: contract.Reported(after), At: v.At,
	}
	return outbox.Save(ctx, tx, []outbox.Fact{
		{Organization: v.Organization, ID: rulesID(v), Type: contract.TypeRulesChanged, At: v.At, Body: encode(newRules(v))},
		{Organization: v.Organization, ID: "ingest_rules/" + rulesID(v), Type: contract.TypeIngestChangeReported, At: v.At, Body: encode(report)},
	})
}

func newRules(v *postgres.Rules) contract.IngestRules {
	return contract.IngestRules{Organization: v.Organization, Project: v.Project, Version: v.Number, Text: v.Text}
}

func rulesID(v *postgres.Rules) string { return v.Project + "/" + strconv.FormatInt(v.Number, 10) }

func encode(fact any) []byte {
	body, err := json.Marshal(fact)
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	return body
}

// ReadOutbox reads the outbox: rules are states on a topic of their own, keyed
// by project, and all else are facts.
func ReadOutbox(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	page, err := Outbox().Read(ctx, tx, after, limit)
	for i := range page {
		if m := page[i].Message; m.Metadata.Get(contract.HeaderType) == contract.TypeRulesChanged {
			project, _, _ := strings.Cut(m.UUID, "/")
			page[i].Topic = contract.TopicRules
			m.Metadata.Set(bus.KeyMetadata, project)
		}
	}
	return page, err
}

// FollowRules returns a reader that keeps a book as in weir.rules.v1. from
// configures it, except Topic, Apply and Marker.
func FollowRules(from state.Config, book *rules.Book, logger *slog.Logger) *state.Reader {
	from.Topic, from.Marker = contract.TopicRules, contract.RulesComparedKey
	from.Apply = func(record bus.Record) error { return applyRules(record, book) }
	return state.NewReader(from, logger)
}

// applyRules ignores types that it does not know: a newer ingest may publish more.
func applyRules(record bus.Record, book *rules.Book) error {
	project := string(record.Key)
	switch {
	case len(record.Value) == 0:
		book.Forget(project)
	case record.Header(contract.HeaderType) == contract.TypeRulesChanged:
		held, err := readRules(record)
		if err != nil {
			return book.Damage(project, err)
		}
		if held.Compared {
			return book.Replace(project, held.Version, held.Text)
		}
		return book.Set(project, held.Version, held.Text)
	}
	return nil
}

func readRules(record bus.Record) (held contract.IngestRules, err error) {
	if err = json.Unmarshal(record.Value, &held); err != nil {
		return held, fmt.Errorf("cannot read the rules of %q: %w", record.Key, err)
	}
	return held, nil
}

// RulesTopic compares weir.rules.v1 with the table that it is published from.
type RulesTopic struct {
	Pool      *pgxpool.Pool
	Publisher *publisher.Publisher
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Compare returns what the topic lacks or has too much. It implements
// relay.Comparisons.Compare.
func (t *RulesTopic) Compare(ctx context.Context, _ relay.Cursor) (d relay.Difference, err error) {
	has, err := t.read(ctx)
	if err != nil {
		return d, err
	}
	var newest []postgres.Rules
	err = pg.InTxAsSystem(ctx, t.Pool, func(tx pgx.Tx) error {
		newest, err = postgres.NewestRules(ctx, tx)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("cannot read the rules of projects: %w", err)
	}
	return t.difference(has, newest), nil
}

// difference has one state for each project, so that readers have some rules of
// it at all times.
func (t *RulesTopic) difference(has map[string]contract.IngestRules, newest []postgres.Rules) (d relay.Difference) {
	for i := range newest {
		v := &newest[i]
		held, there := has[v.Project]
		delete(has, v.Project)
		if there && held.Version == v.Number && held.Text == v.Text {
			continue
		}
		state := newRules(v)
		state.Compared = true
		d.Publish = append(d.Publish, t.outgoing(v.Project, rulesID(v), encode(state)))
	}
	missing := len(d.Publish)
	for project := range has {
		d.Publish = append(d.Publish, t.outgoing(project, project+"/gone", nil))
	}
	if len(d.Publish) > 0 {
		d.Lost = fmt.Sprintf("rules of %d projects, %d tombstones", missing, len(has))
	}
	return d
}

// read returns the newest state of each project on the topic.
func (t *RulesTopic) read(ctx context.Context) (map[string]contract.IngestRules, error) {
	brokers, dialer := t.Publisher.Servers()
	has := map[string]contract.IngestRules{} // bounded by the projects that have had rules
	config := state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicRules}
	return has, state.Once(ctx, config, t.Logger, func(record bus.Record) {
		switch {
		case len(record.Value) == 0:
			delete(has, string(record.Key))
		case record.Header(contract.HeaderType) == contract.TypeRulesChanged:
			has[string(record.Key)], _ = readRules(record) // an unreadable one differs from every row
		}
	})
}

func (t *RulesTopic) outgoing(project, id string, body []byte) relay.Outgoing {
	return relay.Outgoing{Topic: contract.TopicRules, Message: t.message(contract.TypeRulesChanged, project, id, body)}
}

func (t *RulesTopic) message(kind, key, id string, body []byte) *message.Message {
	m := message.NewMessage(id, body)
	m.Metadata = contract.Attributes{ID: id, Type: kind, Source: Source, Time: t.Clock()}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	return m
}

// Mark publishes the marker of a comparison. It implements
// relay.Comparisons.Compared.
func (t *RulesTopic) Mark(ctx context.Context) error {
	id := contract.RulesComparedKey + "/" + t.Clock().UTC().Format(time.RFC3339Nano)
	marker := t.message(contract.TypeRulesCompared, contract.RulesComparedKey, id, encode(contract.RulesCompared{}))
	if _, err := t.Publisher.PublishContext(ctx, contract.TopicRules, marker); err != nil {
		return fmt.Errorf("cannot publish the marker of rules: %w", err)
	}
	return nil
}
