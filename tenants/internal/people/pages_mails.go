package people

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// mailWords are what a kind of mail is about.
func mailWords(kind tenants.MailKind) string {
	switch kind {
	case tenants.ThresholdMail:
		return "a part of the quota or of a budget is used"
	case tenants.ExhaustedMail:
		return "the quota or a budget is used up, and when logs are accepted again"
	case tenants.StatementMail:
		return "the statement of a period is ready"
	}
	return string(kind)
}

const mailsPath = pages.AccountPath + "/mails"

type mailsPage struct {
	pages.Settings
	Kinds []ui.Choice
	Fault string
}

func (p Pages) showMails(w http.ResponseWriter, r *http.Request) error {
	return p.writeMails(w, r, http.StatusOK, nil)
}

func (p Pages) writeMails(w http.ResponseWriter, r *http.Request, status int, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	page := mailsPage{Settings: shown, Fault: pages.FaultOf(fault, "mails")}
	for _, kind := range tenants.MailKinds() {
		page.Kinds = append(page.Kinds, ui.Choice{Value: string(kind), Text: mailWords(kind), Selected: shown.Member.Receives(kind)})
	}
	p.Write(w, r, status, "mails", ui.View{Title: "Choose your mail", Tabs: pages.Tabs(r, pages.AccountPath), Data: page})
	return nil
}

func (p Pages) chooseMails(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	var wanted []tenants.MailKind
	for _, kind := range r.PostForm["mails"] {
		wanted = append(wanted, tenants.MailKind(kind))
	}
	err := p.Mailings.Choose(r.Context(), p.RequestOf(r), wanted)
	if pages.IsInvalid(err) {
		return p.writeMails(w, r, http.StatusUnprocessableEntity, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "member", pages.CallerOf(r).ID)
	}
	return pages.Done(w, r, "mails-chosen", pages.AccountPath)
}
