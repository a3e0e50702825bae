package tenantstest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// Noon is the time of all seeded events.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Open returns a fresh schema with the organizations
// org_a and org_b, which have one of everything.
func Open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return seeded(t, pgtest.Open(t, schema.Name, schema.Migrations()...))
}

// OpenOwned is Open as the schema's owner,
// for tests that alter what serving can't.
func OpenOwned(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return seeded(t, pgtest.OpenOwned(t, schema.Name, schema.Migrations()...))
}

func seeded(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		seed(t, projections.NewEvents(pool), name)
	}
	return pool
}

// WebhookKey is the key from which webhooks' secrets are derived.
func WebhookKey() webhook.Keys {
	keys, err := webhook.ParseKeys(httpapi.Secret(strings.Repeat("5a", 32)))
	if err != nil {
		panic(err)
	}
	return keys
}

func seed(t *testing.T, events *unitofwork.Events, name string) {
	t.Helper()
	organization, project := "org_"+name, "prj_"+name
	digest := tenants.SecretDigest{Hash: strings.Repeat(name, 64), First: "ab12", Last: "9f3e"}
	other := tenants.SecretDigest{Hash: strings.Repeat(map[string]string{"a": "c", "b": "d"}[name], 64), First: "cd34", Last: "9f3e"}
	for i, happened := range [][]tenants.Event{
		{tenants.OrganizationCreated{Organization: organization, Name: name, Tier: tenants.Indie, At: Noon}},
		{tenants.ProjectCreated{Project: project, Organization: organization, Name: name, At: Noon}},
		{tenants.APIKeyIssued{APIKey: "key_" + name, Organization: organization, Project: project, Environment: tenants.Dev, Name: name,
			Digest: digest, At: Noon},
			tenants.APIKeyRevoked{APIKey: "key_" + name, Reason: "leaked", At: Noon}},
		{tenants.ServiceTokenIssued{ServiceToken: "tok_" + name, Organization: organization, Name: name, Scopes: []string{"x:y"},
			Digest: digest, At: Noon},
			tenants.ServiceTokenRevoked{ServiceToken: "tok_" + name, At: Noon}},
		{tenants.MemberAdded{Member: "mem_" + name, Organization: organization, Email: name + "@example.com", Name: name,
			Role: tenants.Owner, PasswordHash: "x", At: Noon},
			tenants.MemberRoleChanged{Member: "mem_" + name, Role: tenants.Admin, At: Noon},
			tenants.MemberPasswordChanged{Member: "mem_" + name, PasswordHash: "y", At: Noon},
			tenants.MemberResetCodeIssued{Member: "mem_" + name, Digest: digest, At: Noon, ExpiresAt: Noon}},
		{tenants.MemberAdded{Member: "mem_gone_" + name, Organization: organization, Email: "again@example.com", Name: name,
			Role: tenants.Owner, PasswordHash: "x", At: Noon},
			tenants.MemberRemoved{Member: "mem_gone_" + name, At: Noon}},
		{tenants.InvitationMade{Invitation: "inv_" + name, Organization: organization, Email: "again@example.com",
			Role: tenants.Viewer, By: "mem_" + name, Digest: digest, At: Noon, ExpiresAt: Noon}},
		{tenants.InvitationMade{Invitation: "inv_old_" + name, Organization: organization, Email: "old@example.com",
			Role: tenants.Viewer, By: "mem_" + name, Digest: other, At: Noon, ExpiresAt: Noon},
			tenants.InvitationRevoked{Invitation: "inv_old_" + name, At: Noon}},
		{tenants.PasskeyRegistered{Passkey: "pky_" + name, Organization: organization, Member: "mem_" + name, Name: "Laptop",
			Credential: tenants.PublicCredential{ID: []byte(name), PublicKey: []byte("key"), Transports: []string{"usb"}}, At: Noon},
			tenants.PasskeyUsed{Passkey: "pky_" + name, Counter: 3, At: Noon}, tenants.PasskeySuspected{Passkey: "pky_" + name, Counter: 3, At: Noon}},
		{tenants.SessionStarted{Session: "ses_" + name, Organization: organization, Member: "mem_" + name,
			Role: tenants.Admin, Digest: digest, At: Noon, ExpiresAt: Noon.Add(time.Hour)},
			tenants.SessionRoleChanged{Session: "ses_" + name, Role: tenants.Owner, At: Noon}},
		{tenants.SessionStarted{Session: "ses_over_" + name, Organization: organization, Member: "mem_" + name,
			Role: tenants.Admin, Digest: other, At: Noon, ExpiresAt: Noon.Add(time.Hour)},
			tenants.SessionEnded{Session: "ses_over_" + name, At: Noon}},
		{tenants.WebhookCreated{Webhook: "whk_" + name, Organization: organization, URL: "https://hooks.invalid/" + name,
			Events: []string{"error_group.created"}, Format: tenants.StandardFormat,
			Secret: tenants.WebhookSecret{Key: WebhookKey().Current(), Generation: 1}, At: Noon}},
		{tenants.WebhookCreated{Webhook: "whk_off_" + name, Organization: organization, URL: "https://hooks.example/old",
			Events: []string{"quota.exhausted"}, Format: tenants.StandardFormat,
			Secret: tenants.WebhookSecret{Key: WebhookKey().Current(), Generation: 1}, At: Noon},
			tenants.WebhookChanged{Webhook: "whk_off_" + name, URL: "https://hooks.example/off", Events: []string{"error_group.created"},
				Format: tenants.StandardFormat, At: Noon},
			tenants.WebhookRotated{Webhook: "whk_off_" + name, Secret: tenants.WebhookSecret{Key: WebhookKey().Current(), Generation: 2}, PreviousEnds: Noon, At: Noon},
			tenants.WebhookSwitched{Webhook: "whk_off_" + name, Reason: "failed", At: Noon}},
	} {
		stream := eventstore.Stream{Organization: organization, Name: fmt.Sprint(i)}
		origin := tenants.Origin{Actor: "mem_" + name, Kind: tenants.MemberActor}
		testenv.Must(t, events.Append(t.Context(), stream, 0, origin.Metadata(), happened...))
	}
}
