package people

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unsubscribe"
)

// linksPerMinute is how many mail links a client network may open.
const linksPerMinute = 600

// linkPages are the pages behind mail links. They
// need no session: the link names the member.
type linkPages struct {
	Pages
	links *unsubscribe.Links
	limit *httpapi.AnonymousLimit
}

// MountLinks adds the page of mail links.
func (p Pages) MountLinks(router chi.Router, links *unsubscribe.Links) {
	behind := linkPages{p, links, httpapi.NewAnonymousLimit(linksPerMinute, p.TrustedProxies, p.Clock)}
	open := router.With(p.Protect, p.RequireReady(p.Guard))
	open.Get(unsubscribe.Path, p.Page(behind.askToUnsubscribe))
	open.Post(unsubscribe.Path, p.Page(behind.unsubscribe))
}

// read is the mailing that the link ends.
func (p linkPages) read(r *http.Request) (unsubscribe.Mailing, error) {
	if err := p.limit.Admit(r); err != nil {
		return unsubscribe.Mailing{}, err
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
	p.write(w, r, unsubscribePage{About: mailWords(from.Kind), Action: unsubscribe.Path + "?" + r.URL.RawQuery})
	return nil
}

// unsubscribe reads only the link: mail programs send a form of their own.
func (p linkPages) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	from, err := p.read(r)
	if err != nil {
		return err
	}
	if err := p.Mailings.Unsubscribe(r.Context(), p.Kit.Anonymous(r), from); err != nil {
		return pages.ProblemOf(err, "member", from.Member)
	}
	p.write(w, r, unsubscribePage{About: mailWords(from.Kind), Done: true})
	return nil
}

func (p linkPages) write(w http.ResponseWriter, r *http.Request, shown unsubscribePage) {
	p.Write(w, r, http.StatusOK, "unsubscribe", ui.View{Title: "Mail about your account", Bare: true, Data: shown})
}
