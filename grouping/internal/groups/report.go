package groups

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// A Change is what somebody changed of a project, as the audit shows it.
type Change struct {
	Organization, Project string
	By                    postgres.Author
	Action                string // such as error_rules.set
	Target, Name          string // id and name of what was changed: the project, or what the action names
	First                 string // of many groups: tells it from others of the project at once; empty: it is not about many
	Before, After         Fields
	At                    time.Time
}

// AuthorOf is the author of a request, whom its caller names.
func AuthorOf(r *http.Request, guard *identity.Guard) postgres.Author {
	return postgres.Author{
		Request: httpapi.RequestID(r.Context()), Address: httpapi.AddressText(guard.ClientAddress(r)),
		Client: r.UserAgent(),
	}
}

// Fields are what has changed, by words that people read.
type Fields map[string]string

// Report tells the audit of changes, at the end of their transaction.
type Report func(ctx context.Context, tx pgx.Tx, changes []Change) error

// Actions of the audit. They are stored.
const (
	rulesSet     = "error_rules.set"
	ownersSet    = "error_owners.set"
	settingsSet  = "error_settings.set"
	alertCreated = "error_alert.created"
	alertChanged = "error_alert.changed"
	alertDeleted = "error_alert.deleted"
	mapUploaded  = "error_source_map.uploaded"
	mapDeleted   = "error_source_map.deleted"
)

// tell reports that a request changed something of a project: what it has one of, unless the change names a target.
// It leaves out what is after as it was before.
func (s *store) tell(ctx context.Context, tx pgx.Tx, request Request, project string, change Change) error {
	if change.Before != nil && maps.Equal(change.Before, change.After) {
		return nil
	}
	change.Organization, change.Project, change.By, change.At = request.Who.Organization, project, request.By, s.now()
	change.Target = cmp.Or(change.Target, project)
	return s.report(ctx, tx, []Change{change})
}

func changeOf(action string, alert *postgres.Alert, before, after Fields) Change {
	return Change{Action: action, Target: alert.ID, Name: alert.Name, Before: before, After: after}
}

func changeOfMap(action string, m postgres.SourceMap, before, after Fields) Change {
	return Change{Action: action, Target: m.ID, Name: m.Name, Before: before, After: after}
}

// mapFields are what the audit shows of a source map.
func mapFields(m postgres.SourceMap) Fields {
	return Fields{"release": m.Release, "debug_id": m.DebugID, "size": fmt.Sprintf("%d bytes", m.Size), "sha256": hex.EncodeToString(m.Digest)}
}

// alertFields are what the audit shows of a rule.
func alertFields(rule grouping.AlertRule) Fields {
	said := Fields{
		"name": rule.Name, "when": triggers(rule), "levels": strings.Join(rule.Severities.Names(), ", "), "environments": strings.Join(rule.Environments, ", "),
		"words": strings.Join(rule.Words, " "), "mail_to": strings.Join(slices.Concat(rule.Roles, rule.Members), ", "), "webhooks": strings.Join(rule.Webhooks, ", "),
		"at_most_every": rule.Gap.String(),
		"muted_until":   instant(rule.MutedUntil),
	}
	if h := rule.Hours; !h.IsZero() {
		said["hours"] = Clock(h.From) + " to " + Clock(h.To) + " " + cmp.Or(h.Zone, "UTC")
		for _, day := range h.Days {
			said["hours"] += ", " + day.String()
		}
	}
	return said
}

func triggers(rule grouping.AlertRule) string {
	var said []string
	for _, trigger := range rule.Triggers {
		text := string(trigger)
		switch trigger {
		case grouping.OnNew:
			text += fmt.Sprintf(" from %d", rule.NewFrom)
		case grouping.OnMany:
			text += fmt.Sprintf(" %d per %s", rule.Count, SpanName(rule.Per))
		case grouping.OnUsers:
			text += fmt.Sprintf(" %d per %s", rule.Users, SpanName(rule.UsersPer))
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
