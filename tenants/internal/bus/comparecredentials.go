package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
)

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
		if event.Publication() == tenants.PublishedCredential {
			names = append(names, event.EventName())
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
