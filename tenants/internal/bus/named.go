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

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
)

// A Named is an organization, or else a project or an API key of one, as
// the topics tell of it.
type Named struct {
	Organization, Project, Key string // ids; of a project no Key, of an organization only its own

	Name    string    // empty: nothing tells it
	Tier    string    // of an organization
	At      time.Time // when it was created or issued; zero: nothing tells it
	Deleted bool      // somebody asked for its deletion
	Revoked bool      // of a key

	Hash       string               // of a key; empty: weir.credentials.v1 does not have it
	Credential *contract.Credential // of a key with a Hash
	fact       string               // key of the fact that began it, unless another thing has that key now
}

// ID is its id.
func (n Named) ID() string {
	switch {
	case n.Key != "":
		return n.Key
	case n.Project != "":
		return n.Project
	}
	return n.Organization
}

// Stream is where its events are, or would be.
func (n Named) Stream() eventstore.Stream {
	noun := "organization"
	switch {
	case n.Key != "":
		noun = "api-key"
	case n.Project != "":
		noun = "project"
	}
	return eventstore.Stream{Organization: n.Organization, Name: noun + "/" + n.ID()}
}

// Names are the organizations, projects and keys of the topics of tenants.
// What was withdrawn is not among them. A fact that tables of an earlier
// hour did not lead to still tells the name, as long as the log has it.
type Names struct {
	named map[string]*Named // by id; bounded by the topics
	began map[string]*Named // by the key of the fact; bounded by the topics
	last  int64             // the highest position of an event that the facts are of
}

// NewNames returns none.
func NewNames() *Names { return &Names{named: map[string]*Named{}, began: map[string]*Named{}} }

// All returns them, sorted by id.
func (n *Names) All() (all []Named) {
	for _, id := range slices.Sorted(maps.Keys(n.named)) {
		all = append(all, *n.named[id])
	}
	return all
}

// ApplyFact takes a record of weir.tenants.v1, in order. What can't be read
// tells nothing.
func (n *Names) ApplyFact(record weirbus.Record) {
	key := string(record.Key)
	if at := strings.LastIndexByte(key, '/'); at >= 0 {
		if position, err := strconv.ParseInt(key[at+1:], 10, 64); err == nil {
			n.last = max(n.last, position)
		}
	}
	if len(record.Value) == 0 {
		if record.Header(contract.HeaderID) != unknownFact(key) {
			n.forget(key)
		}
		return
	}
	var fact anyFact
	if json.Unmarshal(record.Value, &fact) != nil || fact.Organization == "" || !isText(string(record.Value)) {
		return
	}
	n.apply(record.Header(contract.HeaderType), key, fact)
}

// An anyFact has the members of all facts about organizations, projects and keys.
type anyFact struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"`
	Name         string    `json:"name"`
	Tier         string    `json:"tier"`
	CreatedAt    time.Time `json:"created_at"`
	IssuedAt     time.Time `json:"issued_at"`
}

func (n *Names) apply(kind, key string, fact anyFact) {
	of := n.get(fact.Organization, fact.Project, fact.APIKey)
	switch kind {
	case contract.TypeOrganizationCreated:
		of.Name, of.Tier, of.At, of.Deleted = fact.Name, fact.Tier, fact.CreatedAt, fact.Name == "" // without a name it was erased
		n.begin(key, of)
	case contract.TypeProjectCreated:
		of.Name, of.At = fact.Name, fact.CreatedAt
		n.begin(key, of)
	case contract.TypeAPIKeyIssued:
		of.Name, of.At = fact.Name, fact.IssuedAt
		n.begin(key, of)
	case contract.TypeOrganizationRenamed, contract.TypeProjectRenamed, contract.TypeAPIKeyChanged:
		of.Name = fact.Name
	case contract.TypeAPIKeyRevoked:
		of.Revoked = true
	case contract.TypeDeletionRequested, contract.TypeDeletionBegun, contract.TypeDeletionFinished:
		of.Deleted = true
	case contract.TypeDeletionCancelled:
		of.Deleted = false
	}
}

// get returns what has some ids, known or not.
func (n *Names) get(organization, project, key string) *Named {
	of := Named{Organization: organization, Project: project, Key: key}
	if n.named[of.ID()] == nil {
		n.named[of.ID()] = &of
	}
	return n.named[of.ID()]
}

// begin notes which fact began a thing. Tables of an earlier hour give
// positions, and with them keys, to other facts.
func (n *Names) begin(key string, of *Named) {
	if before := n.began[key]; before != nil && before != of {
		before.fact = ""
	}
	n.began[key], of.fact = of, key
}

// forget forgets what a withdrawn fact began, but not that it is deleted:
// its facts are withdrawn for that.
func (n *Names) forget(key string) {
	if of := n.began[key]; of != nil && of.fact == key {
		if delete(n.named, of.ID()); of.Deleted {
			n.get(of.Organization, of.Project, of.Key).Deleted = true
		}
	}
	delete(n.began, key)
}

// ApplyCredential takes the newest state of a credential of weir.credentials.v1.
func (n *Names) ApplyCredential(record weirbus.Record) {
	var c contract.Credential // a holder has the same members, but neither kind nor id
	if json.Unmarshal(record.Value, &c) != nil || c.Organization == "" || !isText(string(record.Value)) || !isText(string(record.Key)) {
		return
	}
	switch {
	case c.Kind == contract.CredentialAPIKey && c.ID != "":
		of := n.get(c.Organization, c.Project, c.ID)
		of.Hash, of.Credential = string(record.Key), &c
		of.Revoked = of.Revoked || c.State == contract.CredentialRevoked
	case c.Kind == "" && c.State == contract.CredentialRevoked:
		n.get(c.Organization, c.Project, "").Deleted = true
	}
}

// mostDrawn is how many positions may lie between events and facts: more
// than anybody decides between a backup and its restore.
const mostDrawn = 10_000_000

// Continue has the events of tables of an earlier hour go on behind the
// positions that facts have: a fact's key is its position, and that of
// another one would be taken for it. A role that serves may only draw
// positions, so those between are drawn.
func (n *Names) Continue(ctx context.Context, tx pgx.Tx) error {
	var last int64
	err := tx.QueryRow(ctx, `SELECT CASE WHEN max(position) >= $1 THEN $1 ELSE nextval('events_position_seq') END FROM events`, n.last).Scan(&last)
	if err == nil && n.last-last > mostDrawn {
		return fmt.Errorf("a fact of %s has the position %d, and the events are at %d: no backup is that old", contract.TopicTenants, n.last, last)
	}
	if err == nil && last < n.last {
		_, err = tx.Exec(ctx, `SELECT max(nextval('events_position_seq')) FROM generate_series($1::bigint, $2)`, last+1, n.last)
	}
	if err != nil {
		return fmt.Errorf("cannot continue behind position %d: %w", n.last, err)
	}
	return nil
}

// eventsOf are the names of events that have facts of a kind.
func eventsOf(kind string) (names []string) {
	for name, its := range factTypes() {
		if its == kind {
			names = append(names, name)
		}
	}
	return names
}

// WithdrawBeginning withdraws the fact that began a thing, in favour of the
// one of its readoption, unless it is that of an event that is not published
// yet. tx must act as the system, and hold the lock to append.
func WithdrawBeginning(ctx context.Context, tx pgx.Tx, of Named) error {
	kind, position, _ := strings.Cut(of.fact, "/")
	if of.fact == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO withdrawals (organization, topic, key, type)
		SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT FROM events WHERE position = $5::bigint AND name = ANY($6))`,
		of.Organization, contract.TopicTenants, of.fact, kind, position, eventsOf(kind))
	if err != nil {
		return fmt.Errorf("cannot withdraw %q: %w", of.fact, err)
	}
	return nil
}
