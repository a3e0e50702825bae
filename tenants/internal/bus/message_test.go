package bus

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
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
		"api key changed": {
			"org_1", apiKeyChanged(fold[tenants.APIKey](issued, tenants.APIKeyChanged{APIKey: "key_1", Name: "basket", At: noon.Add(time.Minute)}), noon.Add(time.Minute)),
			contract.TopicTenants, "", "2026-11-20T12:01:00Z",
			`{"organization":"org_1","project":"prj_1","api_key":"key_1","name":"basket","changed_at":"2026-11-20T12:01:00Z"}`,
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
		"webhook switched off, without its address": {
			"org_1", webhookChanged("org_1", fold[tenants.Webhook](
				tenants.WebhookCreated{Webhook: "whk_1", Organization: "org_1", URL: "https://hooks.example:8443/secret", Events: []string{"error_alert.fired"}, At: noon},
				tenants.WebhookSwitched{Webhook: "whk_1", At: noon.Add(time.Minute)}), noon.Add(time.Minute)),
			contract.TopicTenants, "", "2026-11-20T12:01:00Z",
			`{"organization":"org_1","webhook":"whk_1","host":"hooks.example","events":["error_alert.fired"],"on":false,"changed_at":"2026-11-20T12:01:00Z"}`,
		},
		"webhook deleted": {
			"org_1", webhookDeleted("org_1", tenants.WebhookDeleted{Webhook: "whk_1", At: noon}),
			contract.TopicTenants, "", "2026-11-20T12:00:00Z", `{"organization":"org_1","webhook":"whk_1","deleted_at":"2026-11-20T12:00:00Z"}`,
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

// A published credential is the domain's state: unitofwork
// waits until the one is read back as the other.
func TestPublishedCredentialsAreTheDomains(t *testing.T) {
	digest := func(hash string) tenants.SecretDigest {
		return tenants.SecretDigest{Hash: hash, First: "ab12", Last: "9f3e"}
	}
	started := tenants.SessionStarted{Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Owner, Digest: digest("5e88"), At: noon,
		ExpiresAt: noon.Add(time.Hour)}
	renewed := func(hash string, after time.Duration) tenants.SessionRenewed {
		at := noon.Add(after)
		return tenants.SessionRenewed{Session: "ses_1", Digest: digest(hash), Salt: "s", At: at, ExpiresAt: at.Add(time.Hour), ReplacedUntil: at.Add(time.Minute)}
	}
	confirmed := tenants.SessionConfirmed{Session: "ses_1", Digest: digest("c0de"), At: noon.Add(10 * time.Second), ExpiresAt: noon.Add(time.Hour),
		ReplacedUntil: noon.Add(70 * time.Second)}
	ended := tenants.SessionEnded{Session: "ses_1", At: noon.Add(20 * time.Second)}
	for name, history := range map[string][]tenants.Event{
		"started":                        {started},
		"renewed":                        {started, renewed("4e10", time.Minute)},
		"renewed twice, long after":      {started, renewed("4e10", time.Minute), renewed("7b2a", time.Hour)},
		"renewed and confirmed at once":  {started, renewed("4e10", time.Second), confirmed},
		"ended":                          {started, ended},
		"renewed, confirmed, then ended": {started, renewed("4e10", time.Second), confirmed, ended},
	} {
		session := fold[tenants.Session](history...)
		if got, want := credentialsOf(sessionCredentials(session, int64(len(history)))...), session.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a session that was %s: published %+v, the domain says %+v", name, got, want)
		}
	}
	for _, revocation := range []tenants.Revocation{{}, {At: noon}} {
		key := tenants.APIKey{ID: "key_1", Organization: "org_1", Digest: digest("5e88"), Revocation: revocation}
		if got, want := credentialsOf(apiKeyCredential(key, 1, noon)), key.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a key: published %+v, the domain says %+v", got, want)
		}
		token := tenants.ServiceToken{ID: "tok_1", Organization: "org_1", Digest: digest("5e88"), Revocation: revocation}
		if got, want := credentialsOf(serviceTokenCredential(token, 1)), token.Credentials(); !slices.Equal(got, want) {
			t.Errorf("a token: published %+v, the domain says %+v", got, want)
		}
	}
}

// credentialsOf is what events publish, in the domain's form.
func credentialsOf(events ...outgoingEvent) (credentials []tenants.Credential) {
	for _, event := range events {
		state := event.value.(contract.Credential).State
		credentials = append(credentials, tenants.Credential{Hash: event.key, Revoked: state == contract.CredentialRevoked})
	}
	return credentials
}

// Secrets of each kind have the form that identity
// requires, and the key by which the contract finds
// them. Both are defined twice, and must not diverge.
func TestSecretsAreWhatOthersExpect(t *testing.T) {
	for issued, expected := range map[string]string{
		tenants.APIKeyPrefix:       identity.APIKeyPrefix,
		tenants.ServiceTokenPrefix: identity.ServiceTokenPrefix,
		tenants.SessionPrefix:      identity.SessionPrefix,
	} {
		secret, err := tenants.NewSecret(issued, rand.Reader)
		testenv.Must(t, err)
		if !identity.WellFormed(expected, secret.Reveal()) {
			t.Errorf("a secret that begins with %q is not well-formed for identity, which expects %q", issued, expected)
		}
		if key := contract.CredentialKey(secret.Reveal()); secret.Digest().Hash != key {
			t.Errorf("%q: kept under %s, looked up under %s", issued, secret.Digest().Hash, key)
		}
		if _, err := tenants.ParseSecret(issued, secret.Reveal()); err != nil {
			t.Errorf("%q: tenants cannot read what it issued: %v", issued, err)
		}
	}
}

// Every event is published, or marked as unpublished: another
// would block all credentials behind it, even revocations.
func TestEveryEventIsPublished(t *testing.T) {
	for _, event := range tenants.Events() {
		r := recorded{Version: 1, Event: event}
		if tenants.PublicationOf(event) == tenants.Unpublished {
			continue
		}
		messages, err := published(r, []recorded{r})
		if err != nil {
			t.Errorf("%T: %v", event, err)
			continue
		}
		isCredential := messages[0].Topic == contract.TopicCredentials
		if want := tenants.PublicationOf(event) == tenants.PublishedCredential; isCredential != want {
			t.Errorf("%T goes to %s first", event, messages[0].Topic)
		}
	}
}

// What is unpublished changes nothing published behind it: it is skipped.
func TestUnpublishedEventsChangeNothing(t *testing.T) {
	streams := streamsOf(samples(t))
	for _, stream := range streams {
		for _, private := range stream.unpublished {
			for _, first := range stream.published {
				for _, last := range stream.published {
					without, with := lastPublished(t, first, last), lastPublished(t, first, private, last)
					if with != without {
						t.Errorf("%T between %T and %T: published is\n%s\nwithout it\n%s", private, first, last, with, without)
					}
				}
			}
		}
	}
	if keys := streams[reflect.TypeFor[*tenants.APIKey]()]; keys == nil || len(keys.unpublished) == 0 || len(keys.published) == 0 {
		t.Errorf("nothing was compared: %+v", keys)
	}
}

// A stream is the samples of events about one kind of thing.
type stream struct{ unpublished, published []tenants.Event }

func streamsOf(events []tenants.Event) map[reflect.Type]*stream {
	streams := map[reflect.Type]*stream{}
	for _, event := range events {
		about := reflect.TypeOf(tenants.Fold(event))
		if streams[about] == nil {
			streams[about] = &stream{}
		}
		if s := streams[about]; tenants.PublicationOf(event) == tenants.Unpublished {
			s.unpublished = append(s.unpublished, event)
		} else {
			s.published = append(s.published, event)
		}
	}
	return streams
}

// samples are events as stored.
func samples(t *testing.T) (events []tenants.Event) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/events/*.json")
	if err != nil || len(files) < len(tenants.Events()) {
		t.Fatalf("there are %d samples of events, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		testenv.Must(t, err)
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
		event, err := tenants.DecodeEvent(name, data)
		testenv.Must(t, err)
		events = append(events, event)
	}
	return events
}

func lastPublished(t *testing.T, events ...tenants.Event) string {
	t.Helper()
	history := make([]recorded, len(events))
	for i, event := range events {
		history[i].Event = event
	}
	messages, err := published(history[len(history)-1], history)
	testenv.Must(t, err)
	var text strings.Builder
	for _, m := range messages {
		fmt.Fprintln(&text, m.Topic, m.Message.UUID, m.Message.Metadata, string(m.Message.Payload))
	}
	return text.String()
}
