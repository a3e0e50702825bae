package signin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// browsers are the sessions of browsers: how they get one, keep it and end it.
type browsers struct {
	kit      *pages.Kit
	sessions *Sessions
}

// Anonymous is a request before authentication, maybe from a known browser.
func (b *browsers) Anonymous(r *http.Request) unitofwork.Request {
	request := b.kit.Anonymous(r)
	request.Devices = devicesOf(r)
	return request
}

// requestOf is a form's request, maybe from a known browser.
func (b *browsers) requestOf(r *http.Request) unitofwork.Request {
	request := b.kit.RequestOf(r)
	request.Devices = devicesOf(r)
	return request
}

// signInPages are the pages of signing in by password, which show the other ways, too.
type signInPages struct {
	pages.Set
	browsers  *browsers
	limits    *limits
	sessions  *Sessions
	passwords *Passwords
	passkeys  *Passkeys
	provider  *Provider
	failures  *Failures
	lookups   *fairshare.Limiter // of devices
	metrics   *metrics
}

type signInPage struct {
	To       string // destination
	Fields   []ui.Field
	Passkeys bool   // can be used
	Provider string // name of the identity provider; "": none
	ByOIDC   string // its address
}

func (p *signInPages) show(w http.ResponseWriter, r *http.Request) error {
	if _, err := p.Guard.Session(r); err == nil {
		http.Redirect(w, r, pages.Destination(r), http.StatusSeeOther)
		return nil
	}
	p.write(w, r, http.StatusOK, "", ui.TakeFlash(w, r, map[string]string{
		"signed-out":     "You have signed out.",
		"password-reset": "Your password was set. Sign in with it. Your old passkeys no longer work.",
	}))
	return nil
}

func (p *signInPages) write(w http.ResponseWriter, r *http.Request, status int, email string, flash *ui.Flash) {
	page := signInPage{To: pages.Destination(r), Passkeys: p.passkeys.Usable(), Fields: []ui.Field{
		{Name: "email", Label: "E-mail", Type: "email", Value: email, Autocomplete: "username", Required: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true},
	}}
	if p.provider.Usable() {
		page.Provider, page.ByOIDC = p.provider.Name(), oidcPath+"?to="+url.QueryEscape(page.To)
	}
	p.Write(w, r, status, "sign-in", ui.View{Title: "Sign in", Flash: flash, Bare: true, Data: page})
}

// signIn signs a member in by password. The session is
// always new, with a new secret, so a planted cookie
// has no effect; the browser's previous session ends.
func (p *signInPages) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	email := tenants.NormalEmail(r.PostForm.Get("email"))
	request, err := p.recognized(r, email)
	if err != nil {
		return p.refuse(w, r, request.Device, email, err)
	}
	if wait := p.limits.signIn(r, request.Device, email); wait > 0 {
		p.delay(w, r, request.Device, email, wait)
		return nil
	}
	entry, err := p.passwords.SignIn(r.Context(), request, email, tenants.Password(r.PostForm.Get("password")))
	if err != nil {
		return p.refuse(w, r, request.Device, email, err)
	}
	p.metrics.signIn(outcomeIn, request.Device.Known())
	return p.browsers.CompleteSignIn(w, r, entry)
}

// delay answers an attempt that came after too many others.
func (p *signInPages) delay(w http.ResponseWriter, r *http.Request, device tenants.Device, email string, wait time.Duration) {
	p.metrics.signIn(outcomeLimited, device.Known())
	p.failures.Refused(email, p.limits.network(r))
	p.warn(r, "a sign-in was refused: there were too many attempts", device, email)
	p.write(w, r, http.StatusTooManyRequests, email, p.TooMany(w, r, wait))
}

// refuse answers an attempt that failed. It
// returns an error that is not the sender's.
func (p *signInPages) refuse(w http.ResponseWriter, r *http.Request, device tenants.Device, email string, err error) error {
	switch {
	case errors.Is(err, ErrSignIn):
		p.metrics.signIn(outcomeWrong, device.Known())
		p.failures.Wrong(email, p.limits.network(r))
		p.warn(r, "a sign-in failed", device, email)
		p.write(w, r, http.StatusUnprocessableEntity, email,
			&ui.Flash{Text: "There is nobody with this e-mail and password. Check both and try again.", Fault: true})
	case errors.Is(err, ErrPasswordsOff):
		p.metrics.signIn(outcomeOff, device.Known())
		p.write(w, r, http.StatusUnprocessableEntity, email, &ui.Flash{Fault: true, Text: "Your organization has switched passwords off. " +
			"Sign in with a passkey, or by the identity provider. If you can do neither, ask an owner or admin for a link that lets you in."})
	case pages.IsBusy(err):
		p.metrics.signIn(outcomeBusy, device.Known())
		p.write(w, r, http.StatusTooManyRequests, email, p.Busy(w, r))
	default:
		return err
	}
	return nil
}

// warn logs an attempt to sign in.
func (p *signInPages) warn(r *http.Request, text string, device tenants.Device, email string) {
	httpapi.Logger(r.Context()).Warn(text, slog.String("address", addressHash(email)),
		slog.String("network", p.limits.network(r)), slog.Bool("known_device", device.Known()))
}

// addressHash replaces an e-mail address in the
// log: an address can be searched, but not read.
func addressHash(email string) string {
	sum := sha256.Sum256([]byte(email))
	return hex.EncodeToString(sum[:8])
}

// CompleteSignIn redirects a signed-in person to their destination.
func (b *browsers) CompleteSignIn(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error {
	return b.start(w, r, entry, pages.Destination(r))
}

// start replaces the browser's
// session, and redirects to a page.
func (b *browsers) start(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult, to string) error {
	if err := b.end(r); err != nil {
		return err
	}
	b.keep(w, entry.Session, entry.Secret)
	keepDevices(w, entry.Devices)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// keep gives the browser the secret of its
// session, until that expires without renewal.
func (b *browsers) keep(w http.ResponseWriter, session tenants.Session, secret tenants.Secret) {
	lasts := session.ExpiresAt.Sub(b.kit.Clock()).Round(time.Second)
	http.SetCookie(w, pages.SessionCookie(secret.Reveal(), max(1, int(lasts/time.Second))))
}

func (b *browsers) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := b.end(r); err != nil {
		return err
	}
	http.SetCookie(w, pages.SessionCookie("", -1))
	ui.SetFlash(w, "signed-out")
	http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
	return nil
}

// end ends the browser's session, if any.
func (b *browsers) end(r *http.Request) error {
	principal, err := b.kit.Guard.Session(r)
	if err != nil {
		return nil //nolint:nilerr // there is none, or it has ended
	}
	request := b.requestOf(r.WithContext(identity.NewContext(r.Context(), principal)))
	return b.sessions.SignOut(r.Context(), request, principal.ID)
}

// renew extends a session in use, gives it
// a new secret, and redirects to the destination.
func (b *browsers) renew(w http.ResponseWriter, r *http.Request) error {
	cookie, err := r.Cookie(identity.SessionCookie)
	if err != nil {
		return err
	}
	presented, err := tenants.ParseSecret(tenants.SessionPrefix, cookie.Value)
	if err != nil {
		return err
	}
	session, secret, err := b.sessions.Renew(r.Context(), b.requestOf(r), identity.FromContext(r.Context()).ID, presented)
	if err != nil {
		return ended(err)
	}
	if secret != presented {
		b.keep(w, session, secret)
	}
	http.Redirect(w, r, pages.Destination(r), http.StatusSeeOther)
	return nil
}

// deviceCookie holds the secrets by which a browser
// is recognized. It does not prove who uses it.
const deviceCookie = "__Host-weir-device"

// deviceSeparator separates the secrets: several members may share a browser.
const deviceSeparator = "."

// Bounds of device lookups. A forged cookie can cause them
// before any attempt is counted, so networks take turns.
const (
	lookups           = 2
	lookupsPerNetwork = 1
	lookupsWaiting    = 16   // for one network
	lookupsQueued     = 1024 // in all
	lookupTimeout     = 3 * time.Second
)

func newLookups() *fairshare.Limiter {
	return fairshare.NewLimiter(fairshare.Limits{
		Capacity: lookups, PerKey: lookupsPerNetwork, Leases: lookupsPerNetwork + lookupsWaiting, Queue: lookupsQueued, Wait: lookupTimeout,
	})
}

// devicesOf is what may be secrets in a browser's cookie.
func devicesOf(r *http.Request) (secrets []tenants.Secret) {
	cookie, err := r.Cookie(deviceCookie)
	if err != nil {
		return nil
	}
	for text := range strings.SplitSeq(cookie.Value, deviceSeparator) {
		secret, err := tenants.ParseSecret(tenants.DevicePrefix, text)
		if err == nil && len(secrets) < tenants.MaxDeviceSecrets {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// keepDevices stores the secrets in the browser.
func keepDevices(w http.ResponseWriter, secrets []tenants.Secret) {
	texts := make([]string, len(secrets))
	for i, secret := range secrets {
		texts[i] = secret.Reveal()
	}
	http.SetCookie(w, &http.Cookie{
		Name: deviceCookie, Value: strings.Join(texts, deviceSeparator), Path: "/", MaxAge: int(tenants.DeviceLifetime / time.Second),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// recognized is an anonymous request, with the device by which the browser
// is known to the member with an address. While too many
// wait, it fails with an error of the Limiter.
func (p *signInPages) recognized(r *http.Request, email string) (unitofwork.Request, error) {
	request := p.browsers.Anonymous(r)
	if len(request.Devices) == 0 {
		return request, nil
	}
	lease, err := p.lookups.Acquire(r.Context(), p.limits.network(r), 1)
	if err != nil {
		return request, err
	}
	defer lease.Release()
	request.Device, err = p.sessions.Recognize(r.Context(), email, request.Devices)
	return request, err
}

// A mark is the name of a browser or system in a User-Agent.
type mark struct{ part, name string }

// Each browser also has the names of those after it.
var browserMarks = []mark{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
}

var systemMarks = []mark{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"},
	{"Mac OS X", "macOS"}, {"Linux", "Linux"},
}

// clientName is a User-Agent as text. It helps
// to recognize a browser, and proves nothing.
func clientName(agent string) string {
	browser, system := find(browserMarks, agent), find(systemMarks, agent)
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "Unknown browser"
}

func find(marks []mark, agent string) string {
	for _, mark := range marks {
		if strings.Contains(agent, mark.part) {
			return mark.name
		}
	}
	return ""
}
