package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Unknown returns tombstones for records of weir.credentials.v1 that
// no event led to: the database was restored. Nobody could revoke
// such a key. What events did lead to must be published after them.
// Records that can't be read are unknown, too.
func Unknown(ctx context.Context, tx pgx.Tx, records map[string]weirbus.Record, at time.Time) ([]*message.Message, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	records, unreadable := readable(records)
	var keys, organizations, streams []string
	var versions []int64
	for key, record := range records {
		stream, version, err := sourceOf(record)
		if err != nil {
			return nil, err
		}
		keys, versions = append(keys, key), append(versions, version)
		organizations, streams = append(organizations, stream.Organization), append(streams, stream.Name)
	}
	rows, err := tx.Query(ctx, `SELECT key FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS held (key, organization, stream, version)
		WHERE held.version > coalesce((SELECT max(e.version) FROM events e WHERE e.organization = held.organization AND e.stream = held.stream), 0)
		ORDER BY key`, keys, organizations, streams, versions)
	if err != nil {
		return nil, fmt.Errorf("cannot compare credentials with the events: %w", err)
	}
	unknown, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("cannot compare credentials with the events: %w", err)
	}
	unknown = append(unknown, unreadable...)
	messages := make([]*message.Message, len(unknown))
	for i, key := range unknown {
		messages[i] = unknownTombstone(key, at)
	}
	return messages, nil
}

// readable returns the records that can be read, and the keys of the
// others: readers pass over these, and nothing of tenants led to them.
func readable(records map[string]weirbus.Record) (read map[string]weirbus.Record, unreadable []string) {
	read = maps.Clone(records)
	maps.DeleteFunc(read, func(key string, record weirbus.Record) bool {
		var c contract.Credential
		bad := json.Unmarshal(record.Value, &c) != nil || !isText(key) || !isText(c.Organization+c.Project+c.ID)
		if bad {
			unreadable = append(unreadable, key)
		}
		return bad
	})
	slices.Sort(unreadable)
	return read, unreadable
}

// isText reports whether PostgreSQL takes s as text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// sourceOf is the stream that led to a record, and the version.
func sourceOf(record weirbus.Record) (stream eventstore.Stream, version int64, err error) {
	var c contract.Credential // a holder has the same members, but neither kind nor id
	if err := json.Unmarshal(record.Value, &c); err != nil {
		return stream, 0, fmt.Errorf("cannot read the credential with key %q: %w", record.Key, err)
	}
	stream.Organization = cmp.Or(c.Organization, tenants.Installation)
	switch c.Kind {
	case contract.CredentialAPIKey:
		stream.Name = "api-key/" + c.ID
	case contract.CredentialServiceToken:
		stream.Name = "service-token/" + c.ID
	case contract.CredentialSession:
		stream.Name = "session/" + c.ID
	case "":
		stream.Name = DeletionStreams + cmp.Or(c.Project, c.Organization)
	default:
		return stream, 0, fmt.Errorf("the credential with key %q is a %q, which this version does not publish: take the newer one", record.Key, c.Kind)
	}
	return stream, c.Version, nil
}

func unknownTombstone(key string, at time.Time) *message.Message {
	attributes := contract.Attributes{ID: contract.TypeCredentialChanged + "/" + key + "/unknown", Type: contract.TypeCredentialChanged, Source: Source, Time: at}
	m := message.NewMessage(attributes.ID, nil)
	for name, value := range attributes.Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(weirbus.KeyMetadata, key)
	return m
}
