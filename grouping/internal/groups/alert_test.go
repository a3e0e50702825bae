package groups_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A desk sets alerts of acme, whose directory tests change.
type desk struct {
	*groups.Alerts
	t         *testing.T
	directory *identity.Directory
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, directory: identity.NewDirectory()}
	d.knows(contract.TypeMemberAdded, `{"organization":"acme","member":"mem_1","name":"Me","role":"developer"}`)
	d.knows(contract.TypeMemberAdded, `{"organization":"other","member":"mem_2","name":"Eve","role":"owner"}`)
	d.knows(contract.TypeWebhookChanged, groupingtest.Webhook)
	d.knows(contract.TypeWebhookChanged, `{"organization":"other","webhook":"whk_2","host":"eve.example","events":["error_alert.fired"],"on":true}`)
	d.Alerts = groupingtest.With(t, func(config *groups.Config) { config.Projects = d.directory }).Alerts
	return d
}

func (d *desk) knows(kind, fact string) {
	d.t.Helper()
	testenv.Must(d.t, d.directory.Apply(kind, []byte(fact)))
}

func (d *desk) deleteWebhook() {
	d.knows(contract.TypeWebhookDeleted, `{"organization":"acme","webhook":"whk_1"}`)
}

func asking(key string) groups.Request {
	return groups.Request{Who: identity.Principal{ID: "usr_1", Organization: "acme", Member: "mem_1"}, Key: key}
}

// toWebhook is a rule that tells the webhook of acme.
func toWebhook() grouping.AlertRule {
	rule := grouping.DefaultAlertRule()
	rule.Name, rule.Webhooks = "Shop", []string{"whk_1"}
	return rule
}

// An alert tells nothing and nobody of another organization.
func TestAlertsTellTheirOrganization(t *testing.T) {
	d := newDesk(t)
	for field, change := range map[string]func(*grouping.AlertRule){
		"webhooks":     func(r *grouping.AlertRule) { r.Webhooks = append(r.Webhooks, "whk_2") },
		"mail_members": func(r *grouping.AlertRule) { r.Members = []string{"mem_2"} },
		"q":            func(r *grouping.AlertRule) { r.Words = []string{"assigned:mem_2"} },
	} {
		rule := toWebhook()
		change(&rule)
		_, err := d.Create(t.Context(), asking(""), "shop", rule)
		if invalid, is := errors.AsType[grouping.Invalid](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if of := d.Reaches("acme", &grouping.AlertRule{}); len(of.Webhooks) > 0 || of.Members > 0 {
		t.Errorf("an alert for all who ask reaches %v", of)
	}
}

// An alert may keep a webhook that was deleted, as others would be told without
// it, but takes none; a request that was answered is answered as before.
func TestAlertsOfDeletedWebhooks(t *testing.T) {
	d := newDesk(t)
	made, err := d.Create(t.Context(), asking("once"), "shop", toWebhook())
	testenv.Must(t, err)
	d.deleteWebhook()
	again, err := d.Create(t.Context(), asking("once"), "shop", toWebhook())
	if err != nil || again.ID != made.ID {
		t.Errorf("sent again: %v, %v", again, err)
	}
	rule := toWebhook()
	rule.Gap = time.Hour
	changed, err := d.Update(t.Context(), asking(""), "shop", made.ID, rule, 1)
	if err != nil || changed.Gap != time.Hour {
		t.Errorf("changed: %v, %v", changed, err)
	}
	_, err = d.Create(t.Context(), asking(""), "shop", toWebhook())
	if invalid, is := errors.AsType[grouping.Invalid](err); !is || invalid.Field != "webhooks" {
		t.Errorf("another one takes it: %v", err)
	}
}

// An alert can be muted whatever it looks for: what is stored is what is checked.
func TestAlertsWithLongWords(t *testing.T) {
	d := newDesk(t)
	d.knows(contract.TypeMemberAdded, `{"organization":"acme","member":"mem_`+strings.Repeat("3", 40)+`","name":"A","role":"developer"}`)
	rule := toWebhook()
	for bytes, taken := range map[int]bool{256 - len(" assigned:mem_") - 40: true, 240: false} {
		rule.Words = []string{strings.Repeat("w", bytes), "assigned:a"}
		made, err := d.Create(t.Context(), asking(""), "shop", rule)
		if _, invalid := errors.AsType[grouping.Invalid](err); invalid == taken || !taken && !invalid {
			t.Errorf("a word of %d bytes: %v", bytes, err)
		}
		if err != nil {
			continue
		}
		if _, err := d.Mute(t.Context(), asking(""), made.ID, time.Now().Add(time.Hour)); err != nil {
			t.Errorf("muted: %v", err)
		}
	}
}
