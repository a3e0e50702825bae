//go:build browser

package browser

import (
	"github.com/chromedp/cdproto/webauthn"
)

// plugAuthenticator gives the tab's person a device that stores
// passkeys and verifies its owner, such as a phone.
func (b *tab) plugAuthenticator() {
	b.t.Helper()
	call(b, webauthn.Enable, webauthn.EnableParams{})
	call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
}

// addPasskey adds a passkey in the settings of the person's account.
func (b *tab) addPasskey(name string) {
	b.t.Helper()
	b.open("/console/settings/account")
	b.leave("a", "Add a passkey", "Add a passkey")
	b.await(`!document.querySelector("form[data-passkey]").hidden`)
	b.fill("Name", name)
	b.leave("button", "Add passkey", "Your account")
	b.awaitText(name)
}

// signInByPasskey signs in without typing.
func (b *tab) signInByPasskey() {
	b.t.Helper()
	b.await(`!document.querySelector("form[data-passkey]").hidden`)
	b.leave("button", "Sign in with a passkey", "Logs")
}

// firstPasskey adds a person's first passkey, and returns its id.
func (b *tab) firstPasskey(name string) string {
	b.t.Helper()
	b.plugAuthenticator()
	b.addPasskey(name)
	return ask[string](b, `document.querySelector("a[href$='/remove']").href.split("/").at(-2)`)
}
