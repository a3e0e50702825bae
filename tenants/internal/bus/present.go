package bus

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
)

// currentMessages are the messages of the event at a place of its
// stream. Credentials have their newest state, not that of the event: if
// history is published again, a revoked key must not be in force until
// its revocation follows. One without a row was forgotten, and stays so.
func (p *Publication) currentMessages(ctx context.Context, tx pgx.Tx, history []recorded, at int) ([]relay.Outgoing, error) {
	r := history[at]
	messages, err := published(r, history[:at+1])
	if err != nil {
		return nil, err
	}
	newest, err := newestCredentials(history, at)
	if err != nil {
		return nil, err
	}
	kept, err := hasRow(ctx, tx, r, history)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		key := m.Message.Metadata[weirbus.KeyMetadata]
		switch {
		case m.Topic != contract.TopicCredentials:
		case !kept:
			messages[i] = tombstone(r, tenants.At(r.Event), key, i+1)
		default:
			messages[i].Message = newest[key].Message
		}
	}
	holders, err := p.deletedHolders(ctx, tx, r, history)
	return append(holders, messages...), err
}

// newestCredentials are the messages of the last events
// of a stream, from one on, that changed each credential.
func newestCredentials(history []recorded, from int) (map[string]relay.Outgoing, error) {
	newest := map[string]relay.Outgoing{}
	for i := from; i < len(history); i++ {
		if history[i].Event.Publication() != tenants.PublishedCredential {
			continue
		}
		messages, err := published(history[i], history[:i+1])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Topic == contract.TopicCredentials {
				newest[m.Message.Metadata[weirbus.KeyMetadata]] = m
			}
		}
	}
	return newest, nil
}

// hasRow reports whether the thing of a stream has a row.
func hasRow(ctx context.Context, tx pgx.Tx, r recorded, history []recorded) (kept bool, err error) {
	var row, id string
	switch s := subject(history).(type) {
	case *tenants.APIKey:
		row, id = `SELECT FROM api_keys WHERE organization = $1 AND id = $2`, s.ID
	case *tenants.ServiceToken:
		row, id = `SELECT FROM service_tokens WHERE organization = $1 AND id = $2`, s.ID
	case *tenants.Session:
		row, id = `SELECT FROM sessions WHERE organization = $1 AND id = $2`, s.ID
	default:
		return true, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (`+row+`)`, r.Stream.Organization, id).Scan(&kept)
	if err != nil {
		return false, fmt.Errorf("cannot find whether %q is kept: %w", r.Stream, err)
	}
	return kept, nil
}

// DeletionStreams begins the names of deletions' streams.
const DeletionStreams = "deletion/"

// deletedHolders are the states of organization and project that
// are deleted: on a new topic they must precede what they hold.
func (p *Publication) deletedHolders(ctx context.Context, tx pgx.Tx, r recorded, history []recorded) (messages []relay.Outgoing, err error) {
	project := ""
	switch s := subject(history).(type) {
	case *tenants.Deletion:
		return nil, nil
	case *tenants.APIKey:
		project = s.Project
	}
	rows, err := tx.Query(ctx, `SELECT id FROM deletions WHERE organization = $1 AND id IN ($1, $2) AND state <> 'cancelled' ORDER BY id`,
		r.Stream.Organization, project)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("cannot find what is deleted of %q: %w", r.Stream.Organization, err)
	}
	for _, id := range ids {
		deletion, err := p.events.ReadOutwardTx(ctx, tx, eventstore.Stream{Organization: r.Stream.Organization, Name: DeletionStreams + id})
		if err != nil {
			return nil, err
		}
		newest, err := newestCredentials(deletion, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range newest {
			m.Cursor = place(r)
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// subject is the state after a history.
func subject(history []recorded) tenants.Subject {
	events := make([]tenants.Event, len(history))
	for i, each := range history {
		events[i] = each.Event
	}
	return tenants.Fold(events...)
}
