package notifications

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

const idPrefix = "whk_"

// ErrNotConfigured means that the installation
// has no keys to derive secrets from.
var ErrNotConfigured = errors.New("the installation has no WEIR_WEBHOOK_KEYS")

// Organizations finds organizations that a caller may access.
type Organizations interface {
	Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error)
}

// A Service decides about webhooks. Its errors are those of
// unitofwork.Writer, and ErrNotConfigured.
type Service struct {
	work          *unitofwork.Writer
	store         Store
	organizations Organizations
	keys          webhook.Keys
	client        *webhook.Client
}

// NewService returns a service. client defines which addresses may be called.
func NewService(work *unitofwork.Writer, organizations Organizations, keys webhook.Keys, client *webhook.Client) *Service {
	return &Service{work, NewStore(work.Views), organizations, keys, client}
}

// Configured reports whether webhooks can be used.
func (s *Service) Configured() bool { return s.keys.Current() != "" }

// facts are the names of all facts.
func facts() (names []string) {
	for _, fact := range contract.Notifications() {
		names = append(names, fact.Name)
	}
	return names
}

// A NewWebhook is a requested webhook.
type NewWebhook struct {
	Organization string
	URL          string
	Events       []string
	Format       tenants.WebhookFormat // empty: as the address says
}

// Create creates a webhook of an organization that the
// caller may access. Only this call returns its secret.
func (s *Service) Create(ctx context.Context, request unitofwork.Request, wanted NewWebhook) (w tenants.Webhook, secret httpapi.Secret, err error) {
	if !s.Configured() {
		return w, "", ErrNotConfigured
	}
	cmd := tenants.CreateWebhook{
		Organization: wanted.Organization, URL: wanted.URL, Events: wanted.Events, Format: wanted.Format, Known: facts(), Key: s.keys.Current(), At: s.work.Now(),
		ID: s.work.NewID(request, idPrefix, wanted.Organization),
	}
	if err := s.check(cmd.Check(), &wanted.URL); err != nil {
		return w, "", err
	}
	if _, err := s.organizations.Organization(ctx, request.Caller, cmd.Organization); err != nil {
		return w, "", err
	}
	w, err = unitofwork.CreateOnce(ctx, s.work, request, tenants.WebhooksManage, stream(cmd.Organization, cmd.ID),
		func(w tenants.Webhook) ([]tenants.Event, error) { return w.Create(cmd) }, unitofwork.Counted{Count: count, As: []tenants.Countable{tenants.CountWebhooks}})
	if err != nil {
		return w, "", err
	}
	secret, err = s.secret(w)
	return w, secret, err
}

// check adds the fault of an address that can't be called to a command's.
func (s *Service) check(err error, address *string) error {
	var invalid tenants.Invalid
	if err != nil && !errors.As(err, &invalid) {
		return err
	}
	faulty := false
	for _, fault := range invalid {
		faulty = faulty || fault.Field == "url"
	}
	if address != nil && !faulty && s.client.CheckURL(*address) != nil {
		invalid = append(invalid, tenants.BadWebhookURL(*address))
	}
	if len(invalid) > 0 {
		return invalid
	}
	return nil
}

func (s *Service) secret(w tenants.Webhook) (httpapi.Secret, error) {
	return s.keys.Secret(webhook.SecretName{Key: w.Secret.Key, Endpoint: w.ID, Generation: w.Secret.Generation})
}

// Change changes a webhook that the caller
// may access, or switches it off or on.
func (s *Service) Change(ctx context.Context, request unitofwork.Request, of Ref, wanted tenants.ChangeWebhook) (Listed, error) {
	asked := action{"change", of, wanted}
	wanted.Known, wanted.At = facts(), s.work.Now()
	if err := s.check(wanted.Check(), wanted.URL); err != nil {
		return Listed{}, err
	}
	changed, _, err := s.decide(ctx, request, asked, func(w tenants.Webhook) ([]tenants.Event, error) { return w.Change(wanted) })
	return changed, err
}

// Rotate replaces the secret of a webhook that the caller may access.
// Only this call returns it: repeated, it fails with ErrShownOnce.
func (s *Service) Rotate(ctx context.Context, request unitofwork.Request, of Ref) (rotated Listed, secret httpapi.Secret, err error) {
	if !s.Configured() {
		return rotated, "", ErrNotConfigured
	}
	rotated, again, err := s.decide(ctx, request, action{Verb: "rotate", Of: of},
		func(w tenants.Webhook) ([]tenants.Event, error) { return w.Rotate(s.keys.Current(), s.work.Now()) })
	switch {
	case err != nil:
		return rotated, "", err
	case again:
		return rotated, "", tenants.ErrShownOnce
	}
	secret, err = s.secret(rotated.Webhook)
	return rotated, secret, err
}

// Delete ends a webhook that the caller may access,
// removes its deliveries, and returns it as it was.
func (s *Service) Delete(ctx context.Context, request unitofwork.Request, of Ref) (Listed, error) {
	deleted, _, err := s.decide(ctx, request, action{Verb: "delete", Of: of},
		func(w tenants.Webhook) ([]tenants.Event, error) { return w.Delete(s.work.Now()) })
	return deleted, err
}

// decide returns the webhook as it is then,
// and whether that was answered before.
func (s *Service) decide(ctx context.Context, request unitofwork.Request, asked action,
	decide func(tenants.Webhook) ([]tenants.Event, error)) (decided Listed, again bool, err error) {
	o, err := begin(ctx, s.work, request, asked)
	if err != nil {
		return decided, false, err
	}
	defer o.Rollback(ctx)
	if again, err = o.answered(ctx, &decided); err != nil || again {
		return decided, again, err
	}
	if decided, err = NewStore(o.Reader()).Webhook(ctx, pg.Organization(asked.Of.Organization), asked.Of); err != nil {
		return decided, false, err
	}
	if decided.Webhook, err = unitofwork.Change(ctx, o.Unit, stream(asked.Of.Organization, asked.Of.ID), decide); err != nil {
		return decided, false, err
	}
	return decided, false, o.keepAnswer(ctx, decided)
}

// Webhook returns a webhook of an organization that the caller may access.
func (s *Service) Webhook(ctx context.Context, caller tenants.Caller, of Ref) (Listed, error) {
	if !caller.CanAccess(of.Organization) || !tenants.IsID(of.ID) {
		return Listed{}, tenants.ErrNotFound
	}
	return s.store.Webhook(ctx, pg.Organization(caller.Organization), of)
}

// List lists the webhooks of an organization that the caller may access.
func (s *Service) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]Listed, error) {
	if _, err := s.organizations.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return s.store.Webhooks(ctx, pg.Organization(caller.Organization), organization, after, limit)
}

// Capacity is how many webhooks the caller's organization has, and may have.
func (s *Service) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return s.work.Capacity(ctx, caller, tenants.CountWebhooks, count)
}

func stream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "webhook", id)
}
