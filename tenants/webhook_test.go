package tenants_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

var facts = []string{"error_group.created", "quota.exhausted"}

func createWebhook() tenants.CreateWebhook {
	return tenants.CreateWebhook{
		ID: "whk_1", Organization: "org_1", URL: "https://hooks.example/weir", Events: []string{"quota.exhausted", "error_group.created"},
		Known: facts, Key: "0a1b2c3d", At: noon,
	}
}

func webhookCreated() tenants.WebhookCreated {
	return tenants.WebhookCreated{
		Webhook: "whk_1", Organization: "org_1", URL: "https://hooks.example/weir", Events: facts, Format: tenants.StandardFormat,
		Secret: tenants.WebhookSecret{Key: "0a1b2c3d", Generation: 1}, At: noon,
	}
}

func webhookRotated() tenants.WebhookRotated {
	return tenants.WebhookRotated{
		Webhook: "whk_1", Secret: tenants.WebhookSecret{Key: "4e5f6071", Generation: 2}, PreviousEnds: noon.Add(24 * time.Hour), At: noon,
	}
}

func creating(change func(*tenants.CreateWebhook)) func(tenants.Webhook) ([]tenants.Event, error) {
	cmd := createWebhook()
	change(&cmd)
	return func(w tenants.Webhook) ([]tenants.Event, error) { return w.Create(cmd) }
}

func TestCreateWebhook(t *testing.T) {
	decide(t, map[string]decision[tenants.Webhook]{
		"a new one": {when: creating(func(*tenants.CreateWebhook) {}), then: []tenants.Event{webhookCreated()}},
		"the same again": {given: []tenants.Event{webhookCreated()}, when: creating(func(*tenants.CreateWebhook) {}),
			fails: tenants.ErrShownOnce},
		"another one by the same key": {given: []tenants.Event{webhookCreated()}, fails: tenants.ErrReused,
			when: creating(func(c *tenants.CreateWebhook) { c.URL = "https://other.example" })},
		"with a user": {when: creating(func(c *tenants.CreateWebhook) { c.URL = "https://a:b@hooks.example" }), faults: []string{"url"}},
		"too long": {when: creating(func(c *tenants.CreateWebhook) { c.URL = "https://hooks.example/" + strings.Repeat("a", 2000) }),
			faults: []string{"url"}},
		"in no format": {when: creating(func(c *tenants.CreateWebhook) { c.Format = "teams" }), faults: []string{"format"}},
		"in another format by the same key": {given: []tenants.Event{webhookCreated()}, fails: tenants.ErrReused,
			when: creating(func(c *tenants.CreateWebhook) { c.Format = tenants.SlackFormat })},
		"for nothing":            {when: creating(func(c *tenants.CreateWebhook) { c.Events = nil }), faults: []string{"events"}},
		"for what there is not":  {when: creating(func(c *tenants.CreateWebhook) { c.Events[1] = "x" }), faults: []string{"events/1"}},
		"for more than there is": {when: creating(func(c *tenants.CreateWebhook) { c.Events = append(facts, "x") }), faults: []string{"events"}},
	})
}

// Where nobody chooses, the address says which format is taken there.
func TestWebhookFormats(t *testing.T) {
	for _, c := range []struct {
		url          string
		chosen, want tenants.WebhookFormat
	}{
		{"https://hooks.slack.com/services/T0/B0/x", "", tenants.SlackFormat}, {"https://discord.com/api/webhooks/1/x/slack", "", tenants.SlackFormat},
		{"https://discord.com/api/webhooks/1/x", "", tenants.StandardFormat}, {"https://hooks.slack.com.evil.example/x", "", tenants.StandardFormat},
		{"https://chat.example/hooks/slack", "", tenants.StandardFormat}, {"https://chat.example/hooks/x", tenants.SlackFormat, tenants.SlackFormat},
		{"https://hooks.slack.com/services/T0/B0/x", tenants.StandardFormat, tenants.StandardFormat},
	} {
		events, err := creating(func(cmd *tenants.CreateWebhook) { cmd.URL, cmd.Format = c.url, c.chosen })(tenants.Webhook{})
		if err != nil || events[0].(tenants.WebhookCreated).Format != c.want {
			t.Errorf("%s, chosen %q: %+v, %v", c.url, c.chosen, events, err)
		}
	}
}

// A webhook that was made before there were formats keeps what its address said.
func TestWebhooksWithoutFormats(t *testing.T) {
	old := webhookCreated()
	old.URL, old.Format = "https://hooks.slack.com/services/T0/B0/x", ""
	other, standard, slack := "https://chat.example/x", tenants.StandardFormat, tenants.SlackFormat
	decide(t, map[string]decision[tenants.Webhook]{
		"as it is": {given: []tenants.Event{old}, when: changing(tenants.ChangeWebhook{URL: &old.URL, Format: &slack})},
		"another address": {given: []tenants.Event{old}, when: changing(tenants.ChangeWebhook{URL: &other}),
			then: []tenants.Event{tenants.WebhookChanged{Webhook: "whk_1", URL: other, Events: facts, Format: slack, At: later}}},
		"another format": {given: []tenants.Event{old}, when: changing(tenants.ChangeWebhook{Format: &standard}),
			then: []tenants.Event{tenants.WebhookChanged{Webhook: "whk_1", URL: old.URL, Events: facts, Format: standard, At: later}}},
		"made again": {given: []tenants.Event{old}, when: creating(func(c *tenants.CreateWebhook) { c.URL = old.URL }), fails: tenants.ErrShownOnce},
	})
}

func changing(cmd tenants.ChangeWebhook) func(tenants.Webhook) ([]tenants.Event, error) {
	cmd.Known, cmd.At = facts, later
	return func(w tenants.Webhook) ([]tenants.Event, error) { return w.Change(cmd) }
}

func TestChangeWebhook(t *testing.T) {
	other, same, bad, on, off := "https://other.example", webhookCreated().URL, "https://a b", true, false
	created, slack, teams := webhookCreated(), tenants.SlackFormat, tenants.WebhookFormat("teams")
	stopped := tenants.WebhookSwitched{Webhook: "whk_1", Reason: "gone", At: noon}
	decide(t, map[string]decision[tenants.Webhook]{
		"another address": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{URL: &other}),
			then: []tenants.Event{tenants.WebhookChanged{Webhook: "whk_1", URL: other, Events: facts, Format: tenants.StandardFormat, At: later}}},
		"other events": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{Events: facts[:1]}),
			then: []tenants.Event{tenants.WebhookChanged{Webhook: "whk_1", URL: created.URL, Events: facts[:1], Format: tenants.StandardFormat, At: later}}},
		"another format": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{Format: &slack}),
			then: []tenants.Event{tenants.WebhookChanged{Webhook: "whk_1", URL: created.URL, Events: facts, Format: slack, At: later}}},
		"no format":       {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{Format: &teams}), faults: []string{"format"}},
		"an empty format": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{Format: new(tenants.WebhookFormat)}), faults: []string{"format"}},
		"as it is":        {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{URL: &same, Events: facts, On: &on})},
		"off": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{On: &off}),
			then: []tenants.Event{tenants.WebhookSwitched{Webhook: "whk_1", At: later}}},
		"on": {given: []tenants.Event{created, stopped}, when: changing(tenants.ChangeWebhook{On: &on}),
			then: []tenants.Event{tenants.WebhookSwitched{Webhook: "whk_1", On: true, At: later}}},
		"wrong": {given: []tenants.Event{created}, when: changing(tenants.ChangeWebhook{URL: &bad, Events: []string{}}),
			faults: []string{"url", "events"}},
		"none":    {when: changing(tenants.ChangeWebhook{URL: &other}), fails: tenants.ErrNotFound},
		"deleted": {given: []tenants.Event{created, tenants.WebhookDeleted{At: noon}}, when: changing(tenants.ChangeWebhook{URL: &other}), fails: tenants.ErrNotFound},
	})
}

// The system switches off what is on, once.
func TestSwitchOffWebhook(t *testing.T) {
	off := func(w tenants.Webhook) ([]tenants.Event, error) { return w.SwitchOff("gone", later) }
	decide(t, map[string]decision[tenants.Webhook]{
		"on":      {given: []tenants.Event{webhookCreated()}, when: off, then: []tenants.Event{tenants.WebhookSwitched{Webhook: "whk_1", Reason: "gone", At: later}}},
		"off":     {given: []tenants.Event{webhookCreated(), tenants.WebhookSwitched{At: noon}}, when: off},
		"deleted": {given: []tenants.Event{webhookCreated(), tenants.WebhookDeleted{At: noon}}, when: off},
	})
}

func TestRotateWebhook(t *testing.T) {
	rotate := func(at time.Time) func(tenants.Webhook) ([]tenants.Event, error) {
		return func(w tenants.Webhook) ([]tenants.Event, error) { return w.Rotate("4e5f6071", at) }
	}
	again := tenants.WebhookRotated{Webhook: "whk_1", Secret: tenants.WebhookSecret{Key: "4e5f6071", Generation: 3},
		PreviousEnds: noon.Add(48 * time.Hour), At: noon.Add(24 * time.Hour)}
	decide(t, map[string]decision[tenants.Webhook]{
		"for the first time": {given: []tenants.Event{webhookCreated()}, when: rotate(noon), then: []tenants.Event{webhookRotated()}},
		"while two are in use": {given: []tenants.Event{webhookCreated(), webhookRotated()}, when: rotate(noon.Add(24*time.Hour - 1)),
			fails: tenants.ErrWebhookRotated},
		"when one is left": {given: []tenants.Event{webhookCreated(), webhookRotated()}, when: rotate(noon.Add(24 * time.Hour)), then: []tenants.Event{again}},
		"none":             {when: rotate(noon), fails: tenants.ErrNotFound},
	})
}

// For a day both secrets sign, the new one first.
func TestSecretsOfAWebhook(t *testing.T) {
	var w tenants.Webhook
	created, rotated := webhookCreated(), webhookRotated()
	w.Apply(created)
	w.Apply(rotated)
	if got := w.Secrets(noon.Add(24*time.Hour - 1)); !slices.Equal(got, []tenants.WebhookSecret{rotated.Secret, created.Secret}) {
		t.Errorf("within the day: %+v", got)
	}
	if got := w.Secrets(noon.Add(24 * time.Hour)); !slices.Equal(got, []tenants.WebhookSecret{rotated.Secret}) {
		t.Errorf("after it: %+v", got)
	}
}

func TestDeleteWebhook(t *testing.T) {
	remove := func(w tenants.Webhook) ([]tenants.Event, error) { return w.Delete(later) }
	deleted := tenants.WebhookDeleted{Webhook: "whk_1", At: later}
	decide(t, map[string]decision[tenants.Webhook]{
		"one":   {given: []tenants.Event{webhookCreated()}, when: remove, then: []tenants.Event{deleted}},
		"again": {given: []tenants.Event{webhookCreated(), deleted}, when: remove, fails: tenants.ErrNotFound},
	})
}
