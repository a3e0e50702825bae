package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// Pages for people who hold a code.
const (
	WelcomePath = "/console/welcome" // the first owner
	joinPath    = "/console/join"    // who was invited
	ResetPath   = "/console/reset"   // who lost the password
)

// codePage is a form for somebody who holds a code.
type codePage struct {
	Intro  string
	Action string
	Fields []ui.Field
	Button string
}

// codeField takes a code, from the link or pasted.
func codeField(r *http.Request, err error) ui.Field {
	return ui.Field{
		Name: "code", Label: "Code", Value: r.PostForm.Get("code"), Fault: codeFault(err), Autocomplete: "off", Required: true, Code: true,
		Hint: "It is in the link that you were given, behind the #. If it does not stand here by itself, paste it.",
	}
}

// codeFault is why a code is not accepted. Whoever holds a real one learns what became of it; else nobody learns anything.
func codeFault(err error) string {
	switch {
	case errors.Is(err, tenants.ErrCodeUsed):
		return "This code was used already. If that was you, sign in; else ask for another one."
	case errors.Is(err, tenants.ErrCodeRevoked):
		return "This code was taken back. Ask for another one."
	case errors.Is(err, tenants.ErrCodeExpired):
		return "This code has expired. Ask for another one."
	case errors.Is(err, tenants.ErrCode):
		return "This code is not valid. Check that it was copied whole; a newer one may have taken its place. Else ask for another one."
	}
	return ""
}

func (c *console) writeCodePage(w http.ResponseWriter, r *http.Request, status int, title string, page codePage, flash *ui.Flash) {
	c.Write(w, r, status, "code", ui.View{Title: title, Flash: flash, Bare: true, Data: page})
}

// newPasswordIfAny is pages.NewPassword for people who may be in an organization without passwords: their code tells, and nobody
// learns it without.
func newPasswordIfAny(err error) ui.Field {
	field := pages.NewPassword(err)
	field.Required = false
	field.Hint += " Leave it empty if your organization has switched passwords off."
	return field
}

func (c *console) showJoin(w http.ResponseWriter, r *http.Request) error {
	c.writeJoin(w, r, http.StatusOK, nil, nil)
	return nil
}

func (c *console) writeJoin(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	c.writeCodePage(w, r, status, "Join your organization", codePage{
		Intro: "You were invited. Choose the password with which you sign in from now on.", Action: joinPath, Button: "Join",
		Fields: []ui.Field{codeField(r, err), emailField(r, err, "The address that was invited."), nameField(r, err), newPasswordIfAny(err)},
	}, flash)
}

func emailField(r *http.Request, err error, hint string) ui.Field {
	return ui.Field{
		Name: "email", Label: "E-mail", Type: "email", Value: r.PostForm.Get("email"), Fault: pages.FaultOf(err, "email"),
		Autocomplete: "username", Required: true, Hint: hint,
	}
}

func nameField(r *http.Request, err error) ui.Field {
	return ui.Field{
		Name: "name", Label: "Your name", Value: r.PostForm.Get("name"), Fault: pages.FaultOf(err, "name"), Autocomplete: "name",
		MaxLength: 200, Required: true,
	}
}

// newcomerOf is what a form says of whoever sends it.
func newcomerOf(r *http.Request) registrar.Newcomer {
	return registrar.Newcomer{
		Code: r.PostForm.Get("code"), Email: r.PostForm.Get("email"), Name: r.PostForm.Get("name"),
		Password: tenants.Password(r.PostForm.Get("password")),
	}
}

func (c *console) join(w http.ResponseWriter, r *http.Request) error {
	return c.comeIn(w, r, c.writeJoin, func(who registrar.Newcomer) (tenants.Entry, error) {
		return c.Registrar.Join(r.Context(), c.anonymous(r), who)
	})
}

func (c *console) showWelcome(w http.ResponseWriter, r *http.Request) error {
	c.writeWelcome(w, r, http.StatusOK, nil, nil)
	return nil
}

func (c *console) writeWelcome(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	organization := ui.Field{
		Name: "organization", Label: "Organization", Value: r.PostForm.Get("organization"), Fault: pages.FaultOf(err, "organization"),
		Autocomplete: "organization", MaxLength: 200, Required: true, Hint: "Your company or team. You can rename it later.",
	}
	c.writeCodePage(w, r, status, "Welcome to Weir", codePage{
		Intro: "You become the first owner here, and invite the others.", Action: WelcomePath, Button: "Begin",
		Fields: []ui.Field{codeField(r, err), organization, nameField(r, err), emailField(r, err, "With it you sign in."), pages.NewPassword(err)},
	}, flash)
}

func (c *console) welcome(w http.ResponseWriter, r *http.Request) error {
	return c.comeIn(w, r, c.writeWelcome, func(who registrar.Newcomer) (tenants.Entry, error) {
		return c.Registrar.Found(r.Context(), c.anonymous(r), r.PostForm.Get("organization"), who)
	})
}

// comeIn lets somebody in by a code; write shows the form again with what is wrong with it.
func (c *console) comeIn(w http.ResponseWriter, r *http.Request,
	write func(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash),
	use func(who registrar.Newcomer) (tenants.Entry, error)) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	who := newcomerOf(r)
	if wait := c.limit(r, "code "+who.Code); wait > 0 {
		write(w, r, http.StatusTooManyRequests, nil, pages.TooMany(w, r, wait))
		return nil
	}
	entry, err := use(who)
	if pages.IsBusy(err) {
		write(w, r, http.StatusTooManyRequests, nil, pages.Busy(w, r))
		return nil
	}
	if errors.Is(err, registrar.ErrEmailTaken) {
		err = tenants.Invalid{{Field: "email", Detail: "Somebody signs in with this address already, in another organization of this installation.",
			Fix: "If that is you, ask for an invitation to another address."}}
	}
	if pages.IsInvalid(err) || errors.Is(err, tenants.ErrCode) {
		write(w, r, http.StatusUnprocessableEntity, err, nil)
		return nil
	}
	if err != nil {
		return problemOf(err, "code", "")
	}
	if entry.Session.Method == tenants.ByCode {
		return c.letInByCode(w, r, entry)
	}
	return c.letIn(w, r, entry)
}

// letInByCode leads whoever has come in by a code alone to where they can add what they sign in with from then on.
func (c *console) letInByCode(w http.ResponseWriter, r *http.Request, entry tenants.Entry) error {
	if c.Registrar.RelyingParty != nil {
		return c.letInTo(w, r, entry, passkeysPath+"/new")
	}
	return c.letInTo(w, r, entry, pages.AccountPath)
}

func (c *console) showReset(w http.ResponseWriter, r *http.Request) error {
	c.writeReset(w, r, http.StatusOK, nil, nil)
	return nil
}

func (c *console) writeReset(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	c.writeCodePage(w, r, status, "Set a new password", codePage{
		Intro:  "Nobody stays signed in with your account then. Its passkeys are removed: add yours again afterwards, in your account.",
		Action: ResetPath, Button: "Set password",
		Fields: []ui.Field{codeField(r, err), newPasswordIfAny(err)},
	}, flash)
}

func (c *console) reset(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	code := r.PostForm.Get("code")
	if wait := c.limit(r, "code "+code); wait > 0 {
		c.writeReset(w, r, http.StatusTooManyRequests, nil, pages.TooMany(w, r, wait))
		return nil
	}
	entry, err := c.Registrar.ResetPassword(r.Context(), c.anonymous(r), code, tenants.Password(r.PostForm.Get("password")))
	if pages.IsBusy(err) {
		c.writeReset(w, r, http.StatusTooManyRequests, nil, pages.Busy(w, r))
		return nil
	}
	if pages.IsInvalid(err) || errors.Is(err, tenants.ErrCode) {
		c.writeReset(w, r, http.StatusUnprocessableEntity, err, nil)
		return nil
	}
	if err != nil {
		return problemOf(err, "code", "")
	}
	if entry.Session.ID != "" {
		return c.letInByCode(w, r, entry)
	}
	ui.SetFlash(w, "password-reset")
	http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
	return nil
}

// handedOut is a code that is shown once, to pass on.
type handedOut struct {
	For     string // who it is for
	Does    string // what whoever holds it can do
	Link    ui.Code
	Code    ui.Code
	Expires time.Time
	Back    string // address of the page to go on with
}

// writeHandedOut shows a code in the answer to the form that asked for it, and nowhere else.
func (c *console) writeHandedOut(w http.ResponseWriter, r *http.Request, title, page string, code tenants.Secret, shown handedOut) {
	link := c.Origin + page + "#" + code.Reveal()
	shown.Link = ui.Code{ID: "link", Label: "The link", Text: link, Copy: "Copy link", Secret: true}
	shown.Code = ui.Code{ID: "code", Label: "The code", Text: code.Reveal(), Copy: "Copy code", Secret: true}
	c.Write(w, r, http.StatusCreated, "handed-out", ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: shown})
}

// errShownOnce answers a form that was sent again after its code was shown.
func errShownOnce() error {
	return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
		"This was done already, and the code was shown once. If it was lost, send the invitation again: that makes another code.")
}
