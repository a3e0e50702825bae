package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type signInPage struct {
	To       string // where the reader wanted to go
	Fields   []ui.Field
	Passkeys bool   // work here
	Provider string // name of the identity provider; "": there is none
	ByOIDC   string // address that leads there
}

func (c *console) showSignIn(w http.ResponseWriter, r *http.Request) error {
	if _, err := identity.Session(c.Credentials, r); err == nil {
		http.Redirect(w, r, destination(r), http.StatusSeeOther)
		return nil
	}
	c.writeSignIn(w, r, http.StatusOK, "", ui.TakeFlash(w, r, map[string]string{
		"signed-out":     "You have signed out.",
		"password-reset": "Your password was set. Sign in with it; passkeys of before work no more.",
	}))
	return nil
}

func (c *console) writeSignIn(w http.ResponseWriter, r *http.Request, status int, email string, flash *ui.Flash) {
	page := signInPage{To: destination(r), Passkeys: c.Registrar.Party != nil, Fields: []ui.Field{
		{Name: "email", Label: "E-mail", Type: "email", Value: email, Autocomplete: "username", Required: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true},
	}}
	if c.Registrar.Provider != nil {
		page.Provider, page.ByOIDC = c.Registrar.Provider.Name, oidcPath+"?to="+url.QueryEscape(page.To)
	}
	c.pages.Write(w, r, status, "sign-in", ui.View{Title: "Sign in", Flash: flash, Bare: true, Data: page})
}

// signIn lets a member in who knows the password. The session is always a new one with a new secret, so a cookie that
// somebody planted before means nothing; a session that the browser had before ends.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	email := tenants.NormalEmail(r.PostForm.Get("email"))
	if wait := c.limit(r, email); wait > 0 {
		c.writeSignIn(w, r, http.StatusTooManyRequests, email, tooMany(w, r, wait))
		return nil
	}
	password := tenants.Password(r.PostForm.Get("password"))
	session, secret, err := c.Registrar.SignIn(r.Context(), c.anonymous(r), email, password)
	if errors.Is(err, registrar.ErrSignIn) {
		c.writeSignIn(w, r, http.StatusUnprocessableEntity, email,
			&ui.Flash{Text: "There is nobody with this e-mail and password. Check both and try again.", Fault: true})
		return nil
	}
	if err != nil {
		return err
	}
	return c.letIn(w, r, session, secret)
}

// letIn leads whoever has signed in to where they wanted to go.
func (c *console) letIn(w http.ResponseWriter, r *http.Request, session tenants.Session, secret tenants.Secret) error {
	return c.letInTo(w, r, session, secret, destination(r))
}

// letInTo gives the browser its new session instead of one that it had before, and leads to a page.
func (c *console) letInTo(w http.ResponseWriter, r *http.Request, session tenants.Session, secret tenants.Secret, to string) error {
	if err := c.endSession(r); err != nil {
		return err
	}
	c.keepSession(w, session, secret)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// keepSession gives the browser the secret of its session, for as long as that lasts unless it is renewed.
func (c *console) keepSession(w http.ResponseWriter, session tenants.Session, secret tenants.Secret) {
	lasts := session.ExpiresAt.Sub(c.Clock()).Round(time.Second)
	http.SetCookie(w, sessionCookie(secret.Reveal(), max(1, int(lasts/time.Second))))
}

// limit counts an attempt, per address it comes from and per address it is about.
func (c *console) limit(r *http.Request, email string) (wait time.Duration) {
	if wait = c.byNetwork.take(c.network(r)); wait > 0 {
		return wait
	}
	return c.byEmail.take(email)
}

// network is where a request comes from, as attempts are counted.
func (c *console) network(r *http.Request) string {
	return httpapi.ClientNetwork(httpapi.ClientAddress(r, c.TrustedProxies)).String()
}

// tooMany says how long to wait. It says the same whether the address is somebody's or not.
func tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) *ui.Flash {
	seconds := int64((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	httpapi.Logger(r.Context()).Warn("too many attempts to prove who one is")
	return &ui.Flash{Text: fmt.Sprintf("There were too many attempts. Wait %d seconds and try again.", seconds), Fault: true}
}

func (c *console) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := c.endSession(r); err != nil {
		return err
	}
	http.SetCookie(w, sessionCookie("", -1))
	ui.SetFlash(w, "signed-out")
	http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
	return nil
}

// endSession ends the session that the browser has, if any.
func (c *console) endSession(r *http.Request) error {
	principal, err := identity.Session(c.Credentials, r)
	if err != nil {
		return nil //nolint:nilerr // there is none, or it has ended
	}
	cookie, err := r.Cookie(identity.SessionCookie)
	if err != nil {
		return err
	}
	request := c.requestOf(r.WithContext(identity.NewContext(r.Context(), principal)))
	return c.Registrar.SignOut(r.Context(), request, principal.ID, contract.CredentialKey(cookie.Value))
}

func sessionCookie(secret string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: identity.SessionCookie, Value: secret, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
