package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// TombstonesName names the relay's cursor
// of session tombstones. It is stored.
const TombstonesName = "tenants-forgetting"

// tombstoneDelay is how long a session is kept after its
// latest end: no older record can follow the tombstone,
// and a clock that is a day late admits nobody.
const tombstoneDelay = 24 * time.Hour

// SessionTombstones removes past sessions from weir.credentials.v1, which
// would otherwise keep every sign-in and renewal forever, in the memory
// of every service. Revoked keys stay: their holders get the reason.
type SessionTombstones struct {
	events *events
	clock  func() time.Time
}

// NewSessionTombstones returns the tombstones of the sessions in a store.
func NewSessionTombstones(store *events, clock func() time.Time) *SessionTombstones {
	return &SessionTombstones{events: store, clock: clock}
}

// Read is a relay's source: a tombstone for each secret of
// the past sessions started after a cursor. It ends at the
// first that is not past: later ones rarely end before it.
func (f *SessionTombstones) Read(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	events, err := f.events.ReadAll(ctx, tx, eventstore.Cursor(after.Position), limit)
	if err != nil {
		return nil, err
	}
	var messages []relay.Outgoing
	for _, event := range events {
		started, isSession := event.Event.(tenants.SessionStarted)
		switch {
		case !isSession:
			messages = append(messages, skip(event)...)
			continue
		case f.clock().Before(latestEnd(started).Add(tombstoneDelay)) || len(messages) > limit:
			return messages, nil
		}
		more, err := f.forget(ctx, tx, event)
		if err != nil {
			return nil, fmt.Errorf("cannot forget %q: %w", event.Stream, err)
		}
		messages = append(messages, more...)
	}
	return messages, nil
}

// latestEnd is when a session ends at the latest. The
// first sessions could not be renewed and lack it.
func latestEnd(started tenants.SessionStarted) time.Time {
	if started.EndsAt != nil {
		return *started.EndsAt
	}
	return started.ExpiresAt
}

// forget is a tombstone for each secret that a session ever had.
func (f *SessionTombstones) forget(ctx context.Context, tx pgx.Tx, r recorded) (messages []relay.Outgoing, err error) {
	history, err := f.events.ReadOutwardTx(ctx, tx, r.Stream)
	if err != nil {
		return nil, err
	}
	session, seen := tenants.Session{}, map[string]bool{}
	for _, event := range history {
		session.Apply(event.Event)
		if hash := session.Digest.Hash; !seen[hash] {
			seen[hash] = true
			messages = append(messages, tombstone(r, f.clock(), hash, len(seen)))
		}
	}
	return messages, nil
}

// tombstone is a record without a value: compaction removes
// the key's previous record, and then the tombstone.
func tombstone(r recorded, at time.Time, hash string, number int) relay.Outgoing {
	event := outgoingEvent{kind: contract.TypeCredentialChanged, at: at}
	m := message.NewMessage(fmt.Sprintf("%s/%d/forgotten/%d", event.kind, r.Cursor, number), nil)
	m.Metadata = event.headers(r, m.UUID)
	m.Metadata[weirbus.KeyMetadata] = hash
	return relay.Outgoing{Topic: contract.TopicCredentials, Message: m, Cursor: place(r)}
}

// Forget publishes tombstones of credentials that ended
// long ago: no older state of them can still be published.
func Forget(to *publisher.Publisher, clock func() time.Time) ForgetCredentials {
	return func(ctx context.Context, credentials []EndedCredential) error {
		messages := make([]*message.Message, len(credentials))
		for i, credential := range credentials {
			messages[i] = forgotten(credential, clock())
		}
		if _, err := to.PublishContext(ctx, contract.TopicCredentials, messages...); err != nil {
			return fmt.Errorf("cannot forget %d credentials: %w", len(credentials), err)
		}
		return nil
	}
}

// forgotten is a tombstone, as for sessions; see SessionTombstones.
func forgotten(credential EndedCredential, at time.Time) *message.Message {
	m := message.NewMessage(contract.TypeCredentialChanged+"/"+credential.ID+"/forgotten", nil)
	for name, value := range (contract.Attributes{
		ID: m.UUID, Type: contract.TypeCredentialChanged, Source: Source, Time: at, Organization: credential.Organization,
	}).Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(weirbus.KeyMetadata, credential.Hash)
	return m
}

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

// An EndedCredential is a key or a token to be forgotten.
type EndedCredential struct{ Organization, ID, Hash string }

// ForgetCredentials removes credentials from all services. It is idempotent.
type ForgetCredentials func(ctx context.Context, credentials []EndedCredential) error

// EndedKept is how long an ended credential is
// kept: its users get the reason of the refusal.
const EndedKept = 90 * 24 * time.Hour

// EndedCredentials is a table of keys or tokens, which are
// removed EndedKept after their end. Services forget
// them first: a deleted row could not be found again.
type EndedCredentials struct {
	Table  string
	Bound  string // see prune.Table.Keeps
	Ended  string // when a credential ended, in SQL
	Clock  func() time.Time
	Forget ForgetCredentials
}

// Name implements prune.Table.
func (c EndedCredentials) Name() string { return c.Table }

// Keeps implements prune.Table.
func (c EndedCredentials) Keeps() string { return c.Bound }

// endedBatch is how many are forgotten in one transaction.
const endedBatch = 500

// Prune implements prune.Table.
func (c EndedCredentials) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM %[1]s WHERE %[2]s < $1 LIMIT %[3]d FOR UPDATE SKIP LOCKED)) RETURNING organization, id, hash`, c.Table, c.Ended, endedBatch),
		c.Clock().Add(-EndedKept))
	if err != nil {
		return 0, false, err
	}
	gone, err := pgx.CollectRows(rows, pgx.RowToStructByPos[EndedCredential])
	if err != nil || len(gone) == 0 {
		return 0, false, err
	}
	return int64(len(gone)), len(gone) == endedBatch, c.Forget(ctx, gone)
}

// Oldest implements prune.Table.
func (c EndedCredentials) Oldest(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return at, err
	}
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT created_at FROM %s ORDER BY created_at LIMIT 1`, c.Table)).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
