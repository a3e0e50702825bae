package app

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/signin"
)

// OIDCConfig is the identity provider by which
// members may sign in, beside passwords and passkeys.
type OIDCConfig struct {
	Issuer       string         `help:"Address of an identity provider (OpenID Connect) that signs members in, the first time by their verified e-mail address. Empty: none." env:"WEIR_OIDC_ISSUER"`
	ClientID     string         `help:"Client id of this installation at the identity provider." env:"WEIR_OIDC_CLIENT_ID"`
	ClientSecret httpapi.Secret `help:"Client secret of this installation at the identity provider." env:"WEIR_OIDC_CLIENT_SECRET"`
	Name         string         `help:"Name of the identity provider, for people." env:"WEIR_OIDC_NAME" default:"your identity provider"`
}

func (c OIDCConfig) validate(origin string) error {
	if c.Issuer == "" {
		return nil
	}
	var errs []error
	if !secureAddress(c.Issuer) {
		errs = append(errs, fmt.Errorf("WEIR_OIDC_ISSUER is %q: use an address that begins with https://", c.Issuer))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("WEIR_OIDC_CLIENT_ID is empty: use the client id that the identity provider gave this installation"))
	}
	if c.ClientSecret == "" {
		errs = append(errs, errors.New("WEIR_OIDC_CLIENT_SECRET is empty: use the client secret that the identity provider gave this installation"))
	}
	if origin == "" {
		errs = append(errs, errors.New("WEIR_OIDC_ISSUER needs WEIR_CONSOLE_ORIGIN: the identity provider sends people back there"))
	}
	return errors.Join(errs...)
}

// secureAddress reports whether an address is https, or of this machine.
func secureAddress(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return false
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	return parsed.Scheme == "https" || parsed.Scheme == "http" && err == nil && address.IsLoopback()
}

// provider is the identity provider, nil where there is none.
func (a *App) provider() (*oidc.Provider, error) {
	c := a.config.OIDC
	if c.Issuer == "" {
		return nil, nil //nolint:nilnil // none is not wrong
	}
	origin, err := a.config.origin()
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Config{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Name: c.Name, Redirect: origin + signin.OIDCCallbackPath, Clock: a.base.Clock,
	}), nil
}
