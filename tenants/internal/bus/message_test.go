package bus

import (
	"cmp"
	"testing"
	"time"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func fold[S any, P eventstore.Folder[S, tenants.Event]](events ...tenants.Event) S {
	var state S
	for _, event := range events {
		P(&state).Apply(event)
	}
	return state
}

// Messages follow the contract: every value, key
// and header, and an id that is the same each time.
func TestMessages(t *testing.T) {
	digest := tenants.SecretDigest{Hash: "5e88", First: "ab12", Last: "9f3e"}
	end := noon.Add(time.Hour)
	issued := tenants.APIKeyIssued{APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Dev,
		Name: "live", Digest: digest, At: noon, ExpiresAt: &end}
	revoked := tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: noon.Add(time.Minute)}
	token := tenants.ServiceTokenIssued{ServiceToken: "tok_1", Organization: tenants.Installation, Name: "operator",
		Scopes: []string{"tenants:admin"}, Digest: digest, At: noon}
	session := tenants.SessionStarted{Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Owner,
		Digest: digest, At: noon, ExpiresAt: end}
	shop := tenants.Deletable{Organization: "org_1", Project: "prj_1"}
	for name, test := range map[string]struct {
		organization string
		event        outgoingEvent
		topic, key   string
		at           string
		value        string
	}{
		"organization": {
			"org_1", organizationCreated(tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Scale, At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","name":"Acme","tier":"scale","created_at":"2026-11-20T12:00:00Z"}`,
		},
		"organization renamed": {
			"org_1", organizationRenamed(tenants.OrganizationRenamed{Organization: "org_1", Name: "Acme & Co", At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","name":"Acme \u0026 Co","renamed_at":"2026-11-20T12:00:00Z"}`,
		},
		"project renamed": {
			"org_1", projectRenamed(tenants.Project{ID: "prj_1", Organization: "org_1"}, tenants.ProjectRenamed{Project: "prj_1", Name: "Store", At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","project":"prj_1","name":"Store","renamed_at":"2026-11-20T12:00:00Z"}`,
		},
		"credential of a session in another role": {
			"org_1", sessionCredentials(fold[tenants.Session](session, tenants.SessionRoleChanged{Session: "ses_1", Role: tenants.Viewer, At: noon.Add(time.Minute)}), 2)[0],
			contract.TopicCredentials, "5e88", "2026-11-20T12:01:00Z",
			`{"kind":"session","id":"ses_1","organization":"org_1","member":"mem_1","scopes":["role:viewer"],"state":"active","expires_at":"2026-11-20T13:00:00Z","version":2,"authenticated_at":"2026-11-20T12:00:00Z"}`,
		},
		"project": {
			"org_1", projectCreated(tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","project":"prj_1","name":"Shop","created_at":"2026-11-20T12:00:00Z"}`,
		},
		"key issued": {
			"org_1", apiKeyIssued(fold[tenants.APIKey](issued)),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","project":"prj_1","api_key":"key_1","environment":"dev","name":"live","issued_at":"2026-11-20T12:00:00Z"}`,
		},
		"key revoked": {
			"org_1", apiKeyRevoked(fold[tenants.APIKey](issued, revoked)),
			contract.TopicTenants, "", "2026-11-20T12:01:00Z",
			`{"organization":"org_1","project":"prj_1","api_key":"key_1","reason":"leaked","revoked_at":"2026-11-20T12:01:00Z"}`,
		},
		"deletion requested": {
			"org_1", deletionRequested(tenants.DeletionRequested{Deletable: shop, At: noon, BeginsAt: end}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","project":"prj_1","requested_at":"2026-11-20T12:00:00Z","begins_at":"2026-11-20T13:00:00Z"}`,
		},
		"deletion cancelled": {
			"org_1", deletionCancelled(tenants.DeletionCancelled{Deletable: shop, At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z", `{"organization":"org_1","project":"prj_1","cancelled_at":"2026-11-20T12:00:00Z"}`,
		},
		"deletion begun": {
			"org_1", deletionBegun(tenants.DeletionBegun{Deletable: tenants.Deletable{Organization: "org_1"}, At: noon, GoneBy: end}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z",
			`{"organization":"org_1","begun_at":"2026-11-20T12:00:00Z","gone_by":"2026-11-20T13:00:00Z"}`,
		},
		"all credentials of a project": {
			"org_1", holderCredential(tenants.Deletion{Deletable: shop, RequestedAt: noon}, 3, noon),
			contract.TopicCredentials, "project/prj_1", "2026-11-20T12:00:00Z", `{"organization":"org_1","project":"prj_1","state":"revoked","version":3}`,
		},
		"all credentials of a project that is back": {
			"org_1", holderCredential(tenants.Deletion{Deletable: shop, RequestedAt: noon, CancelledAt: noon}, 4, noon),
			contract.TopicCredentials, "project/prj_1", "2026-11-20T12:00:00Z", `{"organization":"org_1","project":"prj_1","state":"active","version":4}`,
		},
		"deletion finished": {
			"org_1", deletionFinished(tenants.DeletionFinished{Deletable: shop, At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z", `{"organization":"org_1","project":"prj_1","finished_at":"2026-11-20T12:00:00Z"}`,
		},
		"all credentials of a project that is gone": {
			"org_1", holderCredential(tenants.Deletion{Deletable: shop, RequestedAt: noon, BegunAt: noon, FinishedAt: noon}, 5, noon),
			contract.TopicCredentials, "project/prj_1", "2026-11-20T12:00:00Z", "",
		},
		"credential of a key": {
			"org_1", apiKeyCredential(fold[tenants.APIKey](issued), 1, noon),
			contract.TopicCredentials, "5e88", "2026-11-20T12:00:00Z",
			`{"kind":"api_key","id":"key_1","organization":"org_1","project":"prj_1","environment":"dev","state":"active","expires_at":"2026-11-20T13:00:00Z","version":1}`,
		},
		"credential of a revoked key": {
			"org_1", apiKeyCredential(fold[tenants.APIKey](issued, revoked), 2, noon.Add(time.Minute)),
			contract.TopicCredentials, "5e88", "2026-11-20T12:01:00Z",
			`{"kind":"api_key","id":"key_1","organization":"org_1","project":"prj_1","environment":"dev","state":"revoked","expires_at":"2026-11-20T13:00:00Z","version":2}`,
		},
		"credential of the installation": {
			tenants.Installation, serviceTokenCredential(fold[tenants.ServiceToken](token), 1),
			contract.TopicCredentials, "5e88", "2026-11-20T12:00:00Z",
			`{"kind":"service_token","id":"tok_1","organization":"","scopes":["tenants:admin"],"state":"active","version":1}`,
		},
	} {
		from := recorded{Stream: eventstore.Stream{Organization: test.organization, Name: "x"}, Cursor: 7}
		messages, err := outgoing(from, test.event)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%s: %d messages, %v", name, len(messages), err)
		}
		m := messages[0]
		if m.Topic != test.topic || m.Message.Metadata[weirbus.KeyMetadata] != cmp.Or(test.key, m.Message.UUID) || string(m.Message.Payload) != test.value {
			t.Errorf("%s: on %s under %s:\n got %s\nwant %s", name, m.Topic, m.Message.Metadata[weirbus.KeyMetadata], m.Message.Payload, test.value)
		}
		if m.Message.UUID != test.event.kind+"/7" || m.Cursor.Position != 7 || m.Message.Metadata[contract.HeaderTime] != test.at {
			t.Errorf("%s: id %q, place %v, time %s", name, m.Message.UUID, m.Cursor, m.Message.Metadata[contract.HeaderTime])
		}
		if organization := m.Message.Metadata[contract.HeaderOrganization]; organization != "org_1" && test.organization == "org_1" || organization == tenants.Installation {
			t.Errorf("%s: the event belongs to %q", name, organization)
		}
	}
}

// The wait for a deletion is for what is published of it.
func TestHolderIsAwaitedAsPublished(t *testing.T) {
	for _, of := range []tenants.Deletable{{Organization: "org_1"}, {Organization: "org_1", Project: "prj_1"}} {
		deletion := tenants.Deletion{Deletable: of, RequestedAt: noon}
		if awaited := deletion.Credentials(); len(awaited) != 1 || awaited[0].Hash != holderCredential(deletion, 1, noon).key || !awaited[0].Revoked {
			t.Errorf("%+v: %+v", of, awaited)
		}
	}
}
