package identity

import (
	"cmp"
	"slices"

	"github.com/weirlog/weir/shared/contract"
)

// A Webhook is a webhook of an organization as colleagues know it.
type Webhook struct {
	ID, Host string
	Events   []string // names of the facts that it asks for
	On       bool     // facts are sent to it
}

// MaxWebhooks is how many webhooks an organization may have at most: as many are known here.
const MaxWebhooks = 1000

// webhooks are those of each organization; bounded by the existing
// organizations, and MaxWebhooks each.
type webhooks map[string][]Webhook

func (w webhooks) changed(fact contract.WebhookChanged) {
	known, now := w[fact.Organization], Webhook{fact.Webhook, fact.Host, fact.Events, fact.On}
	if i := w.place(fact.Organization, fact.Webhook); i >= 0 {
		known[i] = now
	} else if len(known) < MaxWebhooks {
		w[fact.Organization] = append(known, now)
	}
}

func (w webhooks) deleted(fact contract.WebhookDeleted) {
	if i := w.place(fact.Organization, fact.Webhook); i >= 0 {
		w[fact.Organization] = slices.Delete(w[fact.Organization], i, i+1)
	}
}

// place returns the place of a webhook, or -1.
func (w webhooks) place(organization, id string) int {
	return slices.IndexFunc(w[organization], func(of Webhook) bool { return of.ID == id })
}

// Webhook returns a webhook of an organization; false for what is foreign,
// unknown or deleted.
func (d *Directory) Webhook(organization, id string) (Webhook, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i := d.webhooks.place(organization, id)
	if i < 0 {
		return Webhook{}, false
	}
	return d.webhooks[organization][i], true
}

// Webhooks returns the webhooks of an organization, sorted by host.
func (d *Directory) Webhooks(organization string) []Webhook {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := slices.Clone(d.webhooks[organization])
	slices.SortFunc(all, func(a, b Webhook) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
	return all
}
