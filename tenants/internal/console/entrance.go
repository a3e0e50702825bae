package console

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An Entrance lets browsers in whose members came by a code: it implements people.Entrance.
type Entrance struct{ console *console }

// Entrance is that of the pages.
func (c *console) Entrance() Entrance { return Entrance{c} }

// Limit counts an attempt under a name, or says how long to wait for the next one.
func (e Entrance) Limit(r *http.Request, name string) (wait time.Duration) {
	return e.console.limit(r, name)
}

// Anonymous is a request of somebody who is not known yet.
func (e Entrance) Anonymous(r *http.Request) unitofwork.Request { return e.console.anonymous(r) }

// LetIn leads whoever has come in to where they wanted to go.
func (e Entrance) LetIn(w http.ResponseWriter, r *http.Request, entry tenants.Entry) error {
	return e.console.letIn(w, r, entry)
}

// LetInByCode leads whoever has come in by a code alone to where they can add what they sign in with from then on.
func (e Entrance) LetInByCode(w http.ResponseWriter, r *http.Request, entry tenants.Entry) error {
	if e.console.Registrar.RelyingParty != nil {
		return e.console.letInTo(w, r, entry, passkeysPath+"/new")
	}
	return e.console.letInTo(w, r, entry, pages.AccountPath)
}
