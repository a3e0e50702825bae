package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Mailings decides which mail members get.
// Its errors are those of unitofwork.Writer.
type Mailings struct {
	work  *unitofwork.Writer
	store Store
}

// NewMailings returns the mailings of members.
func NewMailings(work *unitofwork.Writer) *Mailings { return &Mailings{work, NewStore(work.Views)} }

// Choose sets the kinds of mail that the caller, a member, gets.
func (m *Mailings) Choose(ctx context.Context, request unitofwork.Request, wanted []tenants.MailKind) error {
	cmd := tenants.ChooseMails{Wanted: wanted, At: m.work.Now()}
	_, err := unitofwork.Once(ctx, m.work, request, tenants.MailsReceive, stream(request.Caller.Organization, request.Caller.ID),
		func(member tenants.Member) ([]tenants.Event, error) { return member.ChooseMails(cmd) })
	return err
}

// Unsubscribe ends a mailing, in the member's name. It is
// idempotent, also once the member or organization is gone.
func (m *Mailings) Unsubscribe(ctx context.Context, request unitofwork.Request, from mail.Mailing) error {
	member, err := m.store.Member(ctx, pg.Organization(from.Organization), from.Member)
	if err == nil && member.Receives(from.Kind) {
		err = m.unsubscribe(ctx, request.By(member), from)
	}
	if err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return fmt.Errorf("end mail about %q to %q: %w", from.Kind, from.Member, err)
	}
	return nil
}

func (m *Mailings) unsubscribe(ctx context.Context, request unitofwork.Request, from mail.Mailing) error {
	u, err := m.work.Begin(ctx, from.Organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	_, err = unitofwork.Change(ctx, u, stream(from.Organization, from.Member),
		func(member tenants.Member) ([]tenants.Event, error) {
			return member.Unsubscribe(from.Kind, m.work.Now())
		})
	if err != nil {
		return err
	}
	return u.Commit(ctx)
}

// mailWords are what a kind of mail is about.
func mailWords(kind tenants.MailKind) string {
	switch kind {
	case tenants.ThresholdMail:
		return "a part of the quota or of a budget is used"
	case tenants.ExhaustedMail:
		return "the quota or a budget is used up, and when logs are accepted again"
	case tenants.StatementMail:
		return "the statement of a period is ready"
	case tenants.MentionMail:
		return "a note about an error mentions you"
	}
	return string(kind)
}

// mailPages show which mail the reader gets, and change that.
type mailPages struct {
	pages.Set
	mailings *Mailings
}

func (p mailPages) mount(settings chi.Router) {
	settings.Get(mailsPath, p.For(tenants.MailsReceive, p.show))
	settings.Post(mailsPath, p.For(tenants.MailsReceive, p.choose))
}

const mailsPath = pages.AccountPath + "/mails"

type mailsPage struct {
	pages.Settings
	Kinds []ui.Choice
	Fault string
}

func (p mailPages) show(w http.ResponseWriter, r *http.Request) error {
	return p.write(w, r, http.StatusOK, nil)
}

func (p mailPages) write(w http.ResponseWriter, r *http.Request, status int, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	page := mailsPage{Settings: shown, Fault: pages.FaultOf(fault, "mails")}
	for _, kind := range shown.Role.Mails() {
		page.Kinds = append(page.Kinds, ui.Choice{Value: string(kind), Text: mailWords(kind), Selected: shown.Member.Receives(kind)})
	}
	p.Write(w, r, status, "mails", ui.View{Title: "Choose your mail", Tabs: pages.Tabs(r, pages.AccountPath), Data: page})
	return nil
}

func (p mailPages) choose(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	var wanted []tenants.MailKind
	for _, kind := range r.PostForm["mails"] {
		wanted = append(wanted, tenants.MailKind(kind))
	}
	err := p.mailings.Choose(r.Context(), p.RequestOf(r), wanted)
	if pages.IsInvalid(err) {
		return p.write(w, r, http.StatusUnprocessableEntity, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "member", pages.CallerOf(r).ID)
	}
	return pages.Done(w, r, "mails-chosen", pages.AccountPath)
}

// linksPerMinute is how many mail links a client network may open.
const linksPerMinute = 600

// linkPages are the pages behind mail links. They
// need no session: the link names the member.
type linkPages struct {
	pages.Set
	mailings *Mailings
	links    *mail.Links
	limit    *httpapi.AnonymousLimit
}

// read is the mailing that the link ends.
func (p linkPages) read(r *http.Request) (mail.Mailing, error) {
	if err := p.limit.Admit(r); err != nil {
		return mail.Mailing{}, err
	}
	from, err := p.links.Read(r.URL.Query())
	if err != nil {
		return from, httpapi.NewProblem(http.StatusNotFound, httpapi.CodeNotFound,
			"This link is not whole, or was changed. Copy it from the mail once more, or choose your mail in the console, under Your account.")
	}
	return from, nil
}

type unsubscribePage struct {
	About  string
	Action string
	Done   bool
}

// askToUnsubscribe changes nothing: programs that scan mail open links, too.
func (p linkPages) askToUnsubscribe(w http.ResponseWriter, r *http.Request) error {
	from, err := p.read(r)
	if err != nil {
		return err
	}
	p.write(w, r, unsubscribePage{About: mailWords(from.Kind), Action: mail.UnsubscribePath + "?" + r.URL.RawQuery})
	return nil
}

// unsubscribe reads only the link: mail programs send a form of their own.
func (p linkPages) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	from, err := p.read(r)
	if err != nil {
		return err
	}
	if err := p.mailings.Unsubscribe(r.Context(), p.Kit.Anonymous(r), from); err != nil {
		return pages.ProblemOf(err, "member", from.Member)
	}
	p.write(w, r, unsubscribePage{About: mailWords(from.Kind), Done: true})
	return nil
}

func (p linkPages) write(w http.ResponseWriter, r *http.Request, shown unsubscribePage) {
	p.Write(w, r, http.StatusOK, "unsubscribe", ui.View{Title: "Unsubscribe from mail", Bare: true, Data: shown})
}
