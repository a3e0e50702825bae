package people

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// Pages for people who hold a code.
const (
	WelcomePath = "/console/welcome" // for the first owner
	JoinPath    = "/console/join"    // for the invited
	ResetPath   = "/console/reset"   // for a lost password
)

// codePages let in who holds a code.
type codePages struct {
	pages.Set
	codes    *Codes
	entrance Entrance
}

func (p codePages) mount(router chi.Router) {
	open := router.With(p.Protect, p.RequireReady(p.Guard))
	open.Get(WelcomePath, p.Page(p.showWelcome))
	open.Post(WelcomePath, p.Page(p.welcome))
	open.Get(JoinPath, p.Page(p.showJoin))
	open.Post(JoinPath, p.Page(p.join))
	open.Get(ResetPath, p.Page(p.showReset))
	open.Post(ResetPath, p.Page(p.reset))
}

// codePage is a form for the holder of a code.
type codePage struct {
	Intro  string
	Action string
	Fields []ui.Field
	Button string
}

// codeField is the field for a code, from the link or pasted.
func codeField(r *http.Request, err error) ui.Field {
	return ui.Field{
		Name: "code", Label: "Code", Value: r.PostForm.Get("code"), Fault: codeFault(err), Autocomplete: "off", Required: true, Code: true,
		Hint: "It is in the link that you were given, behind the #. If it does not stand here by itself, paste it.",
	}
}

// codeFault is why a code is refused. Only
// the holder of a real one gets the reason.
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

func (p codePages) write(w http.ResponseWriter, r *http.Request, status int, title string, page codePage, flash *ui.Flash) {
	p.Write(w, r, status, "code", ui.View{Title: title, Flash: flash, Bare: true, Data: page})
}

// newPasswordIfAny is newPassword where the organization may
// have no passwords, which only the holder of the code learns.
func newPasswordIfAny(err error) ui.Field {
	field := pages.NewPassword(err)
	field.Required = false
	field.Hint += " Leave it empty if your organization has switched passwords off."
	return field
}

func (p codePages) showJoin(w http.ResponseWriter, r *http.Request) error {
	p.writeJoin(w, r, http.StatusOK, nil, nil)
	return nil
}

func (p codePages) writeJoin(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	p.write(w, r, status, "Join your organization", codePage{
		Intro: "You were invited. Choose the password with which you sign in from now on.", Action: JoinPath, Button: "Join",
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

// registrationOf reads the sender of a form.
func registrationOf(r *http.Request) Registration {
	return Registration{
		Code: r.PostForm.Get("code"), Email: r.PostForm.Get("email"), Name: r.PostForm.Get("name"),
		Password: tenants.Password(r.PostForm.Get("password")),
	}
}

func (p codePages) join(w http.ResponseWriter, r *http.Request) error {
	return p.register(w, r, p.writeJoin, func(who Registration) (tenants.SignInResult, error) {
		return p.codes.Join(r.Context(), p.entrance.Anonymous(r), who)
	})
}

func (p codePages) showWelcome(w http.ResponseWriter, r *http.Request) error {
	p.writeWelcome(w, r, http.StatusOK, nil, nil)
	return nil
}

func (p codePages) writeWelcome(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	organization := ui.Field{
		Name: "organization", Label: "Organization", Value: r.PostForm.Get("organization"), Fault: pages.FaultOf(err, "organization"),
		Autocomplete: "organization", MaxLength: 200, Required: true, Hint: "Your company or team. You can rename it later.",
	}
	p.write(w, r, status, "Welcome to Weir", codePage{
		Intro: "You become the first owner here, and invite the others.", Action: WelcomePath, Button: "Begin",
		Fields: []ui.Field{codeField(r, err), organization, nameField(r, err), emailField(r, err, "With it you sign in."), pages.NewPassword(err)},
	}, flash)
}

func (p codePages) welcome(w http.ResponseWriter, r *http.Request) error {
	return p.register(w, r, p.writeWelcome, func(who Registration) (tenants.SignInResult, error) {
		return p.codes.UseOwnerCode(r.Context(), p.entrance.Anonymous(r), r.PostForm.Get("organization"), who)
	})
}

// register signs somebody in by a code, or redirects to the sign-in
// if they get no session; write shows the form again with its faults.
func (p codePages) register(w http.ResponseWriter, r *http.Request,
	write func(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash),
	use func(who Registration) (tenants.SignInResult, error)) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	who := registrationOf(r)
	if wait := p.entrance.Limit(r, "code "+who.Code); wait > 0 {
		write(w, r, http.StatusTooManyRequests, nil, p.TooMany(w, r, wait))
		return nil
	}
	entry, err := use(who)
	if pages.IsBusy(err) {
		write(w, r, http.StatusTooManyRequests, nil, p.Busy(w, r))
		return nil
	}
	if errors.Is(err, ErrEmailTaken) {
		err = addressTaken
	}
	if pages.IsInvalid(err) || errors.Is(err, tenants.ErrCode) {
		write(w, r, http.StatusUnprocessableEntity, err, nil)
		return nil
	}
	if err != nil {
		return pages.ProblemOf(err, "code", "")
	}
	return p.admit(w, r, entry)
}

// addressTaken is ErrEmailTaken, as a fault of the form.
var addressTaken = tenants.Invalid{{Field: "email", Detail: "Somebody signs in with this address already, in another organization of this installation.",
	Fix: "If that is you, ask for an invitation to another address."}}

// admit signs in by a new session, or redirects to the sign-in if there is none.
func (p codePages) admit(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error {
	if entry.Session.ID == "" {
		ui.SetFlash(w, "password-reset")
		http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
		return nil
	}
	if entry.Session.Method == tenants.ByCode {
		return p.entrance.CompleteSignInByCode(w, r, entry)
	}
	return p.entrance.CompleteSignIn(w, r, entry)
}

func (p codePages) showReset(w http.ResponseWriter, r *http.Request) error {
	p.writeReset(w, r, http.StatusOK, nil, nil)
	return nil
}

func (p codePages) writeReset(w http.ResponseWriter, r *http.Request, status int, err error, flash *ui.Flash) {
	p.write(w, r, status, "Set a new password", codePage{
		Intro:  "Nobody stays signed in with your account then. Its passkeys are removed: add yours again afterwards, in your account.",
		Action: ResetPath, Button: "Set password",
		Fields: []ui.Field{codeField(r, err), newPasswordIfAny(err)},
	}, flash)
}

func (p codePages) reset(w http.ResponseWriter, r *http.Request) error {
	return p.register(w, r, p.writeReset, func(who Registration) (tenants.SignInResult, error) {
		return p.codes.Reset(r.Context(), p.entrance.Anonymous(r), who.Code, who.Password)
	})
}

// issuedCode is a code shown once, to pass on.
type issuedCode struct {
	For     string // its receiver
	Does    string // what its holder can do
	Link    ui.Code
	Code    ui.Code
	Expires time.Time
	Back    string // address of the next page
}

// writeIssuedCode shows a code in the response to its form, and nowhere else.
func writeIssuedCode(p pages.Set, w http.ResponseWriter, r *http.Request, title, page string, code tenants.Secret, shown issuedCode) {
	link := p.Origin + page + "#" + code.Reveal()
	shown.Link = ui.Code{ID: "link", Label: "The link", Text: link, Copy: "Copy link", Secret: true}
	shown.Code = ui.Code{ID: "code", Label: "The code", Text: code.Reveal(), Copy: "Copy code", Secret: true}
	p.Write(w, r, http.StatusCreated, "handed-out", ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: shown})
}

// errShownOnce is the response to a form sent again after its code was shown.
func errShownOnce() error {
	return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
		"This was done already, and the code was shown once. If it was lost, send the invitation again: that makes another code.")
}
