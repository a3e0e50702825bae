package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
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
	if _, err := c.Guard.Session(r); err == nil {
		http.Redirect(w, r, pages.Destination(r), http.StatusSeeOther)
		return nil
	}
	c.writeSignIn(w, r, http.StatusOK, "", ui.TakeFlash(w, r, map[string]string{
		"signed-out":     "You have signed out.",
		"password-reset": "Your password was set. Sign in with it; passkeys of before work no more.",
	}))
	return nil
}

func (c *console) writeSignIn(w http.ResponseWriter, r *http.Request, status int, email string, flash *ui.Flash) {
	page := signInPage{To: pages.Destination(r), Passkeys: c.Registrar.RelyingParty != nil, Fields: []ui.Field{
		{Name: "email", Label: "E-mail", Type: "email", Value: email, Autocomplete: "username", Required: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true},
	}}
	if c.Registrar.Provider != nil {
		page.Provider, page.ByOIDC = c.Registrar.Provider.Name, oidcPath+"?to="+url.QueryEscape(page.To)
	}
	c.Write(w, r, status, "sign-in", ui.View{Title: "Sign in", Flash: flash, Bare: true, Data: page})
}

// signIn lets a member in who knows the password. The session is always a new one with a new secret, so a cookie that
// somebody planted before means nothing; a session that the browser had before ends.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	email := tenants.NormalEmail(r.PostForm.Get("email"))
	request, err := c.recognized(r, email)
	known := request.Device.Known()
	if err == nil {
		if wait := c.limitSignIn(r, request.Device, email); wait > 0 {
			c.metrics.signIn(outcomeLimited, known)
			c.Failures.Refused(email, c.network(r))
			httpapi.Logger(r.Context()).Warn("a sign-in was refused: there were too many attempts", slog.String("address", addressHash(email)),
				slog.String("network", c.network(r)), slog.Bool("known_device", known))
			c.writeSignIn(w, r, http.StatusTooManyRequests, email, pages.TooMany(w, r, wait))
			return nil
		}
	}
	var entry tenants.Entry
	if err == nil {
		entry, err = c.Registrar.SignIn(r.Context(), request, email, tenants.Password(r.PostForm.Get("password")))
	}
	switch {
	case errors.Is(err, registrar.ErrSignIn):
		c.metrics.signIn(outcomeWrong, known)
		c.Failures.Wrong(email, c.network(r))
		httpapi.Logger(r.Context()).Warn("a sign-in failed", slog.String("address", addressHash(email)),
			slog.String("network", c.network(r)), slog.Bool("known_device", known))
		c.writeSignIn(w, r, http.StatusUnprocessableEntity, email,
			&ui.Flash{Text: "There is nobody with this e-mail and password. Check both and try again.", Fault: true})
		return nil
	case errors.Is(err, registrar.ErrPasswordsOff):
		c.metrics.signIn(outcomeOff, known)
		c.writeSignIn(w, r, http.StatusUnprocessableEntity, email, &ui.Flash{Fault: true, Text: "Your organization has switched passwords off. " +
			"Sign in with a passkey, or by the identity provider. If you can do neither, ask an owner or admin for a link that lets you in."})
		return nil
	case pages.IsBusy(err):
		c.metrics.signIn(outcomeBusy, known)
		c.writeSignIn(w, r, http.StatusTooManyRequests, email, pages.Busy(w, r))
		return nil
	case err != nil:
		return err
	}
	c.metrics.signIn(outcomeIn, known)
	return c.letIn(w, r, entry)
}

// addressHash stands for an e-mail address in the log: whoever knows the address finds it, nobody reads it.
func addressHash(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:8])
}

// letIn leads whoever has signed in to where they wanted to go.
func (c *console) letIn(w http.ResponseWriter, r *http.Request, entry tenants.Entry) error {
	return c.letInTo(w, r, entry, pages.Destination(r))
}

// letInTo gives the browser its new session instead of one that it had before, and leads to a page.
func (c *console) letInTo(w http.ResponseWriter, r *http.Request, entry tenants.Entry, to string) error {
	if err := c.endSession(r); err != nil {
		return err
	}
	c.keepSession(w, entry.Session, entry.Secret)
	keepDevices(w, entry.Devices)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// keepSession gives the browser the secret of its session, for as long as that lasts unless it is renewed.
func (c *console) keepSession(w http.ResponseWriter, session tenants.Session, secret tenants.Secret) {
	lasts := session.ExpiresAt.Sub(c.Clock()).Round(time.Second)
	http.SetCookie(w, pages.SessionCookie(secret.Reveal(), max(1, int(lasts/time.Second))))
}

// limitSignIn counts an attempt to sign in: by the device where it is the member's, and like a stranger's otherwise.
func (c *console) limitSignIn(r *http.Request, device tenants.Device, email string) (wait time.Duration) {
	if device.Known() {
		return c.byDevice.take(device.Hash)
	}
	return c.limit(r, email)
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

func (c *console) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := c.endSession(r); err != nil {
		return err
	}
	http.SetCookie(w, pages.SessionCookie("", -1))
	ui.SetFlash(w, "signed-out")
	http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
	return nil
}

// endSession ends the session that the browser has, if any.
func (c *console) endSession(r *http.Request) error {
	principal, err := c.Guard.Session(r)
	if err != nil {
		return nil //nolint:nilerr // there is none, or it has ended
	}
	request := c.requestOf(r.WithContext(identity.NewContext(r.Context(), principal)))
	return c.Registrar.SignOut(r.Context(), request, principal.ID)
}
