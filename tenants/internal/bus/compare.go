package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Topics are the compacted topics of tenants, as they were read.
type Topics struct {
	Credentials map[string]weirbus.Record // by key
	Facts       map[string]bool           // keys of facts
}

// A comparison compares what topics have with the tables, as of now.
type comparison struct {
	*Publication
	tx        pgx.Tx
	topics    Topics
	published relay.Cursor // what is behind it may be on its way
	now       time.Time
	withdrawn map[string]bool // keys, by topic, that are being withdrawn
}

// Compare returns what the topics lack, or have too much. They were read
// before tx began, and after everything up to a cursor was published.
// again reads them once more, for what they have too much: its tombstone
// may have been published meanwhile.
func (p *Publication) Compare(ctx context.Context, tx pgx.Tx, topics Topics, again func(context.Context) (Topics, error), published relay.Cursor,
	now time.Time) (d relay.Difference, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return d, err
	}
	var unreadable []string
	topics.Credentials, unreadable = readable(topics.Credentials)
	c := comparison{Publication: p, tx: tx, topics: topics, published: published, now: now}
	if c.withdrawn, err = withdrawnKeys(ctx, tx); err != nil {
		return d, err
	}
	surplus, err := c.surplusCredentials(ctx, unreadable)
	if err != nil {
		return d, err
	}
	facts, err := c.surplusFacts(ctx)
	if err != nil {
		return d, err
	}
	if len(surplus)+len(facts) > 0 {
		left, err := again(ctx)
		if err != nil {
			return d, err
		}
		surplus, facts = left.having(surplus), left.having(facts)
	}
	states, err := c.missingCredentials(ctx, surplus)
	if err != nil {
		return d, err
	}
	from, missing, err := c.missingFacts(ctx)
	if err != nil {
		return d, err
	}
	d = relay.Difference{Publish: slices.Concat(surplus, facts, states), GoBack: missing > 0, From: from}
	if len(d.Publish)+missing > 0 {
		d.Lost = fmt.Sprintf("%d states of credentials, %d tombstones of credentials, %d facts, %d tombstones of facts",
			len(states), len(surplus), missing, len(facts))
	}
	return d, nil
}

// having returns the tombstones of what the topics have.
func (t Topics) having(tombstones []relay.Outgoing) []relay.Outgoing {
	return slices.DeleteFunc(tombstones, func(out relay.Outgoing) bool {
		key := out.Message.Metadata[weirbus.KeyMetadata]
		_, credential := t.Credentials[key]
		return !credential && !t.Facts[key]
	})
}

func withdrawnKeys(ctx context.Context, tx pgx.Tx) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `SELECT topic || ' ' || key FROM withdrawals`)
	if err != nil {
		return nil, fmt.Errorf("cannot read what is being withdrawn: %w", err)
	}
	return collectSet(rows)
}

func collectSet(rows pgx.Rows) (map[string]bool, error) {
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set, err
}

// Compared is the marker of a comparison in a start of the process.
func Compared(start string, at time.Time) (*message.Message, error) {
	value, err := json.Marshal(contract.CredentialsCompared{Start: start})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the marker: %w", err)
	}
	attributes := contract.Attributes{
		ID: contract.CredentialsComparedKey + "/" + at.UTC().Format(time.RFC3339Nano), Type: contract.TypeCredentialsCompared, Source: Source, Time: at,
	}
	m := message.NewMessage(attributes.ID, value)
	m.Metadata = attributes.Headers()
	m.Metadata[weirbus.KeyMetadata] = contract.CredentialsComparedKey
	return m, nil
}

// missingFacts returns how many facts the topic lacks, and the place
// before the first of them. The facts of a deletion go with its row.
func (c *comparison) missingFacts(ctx context.Context) (before relay.Cursor, missing int, err error) {
	types := factTypes()
	rows, err := c.tx.Query(ctx, `SELECT name, position FROM events AS e WHERE name = ANY($1) AND position <= $2
		AND (NOT starts_with(stream, $3) OR EXISTS (SELECT FROM deletions d WHERE d.organization = e.organization AND $3 || d.id = e.stream))
		ORDER BY position`, slices.Sorted(maps.Keys(types)), c.published.Position, DeletionStreams)
	if err != nil {
		return before, 0, fmt.Errorf("cannot read which facts there are: %w", err)
	}
	var name string
	var position int64
	_, err = pgx.ForEachRow(rows, []any{&name, &position}, func() error {
		key := fmt.Sprintf("%s/%d", types[name], position)
		if c.topics.Facts[key] || c.withdrawn[contract.TopicTenants+" "+key] {
			return nil
		}
		if missing++; missing == 1 {
			before.Position = position - 1
		}
		return nil
	})
	return before, missing, err
}

// factTypes are the types of facts, by the names of their events.
func factTypes() map[string]string {
	types := map[string]string{}
	for _, event := range tenants.Events() {
		for _, fact := range facts("", event, tenants.Fold(event)) {
			types[tenants.EventName(event)] = fact.kind
		}
	}
	return types
}

// surplusFacts are tombstones of facts without an event: tables of an
// earlier hour may have given its position to another one. That an
// organization was created stays, without its name, until it is forgotten.
func (c *comparison) surplusFacts(ctx context.Context) (surplus []relay.Outgoing, err error) {
	var keys, kinds []string
	var positions []int64
	for key := range c.topics.Facts {
		kind, number, _ := strings.Cut(key, "/")
		position, err := strconv.ParseInt(number, 10, 64)
		if err == nil && kind != contract.TypeOrganizationCreated {
			keys, kinds, positions = append(keys, key), append(kinds, kind), append(positions, position)
		}
	}
	var names, leadTo []string
	types := factTypes()
	for _, event := range tenants.Events() {
		names, leadTo = append(names, tenants.EventName(event)), append(leadTo, types[tenants.EventName(event)])
	}
	rows, err := c.tx.Query(ctx, `SELECT held.key, held.kind FROM unnest($1::text[], $2::text[], $3::bigint[]) AS held (key, kind, position)
		WHERE NOT EXISTS (SELECT FROM events e LEFT JOIN unnest($4::text[], $5::text[]) AS known (name, kind) USING (name)
			WHERE e.position = held.position AND e.name <> 'erased' AND coalesce(known.kind = held.kind, true)) -- that of a later version may lead to it
		ORDER BY held.position, held.key`, keys, kinds, positions, names, leadTo)
	if err != nil {
		return nil, fmt.Errorf("cannot compare facts with the events: %w", err)
	}
	var key, kind string
	_, err = pgx.ForEachRow(rows, []any{&key, &kind}, func() error {
		if !c.withdrawn[contract.TopicTenants+" "+key] {
			surplus = append(surplus, relay.Outgoing{Topic: contract.TopicTenants, Message: factTombstone(kind, key, c.now)})
		}
		return nil
	})
	return surplus, err
}

// unknownFact is the id of the tombstone of a fact that nothing led to.
func unknownFact(key string) string { return key + "/unknown" }

func factTombstone(kind, key string, at time.Time) *message.Message {
	attributes := contract.Attributes{ID: unknownFact(key), Type: kind, Source: Source, Time: at}
	m := message.NewMessage(attributes.ID, nil)
	m.Metadata = attributes.Headers()
	m.Metadata[weirbus.KeyMetadata] = key
	return m
}

// surplusCredentials are tombstones of credentials that nothing led to,
// or whose tombstone was lost, and of unreadable records.
func (c *comparison) surplusCredentials(ctx context.Context, unreadable []string) (surplus []relay.Outgoing, err error) {
	unknown, err := Unknown(ctx, c.tx, c.topics.Credentials, c.now)
	if err != nil {
		return nil, err
	}
	left, err := c.rowless(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range unknown {
		key := m.Metadata[weirbus.KeyMetadata]
		if held, err := stateOf(c.topics.Credentials[key]); err == nil && held.State == contract.CredentialRevoked {
			continue // tables of an earlier hour undo no revocation: only weir resume does
		}
		left[key] = true
	}
	for _, key := range unreadable {
		left[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if !c.withdrawn[contract.TopicCredentials+" "+key] {
			surplus = append(surplus, relay.Outgoing{Topic: contract.TopicCredentials, Message: unknownTombstone(key, c.now)})
		}
	}
	return surplus, nil
}

// things are the streams of which a credential may be in force.
const things = `SELECT organization, 'api-key/' || id AS stream, hash AS key FROM api_keys
	UNION ALL SELECT organization, 'service-token/' || id, hash FROM service_tokens
	UNION ALL SELECT organization, 'session/' || id, hash FROM sessions
	UNION ALL SELECT organization, '` + DeletionStreams + `' || id, CASE project WHEN '' THEN 'organization/' || organization ELSE 'project/' || project END
	            FROM deletions WHERE state <> 'gone'`

// rowless returns the keys of credentials whose thing has no row. A past
// session is forgotten later, and so is a holder that refuses nothing.
func (c *comparison) rowless(ctx context.Context) (map[string]bool, error) {
	var keys, organizations, streams []string
	for key, record := range c.topics.Credentials {
		now, err := stateOf(record)
		if err != nil {
			return nil, err
		}
		if now.isSession() && !now.inForce(c.now) || now.isHolder() && now.State != contract.CredentialRevoked {
			continue
		}
		keys, organizations, streams = append(keys, key), append(organizations, now.stream.Organization), append(streams, now.stream.Name)
	}
	rows, err := c.tx.Query(ctx, `SELECT key FROM unnest($1::text[], $2::text[], $3::text[]) AS held (key, organization, stream)
		WHERE NOT EXISTS (SELECT FROM (`+things+`) AS t WHERE t.organization = held.organization AND t.stream = held.stream)`, keys, organizations, streams)
	if err != nil {
		return nil, fmt.Errorf("cannot compare credentials with the tables: %w", err)
	}
	return collectSet(rows)
}

// missingCredentials are the newest states that the topic lacks, or has
// only older ones of, or has had tombstones of. Holders come first: they
// may refuse the others.
func (c *comparison) missingCredentials(ctx context.Context, tombstones []relay.Outgoing) (states []relay.Outgoing, err error) {
	has := maps.Clone(c.topics.Credentials)
	for _, m := range tombstones {
		delete(has, m.Message.Metadata[weirbus.KeyMetadata])
	}
	wanted, err := c.wantedVersions(ctx)
	if err != nil {
		return nil, err
	}
	behind, err := c.behind(has, wanted)
	if err != nil {
		return nil, err
	}
	for _, stream := range behind {
		newer, err := c.newerStates(ctx, stream, has)
		if err != nil {
			return nil, err
		}
		states = append(states, newer...)
	}
	return states, nil
}

// A wantedVersion is the one that a credential was published at last.
type wantedVersion struct {
	Organization, Stream, Key string
	Version                   int64
}

func (w wantedVersion) stream() eventstore.Stream {
	return eventstore.Stream{Organization: w.Organization, Name: w.Stream}
}

func (c *comparison) wantedVersions(ctx context.Context) ([]wantedVersion, error) {
	rows, err := c.tx.Query(ctx, `SELECT t.organization, t.stream, t.key, e.version FROM (`+things+`) AS t
		CROSS JOIN LATERAL (SELECT version FROM events WHERE organization = t.organization AND stream = t.stream AND name = ANY($1) AND position <= $2
			ORDER BY version DESC LIMIT 1) AS e
		WHERE NOT EXISTS (SELECT FROM sessions s WHERE 'session/' || s.id = t.stream AND s.organization = t.organization AND s.expires_at <= $3)
		ORDER BY starts_with(t.stream, '`+DeletionStreams+`') DESC, t.organization, t.stream`, credentialEvents(), c.published.Position, c.now)
	if err != nil {
		return nil, fmt.Errorf("cannot read which credentials there are: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[wantedVersion])
}

// credentialEvents are the names of events that change credentials.
func credentialEvents() (names []string) {
	for _, event := range tenants.Events() {
		if tenants.PublicationOf(event) == tenants.PublishedCredential {
			names = append(names, tenants.EventName(event))
		}
	}
	return names
}

// behind returns the streams of which the topic has an older state, or
// none. A session may have several secrets: an older one in force, of
// which the session's newest state says nothing else, is looked at too.
func (c *comparison) behind(has map[string]weirbus.Record, wanted []wantedVersion) (streams []eventstore.Stream, err error) {
	late, versions := map[eventstore.Stream]bool{}, map[eventstore.Stream]int64{}
	for _, w := range wanted {
		versions[w.stream()] = w.Version
		record, there := has[w.Key]
		if !there {
			late[w.stream()] = true
		} else if now, err := stateOf(record); err != nil {
			return nil, err
		} else if now.Version < w.Version {
			late[w.stream()] = true
		}
	}
	for _, record := range has {
		now, err := stateOf(record)
		if err != nil {
			return nil, err
		}
		if now.isSession() && now.inForce(c.now) && now.Version < versions[now.stream] {
			late[now.stream] = true
		}
	}
	for _, w := range wanted {
		if late[w.stream()] {
			streams, late[w.stream()] = append(streams, w.stream()), false
		}
	}
	return streams, nil
}

// newerStates are the newest states of a stream's credentials that the
// topic lacks. Sessions that are past are not worth it.
func (c *comparison) newerStates(ctx context.Context, stream eventstore.Stream, has map[string]weirbus.Record) (states []relay.Outgoing, err error) {
	history, err := c.events.ReadOutwardTx(ctx, c.tx, stream)
	if err != nil {
		return nil, err
	}
	newest, err := newestCredentials(history, 0)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		m := newest[key]
		wanted, err := stateOf(weirbus.Record{Key: []byte(key), Value: m.Message.Payload})
		if err != nil || m.Message.Payload == nil || wanted.isSession() && wanted.isPast(c.now) {
			continue
		}
		if record, there := has[key]; there {
			if now, err := stateOf(record); err != nil || now.Version >= wanted.Version {
				continue
			}
		}
		states = append(states, m)
	}
	return states, nil
}

// A recordState is what a record of weir.credentials.v1 says.
type recordState struct {
	contract.Credential
	stream eventstore.Stream
}

func stateOf(record weirbus.Record) (s recordState, err error) {
	if s.stream, s.Version, err = sourceOf(record); err != nil {
		return s, err
	}
	return s, json.Unmarshal(record.Value, &s.Credential)
}

func (s recordState) isSession() bool { return s.Kind == contract.CredentialSession }
func (s recordState) isHolder() bool  { return s.Kind == "" }
func (s recordState) isPast(now time.Time) bool {
	return s.ExpiresAt != nil && !now.Before(*s.ExpiresAt)
}

func (s recordState) inForce(now time.Time) bool {
	return s.State == contract.CredentialActive && !s.isPast(now)
}
